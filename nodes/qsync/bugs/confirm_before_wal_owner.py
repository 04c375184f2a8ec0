"""The owner's CONFIRM takes effect before it is in the log."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.bugs._confirm_first import ConfirmFirst
from nodes.qsync.decisions import Queue
from nodes.qsync.journal import Write


class ConfirmBeforeWalOwner(ConfirmFirst):
    def confirms_first(self, queue: Queue, write: Write) -> bool:
        return write.origin == queue.configuration.me.id or super().confirms_first(queue, write)


BUG = Bug(
    decides=ConfirmBeforeWalOwner,
    does="the owner commits and answers before its CONFIRM is in the log",
    seen="after a crash the write is pending again: the owner shows the old value, and may roll the write back",
    checkers=("linearizable", "convergence", "quorum", "audit"),
    issue=5213,
)
