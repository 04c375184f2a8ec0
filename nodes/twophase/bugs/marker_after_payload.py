"""The payload of a message is taken in before its marker."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class MarkerAfterPayload(Decisions):
    marker_comes_first = False


BUG = Bug(
    decides=MarkerAfterPayload,
    does="the marker of a message is handled behind its payload",
    seen="the receiver takes the payload in BEFORE, and the sender was AFTER: transactions are torn",
    checkers=("cuts-messages",),
)
