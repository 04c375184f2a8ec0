"""Which seeded bugs of a system a hunt has found, by which checks, and after how many seeds.

`python -m bench.known_bugs --write` measures it and writes `finds.json` beside the system's own files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
FILE = "finds.json"


class Find(msgspec.Struct, frozen=True, kw_only=True):
    """The seeds that were tried up to the first anomaly, and the checks that found it; `by` is empty if none did."""

    seeds: int
    by: tuple[str, ...] = ()


@cache
def finds_of(system: str) -> Mapping[str, Find]:
    """Seeded bug → find; empty for a system that was not measured, such as one that a user brings."""
    path = HERE / system / FILE
    if system.endswith(".py") or not path.is_file():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Find])


def write(system: str, finds: Mapping[str, Find]) -> None:
    """Replace what is kept of a system."""
    text = msgspec.json.format(msgspec.json.encode(finds), indent=1)
    (HERE / system / FILE).write_bytes(text + b"\n")
    finds_of.cache_clear()
