"""Transactions of a POST with a different base are not merged."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class MergeOfSameBase(Decisions):
    def is_merged(self, is_same_base: bool) -> bool:
        return is_same_base


BUG = Bug(
    decides=MergeOfSameBase,
    does="transactions are merged only from POSTs for the own base, while the counter of every POST counts",
    seen="a time-out round adds past a transaction that came with a different base",
    checkers=("txlog-order",),
)
