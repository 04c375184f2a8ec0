"""A master that starts again counts from 0."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class CounterReset(Decisions):
    def counter_after_restart(self, counter: int) -> int:
        return 0


BUG = Bug(
    decides=CounterReset,
    does="the counter begins at 0 after a restart",
    seen="new transactions sort before synchronised ones: queues are out of order",
    checkers=("txlog-order",),
)
