"""In one phase the backup leaves the sign to the near node, which commits last."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions, Sign


class NearSignsOnePhase(Decisions):
    def sign_of_one_phase(self, running: Sign) -> Sign:
        return None


BUG = Bug(
    decides=NearSignsOnePhase,
    does="the node that commits first does not sign a one-phase commit: the near node would",
    seen="a one-phase commit behind the cut is BEFORE at the primary that waited for it: it is torn",
    checkers=("cuts-transactions",),
)
