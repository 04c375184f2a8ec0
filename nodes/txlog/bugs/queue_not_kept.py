"""The incoming queue does not outlive the process."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions
from nodes.txlog.refs import Ref


class QueueNotKept(Decisions):
    def queue_after_restart(self, queue: list[Ref]) -> list[Ref]:
        return []


BUG = Bug(
    decides=QueueNotKept,
    does="the incoming queue is lost in a restart",
    seen="an accepted transaction is on no master, or is missing where others have it",
    checkers=("txlog-kept",),
)
