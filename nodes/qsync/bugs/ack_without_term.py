"""An acknowledgement says nothing of its sender's term."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class AckWithoutTerm(Decisions):
    def term_of_acknowledgement(self, said: int, ours: int) -> int:
        return ours


BUG = Bug(
    decides=AckWithoutTerm,
    does="an acknowledgement counts whatever the term of the replica is, as in Tarantool up to 2.10",
    seen="a deposed owner confirms what the replica has thrown away as rows of an old term",
    checkers=("linearizable", "convergence", "audit", "leadership"),
)
