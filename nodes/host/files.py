"""The files of one node, one call after the other: append and sync, put whole, cut, remove.

A group of records is cut into *stretches*, neighbouring records of one file: a stretch is one write and one sync, and
the next stretch begins only when this one is on disk. So a record is never on disk before an older one, whatever files
they go to.

When a write or sync fails, the records of its stretch and all behind it are given up: the file is cut back to its
last good length, and nothing more is written to it before that has succeeded. If the process dies before the cut is
on disk, some of those records may yet be read at the next start; no program can promise more after a failed sync.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from nodes.host.medium import Medium
from nodes.kernel.effects import UNFINISHED, Persist
from nodes.kernel.outbox import Durability


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a group: the records that count as durable; with `error`, all records behind them failed."""

    tokens: tuple[int, ...]
    error: str | None = None


class AppendFile:
    """One open file, with the length up to which its content is good."""

    def __init__(self, folder: int, name: str, medium: Medium) -> None:
        assert name, "a record needs a file"
        assert "/" not in name, name
        self._folder = folder
        self._medium = medium
        self._file = medium.open(folder, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._good_length = self._length = medium.length(self._file)
        self._entry_is_synced = False
        """An existing file may come from a process that was killed before it synced the folder."""
        self._torn = False

    @property
    def is_torn(self) -> bool:
        """The file has bytes behind its good content."""
        return self._torn or self._length != self._good_length

    def append(self, data: bytes) -> None:
        """Write all of `data`, or raise OSError."""
        if self._torn:
            self.cut_back()
        left = memoryview(data)
        while left:
            written = self._medium.write(self._file, left)
            self._length += written
            left = left[written:]

    def sync(self) -> None:
        self._medium.sync(self._file)
        if not self._entry_is_synced:
            self._medium.sync_folder(self._folder)
            self._entry_is_synced = True

    def accept(self) -> None:
        """Accept everything appended so far as good."""
        self._good_length = self._length

    def cut_back(self) -> None:
        """Drop the bytes appended since `accept`. If that fails, the next append tries again first."""
        self._torn = True  # until the cut is on disk: if anything below fails, the next append cuts first
        self._medium.cut(self._file, self._good_length)
        self._length = self._good_length
        self._medium.sync(self._file)
        self._torn = False

    def close(self) -> None:
        self._medium.close(self._file)


class Files:
    """The files of one folder. All calls block."""

    def __init__(self, path: str, durability: Durability, medium: Medium) -> None:
        self._medium = medium
        self._durability = durability
        self._folder = medium.open_folder(path)
        self._open: dict[str, AppendFile] = {}
        self._unsynced: dict[str, AppendFile] = {}

    @property
    def has_unsynced(self) -> bool:
        """Some files are written and not synced; with durability `written` only."""
        return bool(self._unsynced)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file, at once; only before the first record. Raises OSError."""
        assert not self._open, "it may be written to"
        file = self._medium.open(self._folder, name, os.O_WRONLY)
        try:
            self._medium.cut(file, size)
            self._medium.sync(file)
        finally:
            self._medium.close(file)

    def commit(self, group: Sequence[Persist]) -> Committed:
        durable: list[int] = []
        for name, stretch in _stretches(group):
            try:
                if stretch[0].is_whole:
                    self._put_whole(name, stretch[-1].data)
                else:
                    self._append(name, b"".join(record.data for record in stretch))
            except OSError as error:
                return Committed(tuple(durable), _sentence(name, error))
            durable += [record.token for record in stretch]
        return Committed(tuple(durable))

    def _append(self, name: str, data: bytes) -> None:
        if name not in self._open:
            self._open[name] = AppendFile(self._folder, name, self._medium)
        file = self._open[name]
        try:
            file.append(data)
            if self._durability == "synced":
                file.sync()
            else:
                self._unsynced[name] = file
            file.accept()
        except OSError:
            with suppress(OSError):  # the first error is the one to tell; the next append tries again
                file.cut_back()
            raise

    def _put_whole(self, name: str, data: bytes) -> None:
        """Write a file beside, sync and rename it: it is never there in part."""
        unfinished = name + UNFINISHED
        file = self._medium.open(self._folder, unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            left = memoryview(data)
            while left:
                left = left[self._medium.write(file, left) :]
            self._medium.sync(file)  # before the rename: a name must not appear before its data
        finally:
            self._medium.close(file)
        self._forget(name)
        self._medium.rename(self._folder, unfinished, name)
        self._medium.sync_folder(self._folder)

    def remove(self, name: str) -> None:
        """Remove a file before the next call begins, so removals are ordered. A failed one is left to the next start.

        A file that was whole and synced stays in the folder `REMOVED`, which no node reads: an audit of a long run
        needs the rows that its nodes have dropped. If the link cannot be made, the audit begins at a later row.
        """
        is_whole = name not in self._unsynced and not (name in self._open and self._open[name].is_torn)
        self._forget(name)  # behind `is_whole`, which asks the open file
        if is_whole and not name.endswith(UNFINISHED):
            with suppress(OSError):
                self._medium.keep_aside(self._folder, name)
        with suppress(OSError):
            self._medium.remove(self._folder, name)
            self._medium.sync_folder(self._folder)

    def _forget(self, name: str) -> None:
        """Close the file of this name: no more records are written to it."""
        self._unsynced.pop(name, None)
        if file := self._open.pop(name, None):
            file.close()

    def sync_later(self) -> list[str]:
        """Sync the unsynced files; returns a sentence for each file that could not be synced."""
        unsynced, self._unsynced = self._unsynced, {}
        failed: list[str] = []
        for name, file in unsynced.items():
            try:
                file.sync()
            except OSError as error:
                failed.append(_sentence(name, error))
        return failed

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._medium.close(self._folder)


def _stretches(group: Sequence[Persist]) -> Iterator[tuple[str, list[Persist]]]:
    for (name, _), records in groupby(group, key=lambda record: (record.file, record.is_whole)):
        yield name, list(records)


def _sentence(name: str, error: OSError) -> str:
    code = errno.errorcode.get(error.errno or 0, "unknown error")
    return f"{name}: {error.strerror or error} ({code})"
