"""When two values of a history are the same, and how a sentence writes one.

Values are JSON's, and one more: an EDN set (`Set`), which JSON would have to write as an array.

| equal | different |
|---|---|
| objects with the same members in any order; 0.0 and -0.0 | true and 1; 1 and 1.0; 1 and "1"; null and NaN |
| sets with the same elements in any order | a set and an array |

The reader of a notation applies that notation's own equalities (`checkers.history.foreign.edn`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

import msgspec

LIMIT = 120
Value = Hashable
"""A value of which `==` and `hash` say what `identity` means."""


class Set(list[Any]):
    """The elements of an EDN set, each once. Models of collections read it as a list; it never equals an array."""


class Composite:
    """The identity of a value that is neither null nor int nor str. Two are equal if they are written the same."""

    __slots__ = ("text", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.text = _text(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composite) and self.text == other.text

    def __hash__(self) -> int:
        return hash((Composite, self.text))

    def __str__(self) -> str:
        return value_words(self.value)

    def __repr__(self) -> str:
        return self.text


def identity(value: Any) -> Value:
    """The value as something hashable that equals only what is the same value."""
    if value is None or type(value) is int or type(value) is str or type(value) is Composite:
        return value
    return Composite(value)


_TAKEN_APART = (list, tuple, dict, float)


def _text(value: Any) -> str:
    """JSON with its members in order, except where JSON makes no difference: sets, -0.0, and what is not finite."""
    match value:
        case float() if not value or not isfinite(value):
            return repr(value or 0.0)
        case Set():
            return f"#{{{','.join(sorted({_text(part) for part in value}))}}}"
        case list() | tuple() if any(isinstance(part, _TAKEN_APART) for part in value):
            return f"[{','.join(map(_text, value))}]"
        case dict() if any(isinstance(part, _TAKEN_APART) for part in value.values()):
            members = sorted((msgspec.json.encode(key).decode(), part) for key, part in value.items())
            return f"{{{','.join(f'{key}:{_text(part)}' for key, part in members)}}}"
    return msgspec.json.encode(value, order="sorted").decode()


Number = int | Fraction


def exact(value: Any) -> Number | None:
    """A number as it was written, without a float's rounding: 0.1 is a tenth. None for what is no finite number."""
    if isinstance(value, Composite):
        value = value.value
    if type(value) is int:
        return value
    if type(value) is not float or not isfinite(value):
        return None
    number = Fraction(repr(value))
    return number.numerator if number.denominator == 1 else number


def in_json(number: Number) -> int | float:
    """The number for a JSON document: a whole one stays exact, and one beyond all floats is rounded to such a one."""
    return number if isinstance(number, int) else float(number) if abs(number) < 1 << 1023 else round(number)


def value_words(value: object, limit: int = LIMIT) -> str:
    """A value as a sentence has it: `nothing` for null, text without quotes, lists and objects by their parts.

    Beyond `limit` it ends with an ellipsis.
    """
    match value:
        case None:
            text = "nothing"
        case bool():
            text = "true" if value else "false"
        case "":
            text = '""'
        case bytes():
            text = value.decode(errors="replace")
        case Fraction():
            text = _decimal(value)
        case Mapping():
            text = (
                f"{{{', '.join(f'{value_words(key)}: {value_words(part)}' for key, part in value.items())}}}"
            )
        case Set():
            text = f"#{{{', '.join(map(value_words, value))}}}"
        case list() | tuple():
            text = f"[{', '.join(map(value_words, value))}]"
        case _:
            text = str(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _decimal(number: Fraction) -> str:
    """Its digits: a sum of decimals has finitely many."""
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    scaled = str(abs(number.numerator) * 10**digits // number.denominator).rjust(digits + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{scaled[:-digits]}.{scaled[-digits:]}" if digits else f"{sign}{scaled}"


def many(count: int, thing: str) -> str:
    """`1 fault`, `1,024 faults`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def often(count: int) -> str:
    """`once`, `twice`, `1,024 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def vclock_words(vclock: Mapping[int, int] | Mapping[str, int]) -> str:
    """`1:146, 2:162`: up to which lsn the rows of each replica are there."""
    return ", ".join(f"{origin}:{lsn}" for origin, lsn in vclock.items()) or "empty"
