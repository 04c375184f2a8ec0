"""The memory and the disk space that the processes of a run use on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def memory_bytes(pid: int | str) -> int | None:
    """The resident memory of a process ("self": this one); None if there is none, or it cannot be seen."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def disk_bytes(folder: Path) -> int:
    """The length of all files below a folder; a file with two names there counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                found = Path(path, name).lstat()
            except OSError:
                continue  # it was removed in the meantime
            sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())
