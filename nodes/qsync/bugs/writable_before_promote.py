"""A leader is writable before its PROMOTE has effect."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue


class WritableBeforePromote(Decisions):
    def is_writable(self, queue: Queue) -> bool:
        return queue.election.is_leader or super().is_writable(queue)


BUG = Bug(
    decides=WritableBeforePromote,
    does="a node that won the election is writable before its PROMOTE has effect",
    seen="writes enter a queue that is still another's, and are answered without a quorum or rolled back",
    checkers=("linearizable", "convergence", "quorum", "audit", "crash", "leadership"),
    issue=12333,
)
