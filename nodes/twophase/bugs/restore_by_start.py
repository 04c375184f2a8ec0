"""Restore takes what stands before START and looks at no set."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class RestoreByStart(Decisions):
    def is_in(self, is_before_start: bool, is_included: bool, is_excluded: bool) -> bool:
        return is_before_start


BUG = Bug(
    decides=RestoreByStart,
    does="restore goes by START alone",
    seen="the restored state lacks transactions in flight on some nodes, and has others that come later",
    checkers=("cuts-state",),
)
