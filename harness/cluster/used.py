"""The memory and the disk space that the processes of a run use on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def memory_bytes(pid: int | str) -> int | None:
    """The resident memory of a process ("self": this one); None if there is none, or it cannot be seen."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def memory_of_all_bytes(pid: int) -> int | None:
    """The same of a process and all its descendants: a container's first process is an init, or a wrapper."""
    sizes = [memory for process in _family(pid) if (memory := memory_bytes(process)) is not None]
    return sum(sizes) if sizes else None


def _family(pid: int) -> Iterator[int]:
    """The process and its descendants. A process that ends meanwhile is left out."""
    yield pid
    try:
        children = [(task / "children").read_bytes() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return
    for child in b" ".join(children).split():
        yield from _family(int(child))


def disk_bytes(folder: Path) -> int:
    """The length of all files below a folder; a file with two names there counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                stat = Path(path, name).lstat()
            except OSError:
                continue  # it was removed in the meantime
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(sizes.values())
