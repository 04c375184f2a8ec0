"""The client has its answer before a quorum has its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.spaces import show

if TYPE_CHECKING:
    from nodes.qsync.commits import Commits
    from nodes.qsync.limbo import Entry


class ConfirmEarly(Decisions):
    def written(self, commits: Commits, entry: Entry) -> None:
        if commits.is_owner and entry.wait_ack:
            show(entry.transaction)
            commits.answer(entry.transaction)


BUG = Bug(
    decides=ConfirmEarly,
    does="the client is answered and the row shown before the quorum; the entry stays in the limbo",
    seen="a timeout or another leader rolls an acknowledged write back",
    checkers=("linearizable", "quorum", "convergence", "audit"),
)
