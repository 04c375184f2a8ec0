"""Captures of all data of a node, for a snapshot file and for nodes that join: only confirmed data leaves.

A capture is taken at one vclock and includes the transactions in the limbo. It is kept back until all of it is on disk
and confirmed. If any of it is lost or rolled back, the capture is dropped and another one is taken. No capture is begun
while a PROMOTE or ROLLBACK is on its way to the disk, or waits for its quorum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodes.kernel.vclock import covers
from nodes.qsync.commits import Commits
from nodes.qsync.journal import Journal
from nodes.qsync.limbo import Entry
from nodes.qsync.schema import Schema
from nodes.qsync.snapshot import ElectionState, QueueState, Snapshot
from nodes.qsync.sometimes import CAPTURE_WAITED


@dataclass(slots=True, eq=False)
class Capture:
    """`taken` is None until the capture could be taken. `done` gets the snapshot when all of it is confirmed."""

    done: Callable[[Snapshot], None]
    begins_file: bool
    taken: Snapshot | None = None
    last_number: int = 0
    last_entry: Entry | None = None
    rollbacks: int = 0
    failures: int = 0


class Captures:
    """The captures that are not handed out yet."""

    def __init__(
        self,
        commits: Commits,
        journal: Journal,
        schema: Schema,
    ) -> None:
        self._commits = commits
        self._journal = journal
        self._schema = schema
        self._waiting: list[Capture] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, done: Callable[[Snapshot], None], *, begins_file: bool = False) -> Capture:
        """Take a capture as soon as possible; `done` is called when all of it is confirmed.

        With `begins_file` a new log begins where the capture is taken.
        """
        capture = Capture(done, begins_file)
        self._waiting.append(capture)
        return capture

    def forget(self, capture: Capture) -> None:
        if capture in self._waiting:
            self._waiting.remove(capture)

    def proceed(self) -> None:
        """Take the captures that can be taken, and hand out those that are confirmed."""
        for capture in list(self._waiting):
            # First: what was rolled back has settled, too, and would pass for confirmed below.
            if capture.taken is not None and not self._is_sound(capture):
                capture.taken = None
            if capture.taken is None and self._may_take():
                self._take(capture)
                self._commits.sometimes.note(CAPTURE_WAITED, len(self._commits.limbo) > 0)
            if capture.taken is not None and self._is_confirmed(capture, capture.taken):
                self._waiting.remove(capture)
                capture.done(self._finished(capture, capture.taken))

    def _may_take(self) -> bool:
        commits = self._commits
        return (
            not commits.records.is_behind_barrier and not commits.pending and not commits.limbo.is_in_rollback
        )

    def _is_sound(self, capture: Capture) -> bool:
        """No transaction in it was lost or rolled back since (nor any behind it, which is simpler to check)."""
        rollbacks = self._commits.limbo.rollback_count
        return capture.failures == self._journal.failures and capture.rollbacks == rollbacks

    def _take(self, capture: Capture) -> None:
        commits, limbo = self._commits, self._commits.limbo
        capture.last_number = commits.last_waiting
        capture.last_entry = next((entry for entry in reversed(limbo.entries) if entry.wait_ack), None)
        capture.rollbacks, capture.failures = limbo.rollback_count, self._journal.failures
        if capture.begins_file:
            self._journal.begin_new_file()
        capture.taken = Snapshot(
            dict(self._journal.promised),
            self._schema.stored(),
            QueueState(limbo.owner_id, limbo.term, limbo.confirmed_lsn, dict(limbo.confirmed_of)),
            ElectionState(commits.election.term, commits.election.vote),
        )

    def _is_confirmed(self, capture: Capture, taken: Snapshot) -> bool:
        has_settled, decisions = self._commits.has_settled(capture.last_number), self._commits.decisions
        may_leave = decisions.may_be_stored if capture.begins_file else decisions.may_be_sent
        return covers(self._journal.vclock, taken.vclock) and may_leave(has_settled)

    def _finished(self, capture: Capture, taken: Snapshot) -> Snapshot:
        lsn = taken.queue.confirmed_lsn
        if capture.last_entry is not None:
            lsn = max(lsn, capture.last_entry.lsn)
        owner, confirmed_of = taken.queue.owner_id, dict(taken.queue.confirmed_of)
        if owner:
            confirmed_of[owner] = lsn
        queue = QueueState(owner, taken.queue.term, lsn, confirmed_of)
        return Snapshot(taken.vclock, taken.tuples, queue, taken.election)
