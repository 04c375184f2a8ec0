"""FINISH names included transactions as excluded, and the other way round."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class SetsSwapped(Decisions):
    def sets_of_finish(
        self, included: Sequence[str], excluded: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        return excluded, included


BUG = Bug(
    decides=SetsSwapped,
    does="FINISH has its two sets in each other's place",
    seen="a transaction in flight is AFTER at this node, and BEFORE where it was committed already: it is torn",
    checkers=("cuts-form",),
)
