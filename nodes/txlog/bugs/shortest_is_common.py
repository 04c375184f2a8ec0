"""A recovery takes all entries up to the end of the shortest queue for common ones."""

from __future__ import annotations

from collections.abc import Collection

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class ShortestIsCommon(Decisions):
    def in_common(self, shared: Collection[int], lengths: Collection[int]) -> int:
        return min(lengths)


BUG = Bug(
    decides=ShortestIsCommon,
    does="a recovery takes the length of the shortest queue for that of the common prefix of all",
    seen="masters keep different entries behind the recovery, or lose entries of the other branches",
    checkers=("txlog-order", "txlog-kept", "txlog-vote"),
)
