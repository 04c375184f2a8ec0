"""A timeout rolls back one transaction, and not those behind it."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.limbo import Entry


class NoCascadingRollback(Decisions):
    def rolled_back(self, queue: Queue, lsn: int) -> list[Entry]:
        discarded = super().rolled_back(queue, lsn)
        while queue.is_owner and len(discarded) > 1:
            queue.limbo.append(discarded.pop(-2))
        return discarded


BUG = Bug(
    decides=NoCascadingRollback,
    does="a timeout rolls back the oldest transaction alone and leaves those behind it in the owner's queue",
    seen="the owner commits what its log and its replicas have rolled back: memory and log differ, replicas stop",
    checkers=("convergence", "linearizable", "audit", "leadership", "crash"),
    issue=5140,
)
