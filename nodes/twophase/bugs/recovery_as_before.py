"""A transaction that recovery committed counts as BEFORE."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class RecoveryAsBefore(Decisions):
    def spoils(self, is_recovered_commit: bool) -> bool:
        return False


BUG = Bug(
    decides=RecoveryAsBefore,
    does="a commit by recovery, which has no sign, counts as BEFORE",
    seen="it is BEFORE where recovery committed it, and AFTER where the near node still could: it is torn",
    checkers=("cuts-form",),
)
