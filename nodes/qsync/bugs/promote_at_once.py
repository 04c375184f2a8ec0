"""A PROMOTE takes effect without a quorum of its own."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.configuration import Configuration
from nodes.qsync.decisions import Decisions


class PromoteAtOnce(Decisions):
    def promotes_at_once(self, configuration: Configuration) -> bool:
        return True


BUG = Bug(
    decides=PromoteAtOnce,
    does="a PROMOTE takes effect when it is written, without a quorum of its own, as Tarantool ships it",
    seen="two leader deaths around a PROMOTE that reached no node lose an acknowledged write",
    checkers=("leadership", "linearizable", "convergence", "audit"),
    issue=9376,
)
