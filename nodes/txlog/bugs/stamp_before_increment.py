"""A transaction gets the counter as it was before the transaction raised it."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class StampBeforeIncrement(Decisions):
    def timestamp(self, before: int, after: int) -> int:
        return before


BUG = Bug(
    decides=StampBeforeIncrement,
    does="a transaction's timestamp is the counter before its increment",
    seen="a time-out round adds up to a counter below which transactions still come: queues are out of order",
    checkers=("txlog-order",),
)
