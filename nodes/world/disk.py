"""A virtual disk: files of bytes, of which a prefix is synced.

- A process that is killed loses what it had not yet handed to the operating system; what it wrote stays.
- A power loss keeps what was synced and, of the rest, whatever chance decides: nothing, a part (torn in the middle
  of a record), or the right length filled with zeros, because the size can reach a disk before the data.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Protocol

from nodes.kernel.effects import UNFINISHED


class WatchesDisk(Protocol):
    """Hears of a disk what is safe on it, and what is not there any more."""

    def synced(self, file: str, length: int) -> None:
        """The first `length` bytes are safe."""

    def cut(self, file: str, length: int) -> None:
        """Of what was written, the first `length` bytes are left."""

    def put(self, file: str, data: bytes) -> None:
        """A file appeared whole, and safe."""


class VirtualFile:
    __slots__ = ("data", "is_named", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = 0
        self.is_named = False
        """Its name was synced, so it is there, be it empty."""


class VirtualDisk:
    """The files of one node. Appends are written at once and synced on demand."""

    def __init__(self) -> None:
        self._files: dict[str, VirtualFile] = {}
        self._stretches: list[tuple[str, int]] = []
        """Of what is not synced: neighbouring writes to one file, in the order of writing, and where they end."""
        self.removed: dict[str, bytes] = {}
        """Files that were whole and synced when the node removed them: a log says more with its older parts."""
        self.full = False
        self.watch: WatchesDisk | None = None

    def files(self) -> Mapping[str, bytes]:
        """The files as a node that starts now would read them."""
        return {name: bytes(self._files[name].data) for name in sorted(self._files)}

    def length(self, name: str) -> int | None:
        """None: there is no such file."""
        file = self._files.get(name)
        return None if file is None else len(file.data)

    def append(self, name: str, data: bytes) -> int:
        """Write without syncing; returns the new length."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = VirtualFile()
        file.data += data
        if self._stretches and self._stretches[-1][0] == name:
            self._stretches.pop()
        self._stretches.append((name, len(file.data)))
        return len(file.data)

    def put_whole(self, name: str, data: bytes) -> None:
        """A file that appears whole, and synced, in the place of any other."""
        file = self._files[name] = VirtualFile()
        file.data += data
        file.synced, file.is_named = len(data), True
        self._files.pop(name + UNFINISHED, None)
        self._settle(name)
        if self.watch is not None:
            self.watch.put(name, data)

    def remove(self, name: str) -> None:
        """Forget a file; synced at once."""
        file = self._files.pop(name, None)
        if file is not None and file.synced == len(file.data) > 0:
            self.removed[name] = bytes(file.data)
        self._settle(name)
        if self.watch is not None:
            self.watch.cut(name, 0)

    def sync(self, name: str, length: int) -> None:
        """The first `length` bytes of a file are safe."""
        file = self._files.get(name)
        if file is None:
            return  # removed in the meantime
        assert length <= len(file.data), (name, length, len(file.data))
        file.synced, file.is_named = max(file.synced, length), True
        self._settle(name, file.synced)
        self._tell(name, file.synced)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file; synced at once."""
        file = self._files[name]
        del file.data[size:]
        file.synced = len(file.data)
        self._settle(name)
        self._tell(name, file.synced, is_cut=True)

    def unsynced_bytes(self) -> int:
        return sum(len(file.data) - file.synced for file in self._files.values())

    def forget_unwritten(self, name: str, length: int | None) -> None:
        """The process died before it wrote beyond `length`; None: before it made the file."""
        file = self._files.get(name)
        if file is None:
            return
        del file.data[max(length or 0, file.synced) :]
        if length is None and not file.data:
            del self._files[name]
            self._settle(name)
        length = len(file.data)
        self._stretches = [(each, min(end, length) if each == name else end) for each, end in self._stretches]
        if self.watch is not None:
            self.watch.cut(name, length)

    def lose_power(self, chance: random.Random) -> int:
        """Keep what was synced and what chance leaves of the rest; returns how many bytes were lost or spoilt.

        A host syncs a file before it makes or lengthens the next one: where something is lost, nothing is left of what
        was written later and not synced, not even zeros.
        """
        lost, is_lost = self.unsynced_bytes(), False
        for name, end in self._stretches:
            file = self._files.get(name)
            tail = 0 if file is None else min(end, len(file.data)) - file.synced
            if file is None or tail <= 0:
                continue
            # Nothing is drawn behind the first loss: nothing is left there to decide.
            kept = 0 if is_lost else chance.choice((0, 0, chance.randrange(tail + 1)))
            safe = file.synced = file.synced + kept
            lost -= kept
            if kept < tail:
                zeros = tail - kept if not is_lost and chance.random() < 0.2 else 0
                is_lost = True
                file.data[safe:] = bytes(zeros)
                file.synced = len(file.data)
            self._tell(name, safe, is_cut=kept < tail)
        self._stretches.clear()
        self._files = {name: file for name, file in self._files.items() if file.synced or file.is_named}
        return lost

    def _settle(self, name: str, length: int | None = None) -> None:
        """The file, or the first `length` bytes of it, wait for no sync any more."""
        self._stretches = [
            each for each in self._stretches if each[0] != name or (length is not None and each[1] > length)
        ]

    def _tell(self, name: str, length: int, *, is_cut: bool = False) -> None:
        if self.watch is None:
            return
        if is_cut:
            self.watch.cut(name, length)
        self.watch.synced(name, length)
