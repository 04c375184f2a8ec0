"""The sign is read when a finish message is sent, not when the transaction committed."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions, Sign


class SignAtSend(Decisions):
    def sign_in_finish(self, signed: Sign, running: Sign) -> Sign:
        return running


BUG = Bug(
    decides=SignAtSend,
    does="the sign is read when the finish message is sent, not when the transaction committed",
    seen="a transaction is BEFORE where it committed first and AFTER where the finish came later: it is torn",
    checkers=("cuts-transactions",),
)
