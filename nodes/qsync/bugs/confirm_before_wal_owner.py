"""The owner's CONFIRM takes effect before it is in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.qsync.bugs import Bug
from nodes.qsync.bugs._confirm_first import ConfirmFirst

if TYPE_CHECKING:
    from nodes.qsync.commits import Commits
    from nodes.qsync.journal import Write


class ConfirmBeforeWalOwner(ConfirmFirst):
    def confirms_first(self, commits: Commits, write: Write) -> bool:
        return write.origin == commits.configuration.me.id or super().confirms_first(commits, write)


BUG = Bug(
    decides=ConfirmBeforeWalOwner,
    does="the owner commits and answers before its CONFIRM is in the log",
    seen="after a crash the owner has it pending again, shows the old value, and may roll it back",
    checkers=("linearizable", "convergence", "quorum", "audit"),
    issue=5213,
)
