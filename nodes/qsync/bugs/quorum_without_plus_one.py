"""A quorum is half of the members."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class QuorumWithoutPlusOne(Decisions):
    def quorum_size(self, quorum: int | str, members: int) -> int:
        return max(members // 2, 1)


BUG = Bug(
    decides=QuorumWithoutPlusOne,
    does="the default quorum is N/2, without the + 1",
    seen="with an even number of nodes two halves commit",
    checkers=("linearizable", "convergence", "quorum", "crash", "leadership", "audit"),
)
