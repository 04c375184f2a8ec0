"""A PROMOTE goes on with the quorum that it began with."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class PromoteKeepsOldQuorum(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._first: dict[int, int] = {}

    def quorum_of_promote(self, quorum: int, term: int) -> int:
        return self._first.setdefault(term, quorum)


BUG = Bug(
    decides=PromoteKeepsOldQuorum,
    does="a PROMOTE waits for the quorum that was set when it began, although it has changed since",
    seen="after the quorum was lowered, a leader with enough followers stays read-only",
    checkers=("leadership",),
    issue=11574,
)
