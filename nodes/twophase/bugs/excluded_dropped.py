"""FINISH names no excluded transactions."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class ExcludedDropped(Decisions):
    def sets_of_finish(
        self, included: Sequence[str], excluded: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        return included, ()


BUG = Bug(
    decides=ExcludedDropped,
    does="FINISH drops the excluded transactions",
    seen="a transaction with a record before START that belongs behind the cut is BEFORE: it is torn",
    checkers=("cuts-transactions",),
)
