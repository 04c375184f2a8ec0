"""The effects of a transaction's steps on values, one after the other.

| step | result |
|---|---|
| `["read", space, key]` | the value, None if there is none |
| `["insert", space, key, value]` | fails if there is a value |
| `["write", space, key, value]` | |
| `["cas", space, key, old, new]` | a mismatch if the value is not `old` |
| `["append", space, key, element]` | |
| `["take", space, key]` | the first element of the list, which is taken off it; None: the list is empty |
| `["add", space, key, amount, least]` | the sum; a mismatch if that is less than `least` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodes.steps import Step, is_same

LIMIT = 2**63
"""Messages and records hold whole numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A compare failed: the value is `found`."""

    found: object


class Impossible(Exception):
    """The step can never be done: "duplicate-key" or "illegal-parameters"."""


def is_known(step: Step) -> bool:
    """Whether a client can ask for this step."""
    match step:
        case ["read" | "take", str(), str() | int()]:
            return True
        case ["insert" | "write" | "append", str(), str() | int(), _]:
            return True
        case ["cas", str(), str() | int(), _, _]:
            return True
        case ["add", str(), str() | int(), int() as amount, None | int() as least]:
            return not isinstance(amount, bool) and not isinstance(least, bool)
    return False


def evaluated(step: Step, old: Any) -> tuple[object, object] | Mismatch:
    """Result and new value. Raises Impossible."""
    match step:
        case ["read", *_]:
            return old, old
        case ["insert", _, _, value]:
            if old is not None:
                raise Impossible("duplicate-key")
            return True, value
        case ["write", _, _, value]:
            return True, value
        case ["cas", _, _, wanted, value]:
            return (True, value) if is_same(old, wanted) else Mismatch(old)
        case ["append", _, _, element]:
            return True, [*_elements(old), element]
        case ["take", *_]:
            elements = _elements(old)
            return (elements[0], elements[1:]) if elements else (None, old)
        case ["add", _, _, amount, least]:
            if isinstance(old, bool) or not isinstance(old, int | None):
                raise Impossible("illegal-parameters")
            total = (old or 0) + amount
            if not -LIMIT <= total < LIMIT:
                raise Impossible("illegal-parameters")
            return Mismatch(old or 0) if least is not None and total < least else (total, total)
    raise AssertionError(step)


def _elements(value: object) -> list[object]:
    if not isinstance(value, list | None):
        raise Impossible("illegal-parameters")
    return value or []
