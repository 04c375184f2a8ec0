"""Time-out rounds do not heed the last counters of the missing masters."""

from __future__ import annotations

from collections.abc import Collection

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class MissingUnbounded(Decisions):
    def bound(self, collected: Collection[int], last_of_missing: Collection[int]) -> int:
        return min(collected)


BUG = Bug(
    decides=MissingUnbounded,
    does="a time-out round adds without the last known counters of the missing masters",
    seen="a missing master's transaction sorts before what was added without it: queues differ",
    checkers=("txlog-order",),
)
