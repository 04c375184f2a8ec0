"""A split cluster executes before MaxPeerLag is over."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class NoLagWindow(Decisions):
    def may_execute(self, is_split: bool, is_lag_over: bool) -> bool:
        return True


BUG = Bug(
    decides=NoLagWindow,
    does="a master executes at once after a split",
    seen="a transaction is executed between a split and the end of MaxPeerLag",
    checkers=("txlog-policy",),
)
