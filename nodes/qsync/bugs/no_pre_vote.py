"""A node stands for election whether or not it hears a leader or a quorum."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Election


class NoPreVote(Decisions):
    def is_held_back(self, election: Election, connected: int) -> bool:
        return False


BUG = Bug(
    decides=NoPreVote,
    does="a node that hears no other node stands for election again and again",
    seen="its term runs away, and it deposes a healthy leader when it is back",
    checkers=("leadership",),
    issue=6654,
)
