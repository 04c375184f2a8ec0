"""Synchronised transactions stay in the incoming queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class AddedStayQueued(Decisions):
    def queue_after_add(self, queue: Sequence[Ref], added: Collection[str]) -> list[Ref]:
        return list(queue)


BUG = Bug(
    decides=AddedStayQueued,
    does="transactions that a round has added stay in the incoming queue",
    seen="a transaction is synchronised, and executed, more than once",
    checkers=("txlog-once",),
)
