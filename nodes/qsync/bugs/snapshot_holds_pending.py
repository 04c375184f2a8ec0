"""A snapshot file has data that is not confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class SnapshotHoldsPending(Decisions):
    def may_be_stored(self, has_settled: bool) -> bool:
        return True


BUG = Bug(
    decides=SnapshotHoldsPending,
    does="a snapshot file is written without waiting until all that is in it is confirmed",
    seen="a node that starts from it shows rolled-back rows again",
    checkers=("convergence", "prefix", "linearizable", "audit", "leadership"),
    issue=5167,
)
