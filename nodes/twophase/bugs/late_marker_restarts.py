"""A node forgets a cut when all have finished it, though marked messages can still arrive."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class LateMarkerRestarts(Decisions):
    def is_known(self, is_seen: bool, is_running: bool) -> bool:
        return is_running


BUG = Bug(
    decides=LateMarkerRestarts,
    does="the cut is forgotten when all nodes have finished it, though marked messages can still arrive",
    seen="a late marker begins the same cut once more: START stands twice in the log",
    checkers=("cuts-form",),
)
