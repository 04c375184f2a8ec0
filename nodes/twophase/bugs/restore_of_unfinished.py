"""A cut that only some servers have finished is restored."""

from __future__ import annotations

from collections.abc import Collection

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class RestoreOfUnfinished(Decisions):
    def is_restorable(
        self, finished: Collection[str], taken_back: Collection[str], baseline: Collection[str]
    ) -> bool:
        return bool(finished)


BUG = Bug(
    decides=RestoreOfUnfinished,
    does="a cut is restored that only some servers have finished",
    seen="the cluster is restored by half, or to a cut that has failed",
    checkers=("cuts-state",),
)
