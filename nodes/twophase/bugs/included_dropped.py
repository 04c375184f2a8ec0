"""FINISH names no included transactions."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class IncludedDropped(Decisions):
    def sets_of_finish(
        self, included: Sequence[str], excluded: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        return (), excluded


BUG = Bug(
    decides=IncludedDropped,
    does="FINISH drops the included transactions",
    seen="a transaction in flight is AFTER at this node, and BEFORE where it was committed already: it is torn",
    checkers=("cuts-transactions",),
)
