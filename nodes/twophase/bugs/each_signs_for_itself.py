"""Every node signs with the cut that runs at that node."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions, Sign


class EachSignsForItself(Decisions):
    def sign_of_commit(self, received: Sign, running: Sign) -> Sign:
        return running


BUG = Bug(
    decides=EachSignsForItself,
    does="each node signs a transaction for itself",
    seen="a transaction that the near node committed BEFORE is AFTER where the finish comes later: it is torn",
    checkers=("cuts-transactions",),
)
