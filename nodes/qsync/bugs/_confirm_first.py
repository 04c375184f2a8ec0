"""The common part of two bugs: a CONFIRM takes effect first, and goes to the disk with the next record, or later."""

from __future__ import annotations

from nodes.iproto.messages import Type
from nodes.kernel.events import Instant
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.journal import Write

HELD_NS = 100_000_000


class ConfirmFirst(Decisions):
    """A subclass says which CONFIRMs come first."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[tuple[Queue, Write]] = []
        self._held_until_ns = 0
        self._now_ns = 0

    def confirms_first(self, queue: Queue, write: Write) -> bool:
        return False

    def log(self, queue: Queue, write: Write) -> None:
        row = write.rows[-1]
        if row.type == Type.CONFIRM and self.confirms_first(queue, write) and not queue.pending:
            queue.take_effect(row)
            self._held_until_ns = self._now_ns + HELD_NS
            self._held.append((queue, write))
            return
        self._let_go()
        super().log(queue, write)

    def clock(self, now: Instant) -> Instant:
        now = super().clock(now)
        self._now_ns = now.monotonic_ns
        if self._now_ns >= self._held_until_ns:
            self._let_go()
        return now

    def _let_go(self) -> None:
        for queue, write in self._held:
            super().log(queue, write)
        self._held.clear()
