"""A node that joins gets data that is not confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class JoinSendsPending(Decisions):
    def may_be_sent(self, has_settled: bool) -> bool:
        return True


BUG = Bug(
    decides=JoinSendsPending,
    does="a joining node gets all written rows, without waiting until they are confirmed",
    seen="rows that are rolled back while it joins stay in its data, shown as confirmed",
    checkers=("convergence", "prefix", "linearizable", "audit", "leadership"),
    issue=5097,
)
