"""What two bugs share: a CONFIRM takes effect first, and goes to the disk with the next record, or a beat later."""

from __future__ import annotations

from nodes.iproto.messages import Type
from nodes.kernel.events import Instant
from nodes.qsync.commits import Commits
from nodes.qsync.decisions import Decisions
from nodes.qsync.journal import Write


class ConfirmFirst(Decisions):
    """A subclass says whose CONFIRMs."""

    def __init__(self) -> None:
        super().__init__()
        self._commits: Commits | None = None
        self._held: list[Write] = []
        self._held_until_ns = 0
        self._now_ns = 0

    def confirms_first(self, commits: Commits, write: Write) -> bool:
        return False

    def log(self, commits: Commits, write: Write) -> None:
        row = write.rows[-1]
        if row.type == Type.CONFIRM and self.confirms_first(commits, write) and not commits.pending:
            commits.take_effect(row)
            self._commits = commits
            self._held_until_ns = self._now_ns + commits.options.replication_timeout_ns
            self._held.append(write)
            return
        self._let_go(commits)
        super().log(commits, write)

    def clock(self, now: Instant) -> Instant:
        now = super().clock(now)
        self._now_ns = now.monotonic_ns
        if self._commits is not None and self._now_ns >= self._held_until_ns:
            self._let_go(self._commits)
        return now

    def _let_go(self, commits: Commits) -> None:
        for write in self._held:
            super().log(commits, write)
        self._held.clear()
