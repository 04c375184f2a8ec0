"""Elements of the initial state, as operations that ended before the first operation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import value_words


def with_first_elements(history: History, f: str) -> History:
    """The history with an operation `f` for each element of its start. Their events are before the first one.

    Raises ModelError for a start that is no list.
    """
    if history.start.is_plain:
        return history
    first = [
        addition
        for key in sorted(history.keys(), key=str)
        for addition in _first(f, key, history.start.of(key))
    ]
    return replace(history, operations=(*first, *history.operations))


def _first(f: str, key: str | None, elements: Any) -> Iterator[Operation]:
    if elements is not None and not isinstance(elements, list | tuple):
        raise ModelError(
            expected="a list of elements as the start value", came=value_words(elements, 60), index=None
        )
    for place, element in enumerate(elements or (), start=-len(elements or ())):
        yield Operation(
            type="ok",
            process=-1,
            f=f,
            key=key,
            value=element,
            invoke_index=2 * place,
            invoke_ns=0,
            complete_index=2 * place + 1,
            complete_ns=0,
        )
