"""A compare-and-set fails on what is not confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.evaluation import Outcome
from nodes.qsync.spaces import Transaction


class CasFromPending(Decisions):
    def answer_waits_for(self, outcome: Outcome) -> Transaction | None:
        return None


BUG = Bug(
    decides=CasFromPending,
    does="a compare-and-set that failed is answered at once, though the value it saw is not confirmed",
    seen="it observed a value that is rolled back",
    checkers=("linearizable",),
)
