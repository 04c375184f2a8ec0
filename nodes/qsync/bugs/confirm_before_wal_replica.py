"""A replica's CONFIRM takes effect before it is in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.qsync.bugs import Bug
from nodes.qsync.bugs._confirm_first import ConfirmFirst

if TYPE_CHECKING:
    from nodes.qsync.commits import Commits
    from nodes.qsync.journal import Write


class ConfirmBeforeWalReplica(ConfirmFirst):
    def confirms_first(self, commits: Commits, write: Write) -> bool:
        return write.origin != commits.configuration.me.id or super().confirms_first(commits, write)


BUG = Bug(
    decides=ConfirmBeforeWalReplica,
    does="a replica applies a CONFIRM before it is in its log",
    seen="its read-confirmed reads go back after a crash",
    checkers=("prefix", "linearizable", "audit"),
    issue=5213,
)
