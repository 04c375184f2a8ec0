"""Changes of files that are not on disk yet: of the bytes of each file, and of names.

A change stands here from when it is made until a sync, or until it is older than what an operating system keeps back.
`Changes` are those of one file, and pure: `surviving` gives the bytes that a disk would have. `Names` are the changes
of folders, each with the function that undoes it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

SECTOR_BYTES: Final = 512
WRITTEN_BACK_AFTER_NS: Final = 1_000_000_000
"""Linux waits for 5 to 30 s. All writes of a run before its first fault are on disk by then."""


def torn(offset: int, kept: int, size_before: int) -> int:
    """How many of the first `kept` bytes of a write there reach the disk: where the file had bytes already, whole
    sectors. Stores with a log that is as long as it will be (etcd) rest on that."""
    end = offset + kept
    return kept if end >= size_before else max(0, end // SECTOR_BYTES * SECTOR_BYTES - offset)


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes at `offset` were `before`, and the file was `size_before` long. `size` what it was afterwards."""

    number: int
    at_ns: int
    offset: int
    before: bytes
    size_before: int
    size: int

    def undone(self, data: bytearray, kept: int = 0) -> None:
        """Take the change back in `data`, but for its first `kept` bytes."""
        if self.size < self.size_before:  # it had been cut
            data.extend(bytes(self.size_before - len(data)))
            data[self.offset : self.offset + len(self.before)] = self.before
            return
        end = self.offset + len(self.before)
        data[self.offset + kept : end] = self.before[kept:]
        if self.size > self.size_before:
            del data[max(self.size_before, min(len(data), self.offset + kept) if kept else 0) :]


class Changes:
    """The unsynced changes of one file, oldest first."""

    def __init__(self) -> None:
        self.unsynced: list[Change] = []

    def add(self, change: Change) -> None:
        self.unsynced.append(change)

    def synced(self, number: int) -> None:
        """All changes up to this number are on disk."""
        self.unsynced = [change for change in self.unsynced if change.number > number]

    def written_back(self, before_ns: int) -> None:
        """All older changes are on disk."""
        self.unsynced = [change for change in self.unsynced if change.at_ns > before_ns]


def surviving(data: bytes, changes: list[Change], chance: random.Random, off_at: int = sys.maxsize) -> bytes:
    """The bytes of a file with `data` after a power loss; no change after the step `off_at` is among them."""
    data = bytes(_without(data, [change for change in changes if change.number > off_at]))
    changes = [change for change in changes if change.number <= off_at]
    if not changes:
        return data
    match chance.choice(("nothing", "nothing", "beginning", "sectors")):
        case "nothing":
            return bytes(_without(data, changes))
        case "beginning":
            place = chance.randrange(len(changes))
            left = _without(data, changes[place + 1 :])
            last = changes[place]
            kept = chance.randrange(max(1, len(left) - last.offset))
            last.undone(left, torn(last.offset, kept, last.size_before))
            return bytes(left)
        case _:
            return _sectors(bytes(_without(data, changes)), data, chance)


def _without(data: bytes, changes: list[Change]) -> bytearray:
    left = bytearray(data)
    for change in reversed(changes):
        change.undone(left)
    return left


def _sectors(before: bytes, after: bytes, chance: random.Random) -> bytes:
    """The new size reached the disk, and some of the changed sectors; new sectors that did not are zero."""
    left = bytearray(before[: len(after)].ljust(len(after), b"\0"))
    for start in range(0, len(after), SECTOR_BYTES):
        piece = slice(start, start + SECTOR_BYTES)
        if left[piece] != after[piece] and chance.random() < 0.5:
            left[piece] = after[piece]
    return bytes(left)


@dataclass(frozen=True, slots=True)
class NameChange:
    """`folders`: their entries changed; `take_back` undoes the change, `let_go` frees what that needs."""

    number: int
    at_ns: int
    folders: tuple[object, ...]
    take_back: Callable[[], None]
    let_go: Callable[[], None]


class Names:
    """The unsynced changes of names in all folders, oldest first."""

    def __init__(self) -> None:
        self.unsynced: list[NameChange] = []

    def add(self, change: NameChange) -> None:
        self.unsynced.append(change)

    def synced(self, number: int, folder: object | None = None) -> None:
        """All changes up to this number are on disk; with a folder, only those of its entries."""
        self._drop(lambda change: change.number <= number and (folder is None or folder in change.folders))

    def written_back(self, before_ns: int) -> None:
        self._drop(lambda change: change.at_ns <= before_ns)

    def lose(self, chance: random.Random, off_at: int = sys.maxsize) -> int:
        """Take back all changes after a random point, at the latest the step `off_at`; how many."""
        kept = chance.randrange(sum(change.number <= off_at for change in self.unsynced) + 1)
        lost = self.unsynced[kept:]
        for change in reversed(lost):
            # A later change of the name is on disk: only the other folder of a rename was synced.
            with suppress(FileNotFoundError, FileExistsError):
                change.take_back()
            change.let_go()
        self.unsynced = self.unsynced[:kept]
        self._drop(lambda change: True)
        return len(lost)

    def _drop(self, is_on_disk: Callable[[NameChange], bool]) -> None:
        left: list[NameChange] = []
        for change in self.unsynced:
            if is_on_disk(change):
                change.let_go()
            else:
                left.append(change)
        self.unsynced = left
