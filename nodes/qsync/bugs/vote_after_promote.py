"""A node tells its vote, and writes it to the log a second later."""

from __future__ import annotations

from nodes.kernel.events import Instant
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions

LATE_NS = 1_000_000_000


class VoteAfterPromote(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._term, self._since_ns = 0, 0

    def is_vote_due(self, term: int, now: Instant) -> bool:
        if term != self._term:
            self._term, self._since_ns = term, now.monotonic_ns
        return now.monotonic_ns - self._since_ns > LATE_NS


BUG = Bug(
    decides=VoteAfterPromote,
    does="a node tells its term and its vote before they are on disk, and writes them a second later",
    seen="a restore of a cut has a PROMOTE without the votes for it: the nodes may vote once more in its term",
    checkers=("cuts-quorum",),
)
