"""The client has its answer before a quorum has its row."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.limbo import Entry
from nodes.qsync.spaces import show


class ConfirmEarly(Decisions):
    def written(self, queue: Queue, entry: Entry) -> None:
        if queue.is_owner and entry.wait_ack:
            show(entry.transaction)
            queue.answer(entry.transaction)


BUG = Bug(
    decides=ConfirmEarly,
    does="the client is answered and the row shown before the quorum; the entry stays in the limbo",
    seen="a timeout or another leader rolls an acknowledged write back",
    checkers=("linearizable", "quorum", "convergence", "audit"),
)
