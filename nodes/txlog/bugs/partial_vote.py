"""A majority of digests is enough for a vote."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class PartialVote(Decisions):
    def may_vote(self, digests: int, masters: int) -> bool:
        return digests > masters // 2


BUG = Bug(
    decides=PartialVote,
    does="a master votes when it has the digests of a majority",
    seen="masters that have different digests elect different winners",
    checkers=("txlog-vote",),
)
