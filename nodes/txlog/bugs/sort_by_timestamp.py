"""Incoming queues are sorted by timestamp alone."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class SortByTimestamp(Decisions):
    def sort_key(self, ref: Ref) -> tuple[object, ...]:
        return (ref.ts,)


BUG = Bug(
    decides=SortByTimestamp,
    does="transactions with the same timestamp stay in the order in which they came",
    seen="masters add transactions with the same timestamp in different orders, or never",
    checkers=("txlog-order",),
)
