"""The operations of UPDATE and UPSERT, as Tarantool 2.6 does them.

| operation | does |
|---|---|
| `["=", field, value]` | sets; the field behind the last one is added |
| `["+" or "-", field, number]` | adds, subtracts |
| `["&" or "|" or "^", field, number]` | bits of an unsigned integer |
| `["!", field, value]` | inserts before the field; −1 is behind the last one |
| `["#", field, count]` | deletes so many fields |
| `[":", field, offset, length, string]` | replaces a piece of a string, counted in bytes |

A field is a number (from `index_base` on; negative ones count from the end), a name of the space's format, or a
path such as `[2].name[1]` into arrays and maps (there, positions count from 1). All operations are read first, then
done in order, each on the result of those before it. A field that was set or computed takes no second `+ - & | ^ :`.
An UPSERT leaves out operations that do not fit the tuple.

Decimals are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nodes.iproto.codes import Code
from nodes.qsync.keys import Rejected, Tuple

OPERATIONS_MAX = 4000
_INT32 = 1 << 31
_ARGUMENTS = dict.fromkeys("=!+-&|^#", 3) | {":": 5}
_TOKEN = re.compile(r"""\[(\d{1,9})\]|\[(?:"([^"]*)"|'([^']*)')\]|\.?([^\W\d]\w*)""")


Path = tuple[int | str | Rejected, ...]
"""Positions and keys; the last one may be why the rest of the path is none, which counts when it is to be followed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`field` counts from 0, from the end if negative; `path` leads into its value; `name`: as the client sent it."""

    verb: str
    field: int
    path: Path
    name: str | None
    arguments: tuple[object, ...]

    @property
    def said(self) -> str:
        """The field as error messages name it."""
        if self.name is not None:
            return f"'{self.name}'"
        return str(self.field + 1 if self.field >= 0 else self.field)


class _Touched(Enum):
    """Whether earlier operations changed a field as a whole, or within it."""

    NOT = 0
    WHOLE = 1
    WITHIN = 2


@dataclass(slots=True)
class _Level:
    """A tuple, or an array in it, while it is updated."""

    values: list[object]
    touched: list[_Touched]


def read_operations(operations: object, names: Sequence[str], index_base: int) -> list[Operation]:
    """Raises Rejected."""
    if not isinstance(operations, list | tuple):
        raise Rejected(Code.ILLEGAL_PARAMS, "update operations must be an array {{op,..}, {op,..}}")
    if len(operations) > OPERATIONS_MAX:
        raise Rejected(Code.ILLEGAL_PARAMS, "too many operations for update")
    return [_read(number, operation, names, index_base) for number, operation in enumerate(operations, 1)]


def updated(value: Tuple, operations: Sequence[Operation], *, skip_misfits: bool = False) -> Tuple:
    """The tuple after all operations. Raises Rejected, but not for a misfit that may be skipped."""
    level = _Level(list(value), [_Touched.NOT] * len(value))
    for operation in operations:
        try:
            _apply(level, operation)
        except Rejected:
            if not skip_misfits:
                raise
    return tuple(level.values)


# ---- reading


def _read(number: int, fields: object, names: Sequence[str], index_base: int) -> Operation:
    if not isinstance(fields, list | tuple):
        raise Rejected(Code.ILLEGAL_PARAMS, "update operation must be an array {op,..}")
    match list(fields):
        case []:
            raise Rejected(Code.ILLEGAL_PARAMS, "update operation must be an array {op,..}, got empty array")
        case [str(verb), *arguments]:
            pass
        case _:
            raise Rejected(Code.ILLEGAL_PARAMS, "update operation name must be a string")
    if verb not in _ARGUMENTS:
        raise Rejected(Code.UNKNOWN_UPDATE_OP, number, f'"{verb}"')
    if len(fields) != _ARGUMENTS[verb]:
        expected = f"wrong number of arguments, expected {_ARGUMENTS[verb]}, got {len(fields)}"
        raise Rejected(Code.UNKNOWN_UPDATE_OP, number, expected)
    field, path, name = _place(verb, arguments[0], names, index_base)
    operation = Operation(verb, field, path, name, tuple(arguments[1:]))
    _check_arguments(operation, index_base)
    if verb == ":" and index_base and isinstance(arguments[1], int) and arguments[1] >= 0:
        rest = (arguments[1] - index_base, *operation.arguments[1:])
        operation = Operation(verb, field, path, name, rest)
    return operation


def _place(verb: str, field: object, names: Sequence[str], index_base: int) -> tuple[int, Path, str | None]:
    if type(field) is int:
        if not -_INT32 <= field < _INT32:
            raise Rejected(Code.UPDATE_ARG_TYPE, verb, 1, "an integer")
        if 0 <= field < index_base:
            raise Rejected(Code.NO_SUCH_FIELD_NO, field)
        return (field - index_base if field >= 0 else field), (), None
    if type(field) is not str:
        raise Rejected(Code.ILLEGAL_PARAMS, "field id must be a number or a string")
    if field in names:
        return names.index(field), (), field
    first, *path = _tokens(field)
    if isinstance(first, Rejected):
        raise first
    if isinstance(first, str):
        if first not in names:
            raise Rejected(Code.NO_SUCH_FIELD_NAME, field)
        first = names.index(first)
    return first, tuple(path), field


def _tokens(path: str) -> Path:
    tokens: list[int | str | Rejected] = []
    place = 0
    while place < len(path):
        token = _TOKEN.match(path, place)
        number, double, single, name = token.groups() if token is not None else (None,) * 4
        lacks_dot = name is not None and place > 0 and path[place] != "."
        # Positions count from 1, and `[00]` is 0, too.
        if token is None or lacks_dot or (number and not int(number)):
            # Behind the dot or bracket, if something stands there.
            is_behind = path[place] == "." or (path[place] == "[" and place + 1 < len(path))
            why = f"invalid JSON in position {place + is_behind + 1}"
            return (*tokens, Rejected(Code.UPDATE_FIELD, f"'{path}'", why))
        tokens.append(int(number) - 1 if number else next(x for x in (double, single, name) if x is not None))
        place = token.end()
    if not tokens:
        raise Rejected(Code.NO_SUCH_FIELD_NAME, path)
    return tuple(tokens)


def _check_arguments(operation: Operation, index_base: int) -> None:
    verb, arguments = operation.verb, operation.arguments
    match verb:
        case "+" | "-" if type(arguments[0]) not in (int, float):
            raise _wrong_type(operation, "a number")
        case "&" | "|" | "^" | "#" if type(arguments[0]) is not int or arguments[0] < 0:
            raise _wrong_type(operation, "a positive integer")
        case "#" if arguments[0] == 0:
            raise Rejected(Code.UPDATE_FIELD, operation.said, "cannot delete 0 fields")
        case ":":
            _check_splice(operation, index_base)


def _check_splice(operation: Operation, index_base: int) -> None:
    offset, length, paste = operation.arguments
    if type(offset) is not int or not -_INT32 <= offset < _INT32:
        raise _wrong_type(operation, "an integer")
    if 0 <= offset < index_base:
        raise Rejected(Code.UPDATE_SPLICE, operation.said, "offset is out of bound")
    if type(length) is not int or not -_INT32 <= length < _INT32:
        raise _wrong_type(operation, "an integer")
    if type(paste) is not str:
        raise _wrong_type(operation, "a string")


def _wrong_type(operation: Operation, needed: str) -> Rejected:
    return Rejected(Code.UPDATE_ARG_TYPE, operation.verb, operation.said, needed)


def _no_such_field(operation: Operation) -> Rejected:
    if operation.name is None:
        return Rejected(Code.NO_SUCH_FIELD_NO, operation.field + (operation.field >= 0))
    return Rejected(Code.NO_SUCH_FIELD_NAME, operation.said)


# ---- doing


def _apply(level: _Level, operation: Operation) -> None:
    if operation.path:
        _apply_within(level, operation)
        return
    count = len(level.values)
    match operation.verb:
        case "=":
            if operation.field == count:
                _insert(level, count, operation)
            else:
                place = _existing(operation, count).field
                level.values[place], level.touched[place] = operation.arguments[0], _Touched.WHOLE
        case "!":
            _insert(level, _existing(operation, count + 1).field, operation)
        case "#":
            place = _existing(operation, count).field
            many = operation.arguments[0]
            assert isinstance(many, int)
            del level.values[place : place + many], level.touched[place : place + many]
        case _:
            located = _existing(operation, count)
            if level.touched[located.field] is not _Touched.NOT:
                raise _double(located)
            level.values[located.field] = computed(located, level.values[located.field])
            level.touched[located.field] = _Touched.WHOLE


def _insert(level: _Level, place: int, operation: Operation) -> None:
    level.values.insert(place, operation.arguments[0])
    level.touched.insert(place, _Touched.NOT)


def _existing(operation: Operation, count: int) -> Operation:
    """The operation with its field as a position below `count`."""
    place = operation.field + count if operation.field < 0 else operation.field
    if not 0 <= place < count:
        raise _no_such_field(operation)
    return replace(operation, field=place) if place != operation.field else operation


def _double(operation: Operation) -> Rejected:
    return Rejected(Code.UPDATE_FIELD, operation.said, "double update of the same field")


def _apply_within(level: _Level, operation: Operation) -> None:
    """An operation on a value within a field; the containers on the path are copied."""
    located = _existing(operation, len(level.values))
    if level.touched[located.field] is _Touched.WHOLE:
        raise _double(located)
    level.values[located.field] = _changed(level.values[located.field], located.path, located)
    level.touched[located.field] = _Touched.WITHIN


def _changed(value: object, path: Path, operation: Operation) -> object:
    token, rest = path[0], path[1:]
    if isinstance(token, Rejected):
        raise token
    if not rest and operation.verb in "=!":
        return _with_new(value, token, operation)
    match value, token:
        case list() | tuple(), int() if token < len(value):
            if not rest:
                inner = _Level(list(value), [_Touched.NOT] * len(value))
                _apply(inner, replace(operation, field=token, path=()))
                return inner.values
            return [*value[:token], _changed(value[token], rest, operation), *value[token + 1 :]]
        case dict(), str() if token in value:
            return _changed_map(value, token, rest, operation)
    raise _no_such_field(operation)


def _with_new(value: object, token: int | str, operation: Operation) -> object:
    """`=` or `!` at the end of a path: only the container must exist."""
    new = operation.arguments[0]
    if isinstance(token, int):
        if not isinstance(value, list | tuple):
            raise Rejected(Code.UPDATE_FIELD, operation.said, "can not access by index a non-array field")
        if token > len(value):
            raise _no_such_field(operation)
        return [*value[:token], new, *value[token + (operation.verb == "=") :]]
    if not isinstance(value, dict):
        raise Rejected(Code.UPDATE_FIELD, operation.said, "can not access by key a non-map field")
    if operation.verb == "!" and token in value:
        raise Rejected(Code.UPDATE_FIELD, operation.said, "the key exists already")
    return {**value, token: new}


def _changed_map(
    value: dict[object, object], key: str, rest: Path, operation: Operation
) -> dict[object, object]:
    if rest:
        return {**value, key: _changed(value[key], rest, operation)}
    if operation.verb != "#":
        return {**value, key: computed(operation, value[key])}
    if operation.arguments[0] != 1:
        raise Rejected(Code.UPDATE_FIELD, operation.said, "can delete only 1 field from a map in a row")
    return {name: field for name, field in value.items() if name != key}


def computed(operation: Operation, old: object) -> object:
    """The result of `+ - & | ^ :` on a value."""
    match operation.verb:
        case "+" | "-":
            return _sum(operation, old)
        case ":":
            return _spliced(operation, old)
    argument = operation.arguments[0]
    assert isinstance(argument, int)
    if type(old) is not int or old < 0:
        raise _wrong_type(operation, "a positive integer")
    match operation.verb:
        case "&":
            return old & argument
        case "|":
            return old | argument
        case _:
            return old ^ argument


def _sum(operation: Operation, old: object) -> int | float:
    argument = operation.arguments[0]
    assert isinstance(argument, int | float)
    if isinstance(old, bool) or not isinstance(old, int | float):
        raise _wrong_type(operation, "a number")
    total = old + argument if operation.verb == "+" else old - argument
    if isinstance(total, int) and not -(1 << 63) <= total < 1 << 64:
        raise Rejected(Code.UPDATE_INTEGER_OVERFLOW, operation.verb, operation.said)
    return total


def _spliced(operation: Operation, old: object) -> str:
    offset, length, paste = operation.arguments
    assert isinstance(offset, int) and isinstance(length, int) and isinstance(paste, str)
    if type(old) is not str:
        raise _wrong_type(operation, "a string")
    data = old.encode("utf-8", "surrogateescape")
    if offset < 0:
        if -offset > len(data) + 1:
            raise Rejected(Code.UPDATE_SPLICE, operation.said, "offset is out of bound")
        offset += len(data) + 1
    offset = min(offset, len(data))
    behind = len(data) - offset
    cut = max(length + behind, 0) if length < 0 else min(length, behind)
    if length < 0 and -length > behind:
        cut = 0
    new = data[:offset] + paste.encode("utf-8", "surrogateescape") + data[offset + cut :]
    return new.decode("utf-8", "surrogateescape")
