"""Rows that contradict our history are applied."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.filter import Contradiction, Promotion, Rows
from nodes.qsync.limbo import Limbo


class NoSplitBrainCheck(Decisions):
    def taken_in(self, rows: Rows, origin: int, limbo: Limbo, pending: Sequence[Promotion]) -> Rows:
        try:
            return super().taken_in(rows, origin, limbo, pending)
        except Contradiction:
            return rows


BUG = Bug(
    decides=NoSplitBrainCheck,
    does="rows that contradict our history are applied instead of stopping the applier",
    seen="equal vclocks, different data",
    checkers=("convergence", "audit", "prefix", "crash", "linearizable"),
    issue=5295,
)
