"""A restore takes the state of the backup, and keeps the executed index."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class RestoreKeepsIndex(Decisions):
    def executed_after_restore(self, executed: int, restored: int) -> int:
        return executed


BUG = Bug(
    decides=RestoreKeepsIndex,
    does="a restore does not put the executed index back",
    seen="transactions behind the backup are never executed on the restored master",
    checkers=("txlog-executed",),
)
