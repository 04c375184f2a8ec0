"""A replica waits until its own queue has room."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.filter import Rows
from nodes.qsync.records import CONTROL


class QueueLimitOnReplica(Decisions):
    def may_take_in(self, queue: Queue, rows: Rows) -> bool:
        return not queue.is_full or rows[-1].type in CONTROL


BUG = Bug(
    decides=QueueLimitOnReplica,
    does="a replica too waits until its queue has room before it takes a transaction in",
    seen="the CONFIRM that would make room stands behind that transaction: the replica never goes on",
    checkers=("leadership",),
    issue=11836,
)
