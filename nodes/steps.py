"""Transactions of the reference stores: lists of steps `[word, space, key, …]`, which a client sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.iproto.packing import pack

Step = list[Any]
DEEPEST = 100
"""So many lists and maps can stand in each other in a transaction. Messages and records add levels of their own, and
MessagePack reads no more than about a thousand."""


class WrongSteps(ValueError):
    """The message says what was expected and what came."""


def checked(steps: object, is_known: Callable[[Step], bool]) -> list[Step]:
    """The steps that a client sent. `is_known`: a step → whether the store can do such a step. Raises WrongSteps."""
    if not _is_shallow(steps, DEEPEST):
        raise WrongSteps(f"expected at most {DEEPEST} lists and maps in each other, got more")
    if not isinstance(steps, list) or not steps:
        raise WrongSteps(f"expected a list of steps, got {steps!r}"[:100])
    for step in steps:
        match step:
            case [_, _, bool(), *_]:
                pass  # it equals a number, and is packed differently
            case list() if is_known(step):
                continue
        raise WrongSteps(f"expected a step such as [read, space, key], got {step!r}"[:100])
    return steps


def is_same(value: object, other: object) -> bool:
    """Whether clients see one value in both; a tuple is a list. To Python `True`, 1 and 1.0 are equal, and what is no
    number is not equal to itself."""
    return pack(_in_order(value)) == pack(_in_order(other))


def _in_order(value: object) -> object:
    """With the keys of maps in one order."""
    match value:
        case list() | tuple():
            return [_in_order(each) for each in value]
        case dict():
            return {key: _in_order(value[key]) for key in sorted(value, key=pack)}
    return value


def _is_shallow(value: object, levels: int) -> bool:
    match value:
        case list():
            return levels > 0 and all(_is_shallow(each, levels - 1) for each in value)
        case dict():
            return levels > 0 and all(_is_shallow(each, levels - 1) for each in value.values())
    return True
