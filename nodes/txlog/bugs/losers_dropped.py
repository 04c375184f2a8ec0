"""A rejoin forgets the transactions of the losing branches."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class LosersDropped(Decisions):
    def kept_of_losers(self, refs: list[Ref]) -> list[Ref]:
        return []


BUG = Bug(
    decides=LosersDropped,
    does="a rejoin does not submit the losers' transactions anew",
    seen="a transaction that a minority had accepted is on no master",
    checkers=("txlog-kept",),
)
