"""What the structs of Fressian stand for: their fields in, the values that `edn` reads from the same value's text out.

The tags are Fressian's, Clojure's (data.fressian) and Jepsen's (`store/fressian`, `store/format`). A value that EDN has
no notation for is what it holds: an atom its value, a record its map, a throwable its data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from checkers.history.foreign import edn
from checkers.history.foreign.edn import Spelled
from checkers.history.values import Set

Fields = list[Any]

_INTEGER_BYTES_MAX: Final = 1_600
"""Python writes no longer number in decimal: it has 4,300 digits at most."""
_TIMES_MAX: Final = 1_000


class Misfit(Exception):
    """The fields are none of this tag, or the bytes are no text."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    """Jepsen's reference to another block of the file."""

    block: int


def text(data: bytes) -> str:
    """A text in CESU-8, or UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        units = data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Misfit from error
    return units.decode("utf-16-le", "replace")


def _bytes(data: Any) -> bytes:
    try:
        return bytes(data)
    except (TypeError, ValueError) as error:
        raise Misfit from error


def _integer(data: Any) -> int:
    if not isinstance(data, list) or len(data) > _INTEGER_BYTES_MAX:
        raise Misfit
    return int.from_bytes(_bytes(data), "big", signed=True)


def _named(prefix: str) -> Callable[[Fields], Spelled]:
    spelled = lru_cache(maxsize=1 << 14)(lambda name: Spelled.of(name, prefix + name))

    def of(fields: Fields) -> Spelled:
        match fields:
            case [None, str() as name]:
                return spelled(name)
            case [str() as space, str() as name]:
                return spelled(f"{space}/{name}")
        raise Misfit

    return of


def _tag(name: str) -> Callable[[Fields], Any]:
    def of(fields: Fields) -> Any:
        match fields:
            case [str() as text]:
                return edn.tagged(name, text)
        raise Misfit

    return of


def _only(fields: Fields) -> Any:
    match fields:
        case [value]:
            return value
    raise Misfit


def _map(fields: Fields) -> dict[str, Any]:
    match fields:
        case [list() as members] if len(members) % 2 == 0:
            return edn.mapped(members)
    raise Misfit


def _set(fields: Fields) -> Set:
    """Jepsen writes nil for an empty one."""
    match fields:
        case [list() | None as members]:
            return Set(members or ())
    raise Misfit


def _multiset(fields: Fields) -> Set:
    """The map of its elements and how often each is in it. What is no text as a key of a map is read from its EDN."""
    match fields:
        case [dict() as times] if all(
            type(each) is int and 0 <= each <= _TIMES_MAX for each in times.values()
        ):
            elements = [(edn.values_in(edn.spelling(key)), each) for key, each in times.items()]
            return Set(value for values, each in elements for value in values * each)
    raise Misfit


def _record(fields: Fields) -> Any:
    match fields:
        case [str(), dict() as members]:
            return members
    raise Misfit


def _op(fields: Fields) -> dict[str, Any]:
    match fields:
        case [index, time, kind, process, f, value, dict() | None as more]:
            named = {"index": index, "time": time, "type": kind, "process": process, "f": f, "value": value}
            return {**named, **(more or {})}
    raise Misfit


def _ratio(fields: Fields) -> Spelled:
    match fields:
        case [int() as above, int() as below]:
            return Spelled.of(f"{above}/{below}", f"{above}/{below}")
    raise Misfit


def _decimal(fields: Fields) -> Any:
    match fields:
        case [digits, int() as scale] if abs(scale) < 1 << 31:
            return edn.atom(f"{_integer(digits)}E{-scale}M")
    raise Misfit


def _character(fields: Fields) -> Spelled:
    match fields:
        case [int() as number] if 0 <= number < 1 << 16:
            character = text(chr(number).encode("utf-8", "surrogatepass"))
            return Spelled.of(character, f"\\{character}")
    raise Misfit


def _uuid(fields: Fields) -> Any:
    match fields:
        case [list() as data] if len(data) == 16:
            digits = _bytes(data).hex()
            parts = (digits[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
            return edn.tagged("#uuid", "-".join(parts))
    raise Misfit


def _instant(fields: Fields) -> Any:
    match fields:
        case [int() as milliseconds]:
            try:
                time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
            except OverflowError as error:
                raise Misfit from error
            return edn.tagged("#inst", f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}-00:00")
    raise Misfit


def _reference(fields: Fields) -> BlockRef:
    match fields:
        case [int() as block]:
            return BlockRef(block)
    raise Misfit


MADE: Final[dict[str, Callable[[Fields], Any]]] = {
    "map": _map,
    "set": _set,
    "key": _named(":"),
    "sym": _named(""),
    "bigint": lambda fields: _integer(_only(fields)),
    "bigdec": _decimal,
    "ratio": _ratio,
    "char": _character,
    "uuid": _uuid,
    "inst": _instant,
    "uri": _tag("#uri"),
    "regex": _only,
    "byte": _only,
    "record": _record,
    "atom": _only,
    "vec": _only,
    "throwable": _only,
    "date-time": _tag("#clj-time/date-time"),
    "instant": _tag("#inst"),
    "persistent-hash-set": _set,
    "persistent-sorted-set": _set,
    "map-entry": list,
    "multiset": _multiset,
    "jepsen.history.Op": _op,
    "block-ref": _reference,
}
