"""A POST does not raise the counter of a master that gets it."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class CounterNotRaised(Decisions):
    def counter_on_receipt(self, own: int, theirs: int) -> int:
        return own


BUG = Bug(
    decides=CounterNotRaised,
    does="a master that only receives keeps its counter",
    seen="nothing is added above the counter of an idle master: the cluster stalls",
    checkers=("txlog-drained",),
)
