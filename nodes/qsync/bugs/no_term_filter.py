"""Rows of an owner are applied although its term is over."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.filter import Promotion, Rows
from nodes.qsync.limbo import Limbo


class NoTermFilter(Decisions):
    def taken_in(self, rows: Rows, origin: int, limbo: Limbo, pending: Sequence[Promotion]) -> Rows:
        return rows


BUG = Bug(
    decides=NoTermFilter,
    does="rows and decisions of an owner with a past term are applied as if it still were the owner",
    seen="rolled-back transactions return",
    checkers=("convergence", "linearizable", "audit", "crash", "prefix", "dirty"),
    issue=5445,
)
