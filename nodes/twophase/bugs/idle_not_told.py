"""A node without transactions takes no part in a cut of which discovery tells."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class IdleNotTold(Decisions):
    def takes_part(self, is_idle: bool) -> bool:
        return not is_idle


BUG = Bug(
    decides=IdleNotTold,
    does="an idle node takes no part in the cut",
    seen="a cut is reported as good and an idle server has no START and no FINISH",
    checkers=("cuts-finish",),
)
