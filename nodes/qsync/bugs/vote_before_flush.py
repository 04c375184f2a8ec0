"""A voter forgets rows that are on their way to its disk."""

from __future__ import annotations

from nodes.kernel.vclock import Vclock
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.journal import Journal


class VoteBeforeFlush(Decisions):
    def asked_of_candidate(self, journal: Journal) -> Vclock:
        return journal.vclock


BUG = Bug(
    decides=VoteBeforeFlush,
    does="a voter compares the candidate's vclock with its rows on disk, and ignores its rows on the way there",
    seen="it votes for a node that lacks what it acknowledges a moment later: an acknowledged write is lost, or, where "
    "its CONFIRM came first, a node stops at the new leader's PROMOTE (split-brain)",
    checkers=("linearizable", "convergence", "audit", "leadership"),
    issue=7253,
)
