"""Finish messages do not say after which cut the transaction committed."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions, Sign


class FinishWithoutSign(Decisions):
    def sign_in_finish(self, signed: Sign, running: Sign) -> Sign:
        return None


BUG = Bug(
    decides=FinishWithoutSign,
    does="finish messages carry no sign",
    seen="a participant that began the cut earlier than it finishes takes the transaction as BEFORE: it is torn",
    checkers=("cuts-transactions",),
)
