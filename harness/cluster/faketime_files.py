"""Files that libfaketime keeps in the system's shared memory, and leaves there when its process is killed.

A process under libfaketime makes a piece of memory and a semaphore when it begins. Both are named after its number, its
children use them too, and it removes them when it ends in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

SHARED: Final = Path("/dev/shm")  # where the system has it
_PROC: Final = Path("/proc")
_NAME: Final = re.compile(r"^(?:faketime_shm|sem\.faketime_sem)_(\d+)$")


def remove_of(pid: int, shared: Path = SHARED) -> None:
    """Remove the files of a process that is dead."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        with suppress(OSError):
            (shared / name).unlink(missing_ok=True)


def remove_leftovers(shared: Path = SHARED, proc: Path = _PROC) -> list[str]:
    """Remove files that no living process made or has mapped; returns what was removed, in words."""
    left = {path: match[1] for path in _files(shared) if (match := _NAME.match(path.name))}
    dead = [path for path, pid in left.items() if not (proc / pid).exists()]
    removed: list[str] = []
    for path in _unmapped(dead, proc):
        try:
            path.unlink(missing_ok=True)
            removed.append(f"shared memory {path}")
        except OSError as error:
            removed.append(f"shared memory {path}: no, it is still there ({error.strerror})")
    return removed


def _files(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from sorted(folder.iterdir())


def _unmapped(paths: Iterable[Path], proc: Path) -> list[Path]:
    """Files that no process has mapped: a child may outlive the process that made them."""
    left = {bytes(path): path for path in paths}
    for maps in proc.glob("[0-9]*/maps") if left else ():
        with suppress(OSError):
            text = maps.read_bytes()
            for name in [name for name in left if name in text]:
                del left[name]
    return list(left.values())
