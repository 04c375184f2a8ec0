"""A rejoin puts a transaction into the queue once for each branch that has it."""

from __future__ import annotations

from collections.abc import Iterable

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class RejoinWithDuplicates(Decisions):
    def to_queue_at_rejoin(self, rest: Iterable[Ref]) -> list[Ref]:
        return list(rest)


BUG = Bug(
    decides=RejoinWithDuplicates,
    does="a rejoin takes transactions of several branches without looking for duplicates",
    seen="a transaction is synchronised, and executed, more than once",
    checkers=("txlog-once",),
)
