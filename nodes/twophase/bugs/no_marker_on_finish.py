"""Finish messages carry no marker."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class NoMarkerOnFinish(Decisions):
    def is_marked(self, word: str) -> bool:
        return word not in ("finish", "backup-finish")


BUG = Bug(
    decides=NoMarkerOnFinish,
    does="finish messages carry no marker",
    seen="a participant commits by a finish of the other side, and begins the cut later: the transaction is torn",
    checkers=("cuts-messages",),
)
