"""An update stores what depends on the master that executes it."""

from __future__ import annotations

from nodes.txlog.bugs import Bug
from nodes.txlog.decisions import Decisions


class OwnValue(Decisions):
    def value_of(self, value: object, master: str) -> object:
        return value + int(master[-1]) if isinstance(value, int) and value % 7 == 0 else value


BUG = Bug(
    decides=OwnValue,
    does="an update comes to a different value on each master",
    seen="the states of masters differ while their queues are the same",
    checkers=("txlog-state",),
)
