"""A leader without followers goes on leading."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Election


class NoFencing(Decisions):
    def is_fenced(self, election: Election, followers: int) -> bool:
        return False


BUG = Bug(
    decides=NoFencing,
    does="a leader that lost its quorum of followers does not resign",
    seen="an isolated old leader stays writable: asynchronous writes are acknowledged there and lost",
    checkers=("leadership",),
    issue=6661,
)
