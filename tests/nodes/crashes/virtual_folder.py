"""A folder of which every state after a crash can be told: what the system has, what the disk has, what lies between.

It stands under the files of the real host (`nodes.host.files`) in the place of the operating system. A change of a file
or of a name is *pending* until that file, or the folder, is synced. After a power loss

- of the pending changes of each file a beginning is left: some whole ones and of the next, if it is a write, any number
  of bytes, with nothing behind or with zeros up to the length that the file had;
- of the pending changes of names any are left, whichever (POSIX promises no order, though most file systems keep one);
- each file and the names are independent: a name may be there and its content not, or the other way round, and then the
  file is not there.

A process that is killed loses nothing that a call has done; the last call, if it is a write, may have done a part.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from nodes.host.medium import Medium


@dataclass(frozen=True, slots=True)
class Wrote:
    """At the end of a file."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    size: int


@dataclass(frozen=True, slots=True)
class Content:
    """Of one inode: what is on disk, and what was done since."""

    on_disk: bytes = b""
    pending: tuple[Wrote | Cut, ...] = ()

    def data(self, count: int | None = None) -> bytes:
        """With so many of the pending changes, all by default."""
        data = self.on_disk
        for change in self.pending[:count]:
            data = data + change.data if isinstance(change, Wrote) else data[: change.size]
        return data

    def changed(self, change: Wrote | Cut) -> Content:
        return replace(self, pending=(*self.pending, change))

    def after_power_loss(self, places: Callable[[bytes], Iterable[int]]) -> Iterator[bytes]:
        """All that may be left; `places`: where a write may be torn."""
        if not self.pending:
            yield self.on_disk
            return
        for count, change in enumerate(self.pending):
            before = self.data(count)
            length = max(len(self.data(later)) for later in range(count + 1, len(self.pending) + 1))
            for place in places(change.data) if isinstance(change, Wrote) else (0,):
                yield before + change.data[:place] if isinstance(change, Wrote) else before
                if isinstance(change, Wrote):
                    yield (before + change.data[:place]).ljust(length, b"\0")
        yield self.data()


@dataclass(frozen=True, slots=True)
class Linked:
    name: str
    inode: int


@dataclass(frozen=True, slots=True)
class Renamed:
    old: str
    name: str


@dataclass(frozen=True, slots=True)
class Unlinked:
    name: str


NameChange = Linked | Renamed | Unlinked


@dataclass(frozen=True, slots=True)
class State:
    """Of the whole folder."""

    contents: tuple[Content, ...] = ()
    names: tuple[tuple[str, int], ...] = ()
    """On disk."""
    pending: tuple[NameChange, ...] = ()

    def entries(self, changes: Iterable[NameChange] | None = None) -> dict[str, int]:
        entries = dict(self.names)
        for change in self.pending if changes is None else changes:
            match change:
                case Linked(name, inode):
                    entries[name] = inode
                case Renamed(old, name) if old in entries:
                    entries[name] = entries.pop(old)
                case Unlinked(name):
                    entries.pop(name, None)
        return entries

    def files(self) -> dict[str, bytes]:
        """What a process sees."""
        return {name: self.contents[inode].data() for name, inode in sorted(self.entries().items())}

    def after_power_loss(self, places: Callable[[bytes], Iterable[int]]) -> Iterator[State]:
        """All that may be left; all of it is on disk."""
        for count in range(len(self.pending) + 1):
            for left in combinations(self.pending, count):
                yield from self._with_names(self.entries(left), places)

    def _with_names(
        self, entries: Mapping[str, int], places: Callable[[bytes], Iterable[int]]
    ) -> Iterator[State]:
        choices = [tuple(self.contents[inode].after_power_loss(places)) for inode in entries.values()]
        for chosen in product(*choices):
            yield on_disk(dict(zip(entries, chosen, strict=True)))


def on_disk(files: Mapping[str, bytes]) -> State:
    names = sorted(files)
    return State(
        tuple(Content(files[name]) for name in names), tuple((name, at) for at, name in enumerate(names))
    )


class VirtualFolder(Medium):
    """`before` is told of each call that changes or syncs something, before it is done."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__()
        self.state = state or State()
        self.before: Callable[[str, bytes], None] = lambda call, data: None
        """The call's name, and what it writes."""
        self.fails: Callable[[str], bool] = lambda call: False
        """Is asked of each such call: with True it does nothing (a write: a half) and raises OSError."""
        self._handles: dict[int, int] = {}

    def files(self) -> dict[str, bytes]:
        return self.state.files()

    def _begin(self, call: str, data: bytes = b"") -> None:
        self.before(call, data)
        if self.fails(call):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _change(self, inode: int, content: Content) -> None:
        contents = list(self.state.contents)
        contents[inode] = content
        self.state = replace(self.state, contents=tuple(contents))

    def _rename(self, change: NameChange) -> None:
        self.state = replace(self.state, pending=(*self.state.pending, change))

    def open_folder(self, path: str) -> int:
        return 0

    def open(self, folder: int, name: str, flags: int) -> int:
        inode = self.state.entries().get(name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise FileNotFoundError(errno.ENOENT, name)
            self._begin("create")
            inode = len(self.state.contents)
            self.state = replace(self.state, contents=(*self.state.contents, Content()))
            self._rename(Linked(name, inode))
        elif flags & os.O_TRUNC and self.state.contents[inode].data():
            self._begin("cut")
            self._change(inode, self.state.contents[inode].changed(Cut(0)))
        handle = max(self._handles, default=0) + 1
        self._handles[handle] = inode
        return handle

    def length(self, file: int) -> int:
        return len(self.state.contents[self._handles[file]].data())

    def write(self, file: int, data: bytes | memoryview) -> int:
        inode = self._handles[file]
        if data:
            try:
                self._begin("write", bytes(data))
            except OSError:
                half = bytes(data[: len(data) // 2])
                self._change(inode, self.state.contents[inode].changed(Wrote(half)))
                raise
            self._change(inode, self.state.contents[inode].changed(Wrote(bytes(data))))
        return len(data)

    def cut(self, file: int, size: int) -> None:
        self._begin("cut")
        inode = self._handles[file]
        assert size <= self.length(file)
        self._change(inode, self.state.contents[inode].changed(Cut(size)))

    def sync(self, file: int) -> None:
        self._begin("sync")
        inode = self._handles[file]
        self._change(inode, Content(self.state.contents[inode].data()))

    def sync_folder(self, folder: int) -> None:
        self._begin("sync folder")
        self.state = replace(self.state, names=tuple(self.state.entries().items()), pending=())

    def rename(self, folder: int, old: str, new: str) -> None:
        self._begin("rename")
        self._rename(Renamed(old, new))

    def remove(self, folder: int, name: str) -> None:
        if name not in self.state.entries():
            raise FileNotFoundError(errno.ENOENT, name)
        self._begin("remove")
        self._rename(Unlinked(name))

    def close(self, file: int) -> None:
        self._handles.pop(file, None)
