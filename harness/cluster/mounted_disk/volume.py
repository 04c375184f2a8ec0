"""The files of one mounted disk: everything is done to the folder below, and what is not synced is remembered.

Files of the harness (`EXEMPT`) are passed through, and no fault touches them: the output of a node, its configuration
(with its operator's changes of members), its clock. All methods raise OSError; the server calls them under one lock.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from harness.cluster.empty_disk import ASIDE, KEPT
from harness.cluster.mounted_disk.undo import (
    SECTOR_BYTES,
    WRITTEN_BACK_AFTER_NS,
    Change,
    Changes,
    NameChange,
    Names,
    surviving,
)
from harness.cluster.mounted_disk.wire import ROOT_ID
from harness.cluster.place import DISK_FAULTS

MEMBERS: Final = "members.json"
"""The operator's changes of members since the first start: the instance file of a real installation."""
EXEMPT: Final = (*KEPT, MEMBERS, DISK_FAULTS)
GRAVES: Final = ".qsync-removed"
"""Where removed files wait until their removal is on disk."""
_NOT_BELOW: Final = (
    os.O_APPEND | os.O_SYNC | os.O_DSYNC | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_ACCMODE | os.O_DIRECT
)
Key = tuple[int, int]
"""Device and inode below."""
Owner = tuple[int, int] | None
"""The user and the group that a new file belongs to; None: those of this process."""


@dataclass(slots=True)
class Inode:
    """A file or folder that the kernel knows. `below` is a descriptor of its path (O_PATH)."""

    number: int
    below: int
    key: Key
    is_exempt: bool
    lookups: int = 0

    @property
    def path(self) -> str:
        """A path that opens the file, whatever its name is now."""
        return f"/proc/self/fd/{self.below}"

    def attributes(self) -> os.stat_result:
        return os.fstat(self.below)


@dataclass(slots=True)
class Handle:
    inode: Inode
    file: int


@dataclass(slots=True)
class Dirty:
    """A file with changes that are not on disk, and a descriptor of its own."""

    file: int
    changes: Changes = field(default_factory=Changes)


class Volume:
    def __init__(
        self,
        root: int,
        now_ns: Callable[[], int],
        *,
        strict: bool = False,
        written_back_after_ns: int = WRITTEN_BACK_AFTER_NS,
    ) -> None:
        """`root` is a descriptor of the folder below. `strict`: names are synced with their folder alone."""
        self._now_ns = now_ns
        self._written_back_after_ns = written_back_after_ns
        self._strict = strict
        attributes = os.fstat(root)
        self._root = Inode(ROOT_ID, root, (attributes.st_dev, attributes.st_ino), is_exempt=False)
        self._inodes: dict[int, Inode] = {ROOT_ID: self._root}
        self._by_key: dict[Key, Inode] = {self._root.key: self._root}
        self._handles: dict[int, Handle] = {}
        self._numbers = count(ROOT_ID + 1)
        self._steps = count(1)
        self._dirty: dict[Key, Dirty] = {}
        self._names = Names()
        self._is_frozen = False
        self._off_at: int | None = None
        """No change after this step reached the disk: at this step the first sync after `freeze` returned."""
        with suppress(FileExistsError):
            os.mkdir(GRAVES, 0o700, dir_fd=root)
        self._graves = os.open(GRAVES, os.O_PATH, dir_fd=root)

    # Inodes and names

    def __getitem__(self, number: int) -> Inode:
        inode = self._inodes.get(number)
        if inode is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return inode

    def handle(self, number: int) -> Handle:
        handle = self._handles.get(number)
        if handle is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return handle

    def lookup(self, parent: Inode, name: str) -> tuple[Inode, os.stat_result]:
        self._refuse_hidden(parent, name)
        below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.below)
        attributes = os.fstat(below)
        key = (attributes.st_dev, attributes.st_ino)
        inode = self._by_key.get(key)
        if inode is None:
            inode = Inode(next(self._numbers), below, key, self._is_exempt(parent, name))
            self._inodes[inode.number] = self._by_key[key] = inode
        else:
            os.close(below)
        inode.lookups += 1
        return inode, attributes

    def forget(self, number: int, lookups: int) -> None:
        inode = self._inodes.get(number)
        if inode is None or inode is self._root:
            return
        inode.lookups -= lookups
        if inode.lookups <= 0 and not any(handle.inode is inode for handle in self._handles.values()):
            del self._inodes[number]
            self._by_key.pop(inode.key, None)
            os.close(inode.below)

    def entries(self, inode: Inode) -> list[tuple[str, int, int]]:
        """Names, inodes and types, sorted."""
        below = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inode.below)
        try:
            with os.scandir(below) as listing:
                listed = [
                    (entry.name, entry.inode(), stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) >> 12)
                    for entry in listing
                    if not (inode is self._root and entry.name == GRAVES)
                ]
        finally:
            os.close(below)
        return sorted(listed)

    # Open files

    def open(self, inode: Inode, flags: int) -> int:
        """The number of a handle. A file opened for writing can be read too: its old bytes are needed for `undo`."""
        how = os.O_RDONLY if flags & os.O_ACCMODE == os.O_RDONLY else os.O_RDWR
        return self._opened(inode, os.open(inode.path, flags & ~_NOT_BELOW & ~os.O_NOFOLLOW | how))

    def _opened(self, inode: Inode, file: int) -> int:
        number = next(self._numbers)
        self._handles[number] = Handle(inode, file)
        return number

    def create(
        self, parent: Inode, name: str, flags: int, mode: int, owner: Owner = None
    ) -> tuple[Inode, os.stat_result, int]:
        self._refuse_hidden(parent, name)
        how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            file = os.open(name, how | os.O_EXCL, mode, dir_fd=parent.below)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            file = os.open(name, how, mode, dir_fd=parent.below)
        else:
            self._made(parent, name, owner)
        inode, attributes = self.lookup(parent, name)
        return inode, attributes, self._opened(inode, file)

    def release(self, number: int) -> None:
        handle = self._handles.pop(number)
        os.close(handle.file)
        if not handle.inode.lookups:
            self.forget(handle.inode.number, 0)

    def write(self, handle: Handle, offset: int, data: bytes) -> int:
        size = os.fstat(handle.file).st_size
        before = os.pread(handle.file, min(len(data), max(0, size - offset)), offset)
        written = os.pwrite(handle.file, data, offset)
        self._changed(handle.inode, offset, before[:written], size, max(size, offset + written))
        return written

    def truncate(self, inode: Inode, size: int) -> None:
        file = os.open(inode.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            size_before = os.fstat(file).st_size
            before = os.pread(file, size_before - size, size) if size < size_before else b""
            os.ftruncate(file, size)
            self._changed(inode, min(size, size_before), before, size_before, size)
        finally:
            os.close(file)

    def _changed(self, inode: Inode, offset: int, before: bytes, size_before: int, size: int) -> None:
        if inode.is_exempt:
            return
        dirty = self._dirty.get(inode.key)
        if dirty is None:
            dirty = self._dirty[inode.key] = Dirty(os.open(inode.path, os.O_RDWR | os.O_CLOEXEC))
        now_ns = self._now_ns()
        if not self._is_frozen:
            dirty.changes.written_back(now_ns - self._written_back_after_ns)
        dirty.changes.add(Change(next(self._steps), now_ns, offset, before, size_before, size))

    # Names

    def make_folder(self, parent: Inode, name: str, mode: int, owner: Owner = None) -> None:
        self._refuse_hidden(parent, name)
        os.mkdir(name, mode, dir_fd=parent.below)
        self._made(parent, name, owner, is_folder=True)

    def make_node(self, parent: Inode, name: str, mode: int, owner: Owner = None) -> None:
        """A socket or a FIFO, by the type in `mode`: the kernel itself carries what goes through it."""
        self._refuse_hidden(parent, name)
        if not (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        os.mknod(name, mode, dir_fd=parent.below)
        self._made(parent, name, owner)

    def make_link(self, parent: Inode, name: str, target: Inode | str, owner: Owner = None) -> None:
        """A hard link to a file, or a symbolic link to a path."""
        self._refuse_hidden(parent, name)
        if isinstance(target, str):
            os.symlink(target, name, dir_fd=parent.below)
        else:
            os.link(target.path, name, dst_dir_fd=parent.below, follow_symlinks=True)
        self._made(parent, name, owner)

    def _made(self, parent: Inode, name: str, owner: Owner, *, is_folder: bool = False) -> None:
        if owner is not None:
            user, group = owner
            inherits = os.fstat(parent.below).st_mode & stat.S_ISGID
            os.chown(name, user, -1 if inherits else group, dir_fd=parent.below, follow_symlinks=False)
        # With `strict`, names in a folder may be on disk before the folder's own name: then no path leads to them.
        remove = shutil.rmtree if is_folder else os.unlink
        self._renamed([(parent, name)], lambda folders: remove(name, dir_fd=folders[0]))

    def remove(self, parent: Inode, name: str, *, is_folder: bool = False) -> None:
        self._refuse_hidden(parent, name)
        if is_folder:
            _refuse_full(parent, name)
        grave = self._bury(parent, name)
        self._renamed(
            [(parent, name)],
            lambda folders: os.rename(grave, name, src_dir_fd=self._graves, dst_dir_fd=folders[0]),
            grave,
        )

    def rename(self, parent: Inode, name: str, to: Inode, new: str, flags: int = 0) -> None:
        self._refuse_hidden(parent, name)
        self._refuse_hidden(to, new)
        if flags & ~_NO_REPLACE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        grave = ""
        try:
            attributes = os.stat(new, dir_fd=to.below, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            if flags:
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
            source = os.stat(name, dir_fd=parent.below, follow_symlinks=False)
            if (source.st_dev, source.st_ino) == (attributes.st_dev, attributes.st_ino):
                return
            are_folders = {stat.S_ISDIR(attributes.st_mode), stat.S_ISDIR(source.st_mode)}
            if are_folders == {True}:
                _refuse_full(to, new)
            if len(are_folders) == 1:
                grave = self._bury(to, new, stays=are_folders == {False})
        os.rename(name, new, src_dir_fd=parent.below, dst_dir_fd=to.below)

        def take_back(folders: tuple[int, ...]) -> None:
            os.rename(new, name, src_dir_fd=folders[-1], dst_dir_fd=folders[0])
            if grave:
                os.rename(grave, new, src_dir_fd=self._graves, dst_dir_fd=folders[-1])

        self._renamed([(parent, name), (to, new)], take_back, grave)

    def _bury(self, parent: Inode, name: str, *, stays: bool = False) -> str:
        """Keep the file, or the folder, of this name until its removal is on disk: changes in it may still be undone.

        `stays`: another file is about to get the name.
        """
        grave = str(next(self._steps))
        if stays:
            os.link(name, grave, src_dir_fd=parent.below, dst_dir_fd=self._graves, follow_symlinks=False)
        else:
            os.rename(name, grave, src_dir_fd=parent.below, dst_dir_fd=self._graves)
        return grave

    def _renamed(
        self,
        places: Sequence[tuple[Inode, str]],
        take_back: Callable[[tuple[int, ...]], None],
        grave: str = "",
    ) -> None:
        """Names in these folders changed."""
        folders = tuple(os.dup(parent.below) for parent, _ in places)

        def let_go() -> None:
            for folder in folders:
                os.close(folder)
            if grave:
                with suppress(FileNotFoundError):  # it was taken back
                    is_folder = stat.S_ISDIR(
                        os.stat(grave, dir_fd=self._graves, follow_symlinks=False).st_mode
                    )
                    (os.rmdir if is_folder else os.unlink)(grave, dir_fd=self._graves)

        now_ns = self._now_ns()
        change = NameChange(
            next(self._steps),
            now_ns,
            tuple(parent.key for parent, _ in places),
            lambda: take_back(folders),
            let_go,
        )
        if all(self._is_exempt(parent, name) for parent, name in places):
            let_go()
            return
        if not self._is_frozen:
            self._names.written_back(now_ns - self._written_back_after_ns)
        self._names.add(change)

    def _is_exempt(self, parent: Inode, name: str) -> bool:
        """Also a file that is about to be renamed to such a name: `config.json.new`."""
        is_known = name.removesuffix(".new") in EXEMPT or name.startswith(ASIDE)
        return parent.is_exempt or (parent is self._root and is_known)

    def _refuse_hidden(self, parent: Inode, name: str) -> None:
        if parent is self._root and name == GRAVES:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    # Syncs and power

    @property
    def steps(self) -> int:
        """A number that is greater than those of all changes so far."""
        return next(self._steps)

    def synced(self, inode: Inode, before: int) -> None:
        """The changes of this file, or of this folder's names, that have a smaller number are on disk.

        Not when the power is about to go. The caller gets a success all the same, because a waiting process cannot be
        killed. Its later writes must not survive without these changes: `_off_at`.
        """
        if self._is_frozen:
            self._off_at = self._off_at or next(self._steps)
            return
        dirty = self._dirty.get(inode.key)
        if dirty is not None:
            dirty.changes.synced(before)
            if not dirty.changes.unsynced:
                self._clean(inode.key)
        if not self._strict:
            self._names.synced(before)
        elif stat.S_ISDIR(inode.attributes().st_mode):
            self._names.synced(before, inode.key)

    def freeze(self) -> None:
        """The power is about to go: nothing more reaches the disk."""
        now_ns = self._now_ns()
        if not self._is_frozen:
            self._is_frozen = True
            self._names.written_back(now_ns - self._written_back_after_ns)
            for dirty in self._dirty.values():
                dirty.changes.written_back(now_ns - self._written_back_after_ns)

    def settle(self) -> None:
        """All files are on disk as they are."""
        self._is_frozen, self._off_at = False, None
        for key in list(self._dirty):
            self._clean(key)
        self._names.synced(next(self._steps))

    def lose_power(self, chance: random.Random) -> tuple[int, int]:
        """Throw away unsynced changes, or the part of them that chance chooses; the bytes and names lost or spoilt."""
        self.freeze()
        off_at = self._off_at or next(self._steps)
        lost = 0
        for dirty in self._dirty.values():
            size = os.fstat(dirty.file).st_size
            data = os.pread(dirty.file, size, 0)
            left = surviving(data, dirty.changes.unsynced, chance, off_at)
            os.pwrite(dirty.file, left, 0)
            os.ftruncate(dirty.file, len(left))
            lost += _different(data, left)
        names = self._names.lose(chance, off_at)
        self.settle()
        return lost, names

    def _clean(self, key: Key) -> None:
        os.close(self._dirty.pop(key).file)

    def close(self) -> None:
        """Nothing of ours stays in the folder below."""
        self.settle()
        with suppress(OSError):
            os.rmdir(GRAVES, dir_fd=self._root.below)


_NO_REPLACE: Final = 1


def _refuse_full(parent: Inode, name: str) -> None:
    """OSError unless it is an empty folder."""
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.below)
    try:
        with os.scandir(folder) as listing:
            if next(listing, None) is not None:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    finally:
        os.close(folder)


def _different(data: bytes, left: bytes) -> int:
    """How many bytes of `data` are missing or different in `left`."""
    if data.startswith(left):
        return len(data) - len(left)
    shorter = min(len(data), len(left))
    different = max(len(data), len(left)) - shorter
    for start in range(0, shorter, SECTOR_BYTES):  # files may be long, and most of their sectors are the same
        ours, theirs = data[start : start + SECTOR_BYTES], left[start : start + SECTOR_BYTES]
        if ours != theirs:
            different += sum(one != other for one, other in zip(ours, theirs, strict=False))
    return different
