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
    seen="with `simple`, masters keep different entries, and nobody brings those that one of them has lost",
    checkers=("txlog-order", "txlog-kept", "txlog-vote"),
)
