"""The last transaction that a round adds stays in the incoming queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class LastAddedStays(Decisions):
    def queue_after_add(self, queue: Sequence[Ref], added: Collection[str]) -> list[Ref]:
        last = max((ref for ref in queue if ref.id in added), default=None)
        return [ref for ref in queue if ref.id not in added or ref == last]


BUG = Bug(
    decides=LastAddedStays,
    does="the last transaction that a round has added stays in the incoming queue",
    seen="a transaction is synchronised, and executed, more than once",
    checkers=("txlog-once",),
)
