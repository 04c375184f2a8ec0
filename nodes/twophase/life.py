"""The number of this start of the process, on disk before any message of it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.kernel.errors import StartRefused
from nodes.twophase.site import Site

FILE = "life"


def next_life(site: Site, files: Mapping[str, bytes]) -> int:
    try:
        life = int(files.get(FILE, b"0")) + 1
    except ValueError:
        raise StartRefused(f"the file {FILE} holds no number: {files[FILE]!r}"[:120]) from None
    site.persist(FILE, str(life).encode(), "life", is_whole=True)
    return life
