"""A node that joins gets data that is not confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class JoinSendsPending(Decisions):
    def may_be_sent(self, has_settled: bool) -> bool:
        return True


BUG = Bug(
    decides=JoinSendsPending,
    does="who joins is given what is written, without waiting until it is confirmed",
    seen="what is rolled back while it joins stays in its data: extra rows, shown as confirmed",
    checkers=("convergence", "prefix", "linearizable", "audit", "leadership"),
    issue=5097,
)
