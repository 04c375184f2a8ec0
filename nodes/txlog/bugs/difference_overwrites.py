"""A forerunner's entries replace what the own queue has behind their base."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class DifferenceOverwrites(Decisions):
    def may_append(self, is_prefix: bool) -> bool:
        return True


BUG = Bug(
    decides=DifferenceOverwrites,
    does="a difference is taken whether the own queue is a prefix of the forerunner's or not",
    seen="an old difference takes synchronised transactions away",
    checkers=("txlog-order",),
)
