"""A replica's CONFIRM takes effect before it is in the log."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.bugs._confirm_first import ConfirmFirst
from nodes.qsync.decisions import Queue
from nodes.qsync.journal import Write


class ConfirmBeforeWalReplica(ConfirmFirst):
    def confirms_first(self, queue: Queue, write: Write) -> bool:
        return write.origin != queue.configuration.me.id or super().confirms_first(queue, write)


BUG = Bug(
    decides=ConfirmBeforeWalReplica,
    does="a replica applies a CONFIRM before it is in its log",
    seen="its read-confirmed reads go back after a crash",
    checkers=("prefix", "linearizable", "audit"),
    issue=5213,
)
