"""The slow and obvious twin of the search: try every order.

Only for tiny histories, and only for tests: the number of orders grows as the factorial of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.linearizable.models import ILLEGAL, Model, State
from checkers.linearizable.search import Call


def linearizable(model: Model, calls: Sequence[Call]) -> bool:
    """Whether some order of the calls is legal and respects real time; calls that never return may be left
    out.
    """
    return _orders(model, tuple(calls), model.initial)


def _orders(model: Model, left: tuple[Call, ...], state: State) -> bool:
    if all(call.complete is None for call in left):
        return True
    for position, call in enumerate(left):
        others = left[:position] + left[position + 1 :]
        if any(other.complete is not None and other.complete < call.invoke for other in others):
            continue
        result = model.step(state, call.action)
        if result is not ILLEGAL and _orders(model, others, result):
            return True
    return False
