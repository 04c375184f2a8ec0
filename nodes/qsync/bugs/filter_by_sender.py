"""The term filter judges the peer that passes rows on."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.filter import Rows


class FilterBySender(Decisions):
    def judged_origin(self, rows: Rows, sender: int) -> int:
        return sender


BUG = Bug(
    decides=FilterBySender,
    does="the term filter asks for the term of the peer that sends a row, not of the node that wrote it",
    seen="an old owner's rolled-back rows return over a third node",
    checkers=("convergence", "linearizable", "audit", "crash", "prefix", "leadership"),
    issue=6035,
)
