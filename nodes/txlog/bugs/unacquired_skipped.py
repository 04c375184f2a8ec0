"""A round adds what stands behind a transaction that is not acquired."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class UnacquiredSkipped(Decisions):
    def own_part(self, queue: Sequence[Ref], is_acquired: Callable[[Ref], bool]) -> list[Ref]:
        return [ref for ref in queue if is_acquired(ref)]


BUG = Bug(
    decides=UnacquiredSkipped,
    does="a round skips a transaction that is not acquired, and adds those behind it",
    seen="masters that have acquired different transactions add them in different orders",
    checkers=("txlog-order",),
)
