"""Linearizable: one order of all operations keeps real time and explains every answer.

Herlihy and Wing, *Linearizability: A Correctness Condition for Concurrent Objects*, TOPLAS 1990. All keys are looked at
together, so locality is not assumed. Operations without answer may happen at any later time, or never. Every order is
tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from checkers.history import History
from tests.checkers.brute.objects import IMPOSSIBLE, OF_ALL_KEYS, STEPS, Call, calls_of

Before = Callable[[Call, Call], bool]


def linearizable(model: str, history: History) -> bool:
    return has_order(model, calls_of(history), Call.precedes)


def has_order(model: str, calls: Sequence[Call], before: Before) -> bool:
    """Whether the calls, and as many as need be of those without answer, have an order that the model explains."""
    return _go_on(model, calls, before, {})


def _go_on(model: str, left: Sequence[Call], before: Before, held: dict[str | None, Any]) -> bool:
    if not any(call.answered for call in left):
        return True
    for call in left:
        if any(before(other, call) for other in left):
            continue
        name = None if model in OF_ALL_KEYS else call.key
        after = STEPS[model](held.get(name), call)
        rest = [other for other in left if other is not call]
        if after is not IMPOSSIBLE and _go_on(model, rest, before, {**held, name: after}):
            return True
    return False
