"""A leader is writable before its PROMOTE has effect."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class WritableBeforePromote(Decisions):
    def is_writable(self, ro_reason: str | None, is_leader: bool) -> bool:
        return is_leader or super().is_writable(ro_reason, is_leader)


BUG = Bug(
    decides=WritableBeforePromote,
    does="a node that won the election is writable before its PROMOTE has effect",
    seen="writes enter a queue that another node still owns, and are answered without a quorum or rolled back",
    checkers=("linearizable", "convergence", "quorum", "audit", "crash", "leadership"),
    issue=12333,
)
