"""Rare turns for the table *sometimes*: masters count all of them (`nodes.txlog.sometimes`)."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.history.history import History
from harness.plan.plan import Plan
from nodes.txlog import sometimes


class HasRareTurns:
    """Implements `harness.systems.system.CountsRareTurns`."""

    @property
    def rare_turns(self) -> tuple[str, ...]:
        return sometimes.ROWS

    def rare_turns_of(self, plan: Plan, history: History) -> Mapping[str, int]:
        return {}
