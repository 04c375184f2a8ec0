"""Field types, keys and their order, as Tarantool's key definitions have them.

A *key* finds tuples of a space: the value of the one field of the primary index, or a tuple of the
values of its fields. Python takes True for 1, and a NaN equals nothing; a key is different (`part_of`).

Scalars are in this order: nil, boolean, number (NaN first), string, binary. Strings compare by their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from nodes.iproto.codes import Code

Tuple = tuple[object, ...]


class Rejected(Exception):
    """A request cannot be done. Carries Tarantool's code and its message, filled in with `arguments`.

    `message` replaces the code's own message, where that of later versions is longer.
    """

    def __init__(self, code: Code, *arguments: object, message: str = "") -> None:
        super().__init__(message or code.text(*arguments))
        self.code = code


class Truth(Enum):
    """Booleans as parts of a key."""

    NO = False
    YES = True


@dataclass(frozen=True, slots=True)
class Part:
    """One field of an index, counted from 0."""

    field: int
    type: str
    is_nullable: bool = False


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


_HAS_TYPE: dict[str, Callable[[object], bool]] = {
    "any": lambda value: True,
    "unsigned": lambda value: type(value) is int and value >= 0,
    "string": lambda value: type(value) is str,
    "number": _is_number,
    "double": lambda value: type(value) is float,
    "integer": lambda value: type(value) is int,
    "boolean": lambda value: type(value) is bool,
    "varbinary": lambda value: type(value) is bytes,
    "scalar": lambda value: type(value) in (int, str, bool, float, bytes),
    "array": lambda value: isinstance(value, list | tuple),
    "map": lambda value: isinstance(value, dict),
}
_OTHER_NAMES = {"str": "string", "num": "unsigned", "uint": "unsigned", "int": "integer", "*": "any"}


def type_name(name: str) -> str:
    """Tarantool's own name for a type in a definition; an unknown type holds any value."""
    name = name.lower()
    name = _OTHER_NAMES.get(name, name)
    return name if name in _HAS_TYPE else "any"


def has_type(value: object, type_: str) -> bool:
    """nil is of no type but `any`."""
    return _HAS_TYPE[type_](value)


def part_of(value: object) -> Hashable:
    """A field's value as part of a key: two parts are equal if the fields are."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is bool:
        return Truth.YES if value else Truth.NO
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value
    assert isinstance(value, Hashable), f"a key has no part {value!r}"
    return value


def order_of_part(part: object) -> tuple[int, Any]:
    """The sort key of a value."""
    match part:
        case None:
            return (0, 0)
        case bool() | Truth():
            return (1, part in (True, Truth.YES))
        case float() if math.isnan(part):
            return (2, 0)
        case int() | float():
            return (3, part)
        case str():
            return (4, part.encode("utf-8", "surrogateescape"))
        case _:
            return (5, part)


Order = tuple[tuple[int, Any], ...]
"""The sort key of a key, part by part."""


def order_of_key(key: object) -> Order:
    """The sort key of a key of a single part or several."""
    if isinstance(key, tuple):
        return tuple(order_of_part(part) for part in key)
    return (order_of_part(key),)


def key_parts(values: Sequence[object], parts: Sequence[Part]) -> tuple[Hashable, ...]:
    """The checked parts of a search key, which may be shorter than the index."""
    if len(values) > len(parts):
        raise Rejected(Code.KEY_PART_COUNT, len(parts), len(values))
    for number, (value, part) in enumerate(zip(values, parts, strict=False)):
        if not (has_type(value, part.type) or (value is None and part.is_nullable)):
            raise Rejected(Code.KEY_PART_TYPE, number, part.type)
    return tuple(part_of(value) for value in values)


def exact_key(values: Sequence[object], parts: Sequence[Part]) -> Hashable:
    """A whole key, as spaces store it."""
    if len(values) != len(parts):
        raise Rejected(Code.EXACT_MATCH, len(parts), len(values))
    key = key_parts(values, parts)
    return key[0] if len(parts) == 1 else key
