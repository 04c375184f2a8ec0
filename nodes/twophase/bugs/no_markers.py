"""Messages of transactions carry no marker: nodes learn of a cut by discovery alone."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class NoMarkers(Decisions):
    def is_marked(self, word: str) -> bool:
        return False


BUG = Bug(
    decides=NoMarkers,
    does="messages of transactions carry no marker",
    seen="a message of a node behind the cut reaches a node that has not begun it: transactions are torn",
    checkers=("cuts-messages",),
)
