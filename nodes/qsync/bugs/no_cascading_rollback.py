"""A timeout rolls back one transaction, and not those behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions

if TYPE_CHECKING:
    from nodes.qsync.commits import Commits
    from nodes.qsync.limbo import Entry


class NoCascadingRollback(Decisions):
    def rolled_back(self, commits: Commits, lsn: int) -> list[Entry]:
        discarded = super().rolled_back(commits, lsn)
        while commits.is_owner and len(discarded) > 1:
            commits.limbo.append(discarded.pop(-2))
        return discarded


BUG = Bug(
    decides=NoCascadingRollback,
    does="a timeout rolls back the oldest transaction alone and leaves those behind it in the owner's queue",
    seen="the owner commits what its log and its replicas have rolled back: memory and log differ, replicas stop",
    checkers=("convergence", "linearizable", "audit", "leadership", "crash"),
    issue=5140,
)
