"""The files of one node: records appended in order, synced in groups by one thread.

The host hands over everything that has gathered (one *group*) and goes on; the thread writes and syncs it, reports,
and takes the next. A group is cut into *stretches*, neighbouring records of one file: a stretch is one write and one
sync, and the next stretch begins only when this one is on disk. So a record is never on disk before an older one,
whatever files they go to.

When a write or sync fails, the records of its stretch and all behind it are given up: the file is cut back to its
last good length, and nothing more is written to it before that has succeeded. If the process dies before the cut is
on disk, some of those records may yet be read at the next start; no program can promise more after a failed sync.

`written` (the seeded bug *ack-before-fsync*) reports a group when the operating system has it and syncs it later: a
second and a half, where an operating system left alone would take thirty.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from nodes.host.medium import FaultyMedium, sync_data
from nodes.kernel.effects import UNFINISHED, Persist, Remove
from nodes.kernel.outbox import Durability

WRITEBACK_S = 1.5

Write = Callable[[int, bytes | memoryview], int]
Sync = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a group: these records count as durable; with `error`, all behind them failed."""

    tokens: tuple[int, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SyncedTooLate:
    """`written` only: records that were reported as durable could not be synced."""

    error: str


Outcome = Committed | SyncedTooLate


class AppendFile:
    """One open file, with the length up to which its content is good."""

    def __init__(self, directory: int, name: str, sync: Sync, write: Write = os.write) -> None:
        assert name, "a record needs a file"
        assert "/" not in name, name
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._directory = directory
        self._sync = sync
        self._write = write
        self._file = os.open(name, flags, 0o644, dir_fd=directory)
        self._good_length = self._length = os.fstat(self._file).st_size
        self._entry_is_synced = self._length > 0
        self._torn = False

    @property
    def number(self) -> int:
        """The file descriptor."""
        return self._file

    def append(self, data: bytes) -> None:
        """Write all of it or raise OSError."""
        if self._torn:
            self.cut_back()
        left = memoryview(data)
        while left:
            written = self._write(self._file, left)
            self._length += written
            left = left[written:]

    def sync(self) -> None:
        self._sync(self._file)
        if not self._entry_is_synced:
            os.fsync(self._directory)
            self._entry_is_synced = True

    def accept(self) -> None:
        """What has been appended so far is good."""
        self._good_length = self._length

    def cut_back(self) -> None:
        """Drop what has been appended since `accept`; if that fails, before the next append."""
        self._torn = True
        os.ftruncate(self._file, self._good_length)
        self._length = self._good_length
        self._sync(self._file)
        self._torn = False

    def close(self) -> None:
        os.close(self._file)


class Disk:
    """`commit` a group, be told its outcome by `report` (called in the disk's thread), `commit` the next."""

    def __init__(
        self,
        directory: str,
        durability: Durability,
        report: Callable[[Outcome], None],
        sync: Sync = sync_data,
        medium: FaultyMedium | None = None,
        writeback_s: float = WRITEBACK_S,
    ) -> None:
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._durability = durability
        self._report = report
        self._medium = medium
        self._sync = sync if medium is None else medium.sync
        self._write: Write = os.write if medium is None else medium.write
        self._writeback_s = writeback_s
        self._sync_at_s: float | None = None
        """When what is written and not synced is to be synced."""
        self._files: dict[str, AppendFile] = {}
        self._unsynced: dict[str, AppendFile] = {}
        self._has_begun = False
        self._groups: queue.SimpleQueue[Sequence[Persist] | Remove | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="disk", daemon=True)
        self._thread.start()

    def truncate(self, name: str, size: int) -> None:
        """Cut a file, at once; only before the first `commit`. Raises OSError."""
        assert not self._has_begun, "the disk's thread may be writing"
        file = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            os.ftruncate(file, size)
            self._sync(file)
        finally:
            os.close(file)

    def commit(self, group: Sequence[Persist]) -> None:
        self._has_begun = True
        self._groups.put(group)

    def remove(self, name: str) -> None:
        """Delete a file when what was handed over before is done; it is no misfortune if that fails."""
        self._groups.put(Remove(name))

    def close(self) -> None:
        """Finish what was handed over and close all files."""
        self._groups.put(None)
        self._thread.join()
        for file in self._files.values():
            file.close()
        os.close(self._directory)

    def _work(self) -> None:
        while True:
            try:
                group = self._groups.get(timeout=self._until_writeback_s())
            except queue.Empty:
                self._sync_later()
                continue
            if group is None:
                break
            if isinstance(group, Remove):
                self._remove(group.file)
            else:
                self._report(self._outcome(group))
            if self._until_writeback_s() == 0:
                self._sync_later()
        self._sync_later()

    def _until_writeback_s(self) -> float | None:
        return None if self._sync_at_s is None else max(0.0, self._sync_at_s - time.monotonic())

    def _outcome(self, group: Sequence[Persist]) -> Committed:
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
        if name not in self._files:
            self._files[name] = AppendFile(self._directory, name, self._sync, self._write)
        file = self._files[name]
        try:
            file.append(data)
            if self._durability == "synced":
                file.sync()
            else:
                self._unsynced[name] = file
                self._sync_at_s = self._sync_at_s or time.monotonic() + self._writeback_s
            file.accept()
        except OSError:
            self._cut_back(file)
            raise

    def _put_whole(self, name: str, data: bytes) -> None:
        """Written beside, synced, renamed: there is never half of it."""
        unfinished = name + UNFINISHED
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = os.open(unfinished, flags, 0o644, dir_fd=self._directory)
        try:
            left = memoryview(data)
            while left:
                left = left[self._write(file, left) :]
            self._sync(file)
        finally:
            os.close(file)
        os.rename(unfinished, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        os.fsync(self._directory)

    def _remove(self, name: str) -> None:
        self._unsynced.pop(name, None)
        if file := self._files.pop(name, None):
            if self._medium is not None:
                self._medium.forget(file.number)
            file.close()
        with suppress(OSError):
            os.unlink(name, dir_fd=self._directory)

    @staticmethod
    def _cut_back(file: AppendFile) -> None:
        with suppress(OSError):  # the first error is the one to tell; the next append tries again
            file.cut_back()

    def _sync_later(self) -> None:
        unsynced, self._unsynced, self._sync_at_s = self._unsynced, {}, None
        for name, file in unsynced.items():
            try:
                file.sync()
            except OSError as error:
                self._report(SyncedTooLate(_sentence(name, error)))


def _stretches(group: Sequence[Persist]) -> Iterator[tuple[str, list[Persist]]]:
    for (name, _), records in groupby(group, key=lambda record: (record.file, record.is_whole)):
        yield name, list(records)


def _sentence(name: str, error: OSError) -> str:
    code = errno.errorcode.get(error.errno or 0, "unknown error")
    return f"{name}: {error.strerror or error} ({code})"
