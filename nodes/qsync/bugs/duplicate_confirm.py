"""Each CONFIRM stands in the log twice."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class DuplicateConfirm(Decisions):
    def confirms(self, lsn: int) -> tuple[int, ...]:
        return (lsn, lsn)


BUG = Bug(
    decides=DuplicateConfirm,
    does="the owner writes every CONFIRM twice",
    seen="nothing, except in the logs; Tarantool since 2.10 stops following such an owner",
    checkers=("audit", "leadership"),
    issue=5144,
)
