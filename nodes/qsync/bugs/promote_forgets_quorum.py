"""A PROMOTE names what its node knows to be confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.limbo import Limbo


class PromoteForgetsQuorum(Decisions):
    def kept_by_promote(self, limbo: Limbo) -> int:
        return limbo.known_confirmed_lsn


BUG = Bug(
    decides=PromoteForgetsQuorum,
    does="a new leader keeps only rows that it knows to be confirmed, and rolls back rows that a quorum acknowledged",
    seen="an acknowledged write is lost in a failover",
    checkers=("linearizable", "convergence", "audit", "leadership"),
    issue=5435,
)
