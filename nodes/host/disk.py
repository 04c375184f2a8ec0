"""One thread that works on a node's files: it writes records in groups, and removes files.

The host hands over all records that have gathered (one *group*) and goes on; the thread writes and syncs the group
(`nodes.host.files`), reports, and takes the next.

`written` (the seeded bug *ack-before-fsync*) reports a group when the operating system has it and syncs it later: a
second and a half, where an operating system left alone would take thirty.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodes.host.files import Committed, Files
from nodes.host.medium import Medium
from nodes.kernel.effects import Persist, Remove
from nodes.kernel.outbox import Durability

WRITEBACK_S = 1.5


@dataclass(frozen=True, slots=True)
class SyncedTooLate:
    """`written` only: records that were reported as durable could not be synced."""

    error: str


Outcome = Committed | SyncedTooLate | Exception
"""An exception: the node asked for what is no file. The thread takes no more orders."""


class Disk:
    """`commit` a group, wait until `report` gives its outcome (from the disk's thread), `commit` the next."""

    def __init__(
        self,
        directory: str,
        durability: Durability,
        report: Callable[[Outcome], None],
        medium: Medium | None = None,
        writeback_s: float = WRITEBACK_S,
    ) -> None:
        self._files = Files(directory, durability, medium or Medium())
        self._report = report
        self._writeback_s = writeback_s
        self._sync_at_s: float | None = None
        """When the written but unsynced records are to be synced."""
        self._has_begun = False
        self._groups: queue.SimpleQueue[Sequence[Persist] | Remove | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="disk", daemon=True)
        self._thread.start()

    def truncate(self, name: str, size: int) -> None:
        """Cut a file, at once; only before the first `commit`. Raises OSError."""
        assert not self._has_begun, "the disk's thread may be writing"
        self._files.truncate(name, size)

    def commit(self, group: Sequence[Persist]) -> None:
        self._has_begun = True
        self._groups.put(group)

    def remove(self, name: str) -> None:
        """Delete a file when all earlier orders are done; a failure is harmless."""
        self._groups.put(Remove(name))

    def close(self) -> None:
        """Finish all orders and close all files."""
        self._groups.put(None)
        self._thread.join()
        self._files.close()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # else the host would wait for this thread for ever
            self._report(error)

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
                self._files.remove(group.file)
            else:
                self._commit(group)
            if self._until_writeback_s() == 0:
                self._sync_later()
        self._sync_later()

    def _commit(self, group: Sequence[Persist]) -> None:
        outcome = self._files.commit(group)
        if self._files.has_unsynced:
            self._sync_at_s = self._sync_at_s or time.monotonic() + self._writeback_s
        self._report(outcome)

    def _until_writeback_s(self) -> float | None:
        return None if self._sync_at_s is None else max(0.0, self._sync_at_s - time.monotonic())

    def _sync_later(self) -> None:
        self._sync_at_s = None
        for error in self._files.sync_later():
            self._report(SyncedTooLate(error))
