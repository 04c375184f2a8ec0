"""FINISH is written without waiting for the collected transactions."""

from __future__ import annotations

from collections.abc import Collection

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class FinishAtOnce(Decisions):
    def awaited(self, collected: Collection[str]) -> Collection[str]:
        return ()


BUG = Bug(
    decides=FinishAtOnce,
    does="FINISH is written without waiting for the collected transactions",
    seen="transactions in flight are in no set: they are torn",
    checkers=("cuts-transactions",),
)
