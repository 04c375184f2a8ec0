"""Creating, altering and dropping spaces: the changes of `_space` and `_index`, and their checks.

A client may also write to these two system spaces itself, as 2.6 needs for `is_sync`, with the same checks. Clients
cannot change the other system spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodes.iproto.codes import Code
from nodes.qsync.definitions import (
    FIELDS_MAX,
    IndexDefinition,
    SpaceDefinition,
    definition_of_rows,
    index_rows,
    space_row,
)
from nodes.qsync.keys import Part, Rejected, Tuple
from nodes.qsync.schema import Schema
from nodes.qsync.spaces import Change, Space, narrower, unique_key
from nodes.qsync.system_spaces import INDEX, SPACE, SYSTEM_ID_MAX

_ALTERED = {
    **dict.fromkeys(("is_sync", "temporary"), "boolean"),
    "field_count": "number",
    "format": "table",
    "name": "string",
}
_CREATED = {
    **dict.fromkeys(("is_sync", "temporary", "is_local", "if_not_exists"), "boolean"),
    "id": "number",
    "field_count": "number",
    "format": "table",
    "engine": "string",
    "parts": "table",
}
"""Option → the name of its type in Lua."""
_TYPES: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float),
    "string": str,
    "table": (list, tuple, dict),
}
_FLAGS = {
    **dict.fromkeys(("is_sync", "temporary", "view", "defer_deletes"), "boolean"),
    "group_id": "unsigned",
    "sql": "string",
    "checks": "array",
}
"""The options that a row of `_space` may have."""
_BY_DEFAULT = IndexDefinition(parts=(Part(0, "unsigned"),))
ID_MAX = 2147483647


def creation(schema: Schema, arguments: Tuple) -> list[object]:
    """`box.schema.space.create(name, options)`; the option `parts` is the primary key, by default field 1, unsigned."""
    match arguments:
        case [str(name)]:
            options: dict[str, Any] = {}
        case [str(name), dict(options)]:
            pass
        case _:
            raise Rejected(Code.ILLEGAL_PARAMS, "space name should be a string, options a map")
    options = _known(options, _CREATED)
    if name in schema.lookup and options.get("if_not_exists"):
        return []
    if name in schema.lookup:
        raise Rejected(Code.SPACE_EXISTS, name)
    number = options.get("id", schema.free_id())
    if type(number) is not int or not SYSTEM_ID_MAX < number <= ID_MAX or number in schema.by_id:
        raise Rejected(Code.CREATE_SPACE, name, f"space id {number!r} is taken or reserved")
    parts = [[part.field, part.type] for part in _BY_DEFAULT.parts]
    row = _altered(space_row(SpaceDefinition(id=number, name=name, indexes=())), options)
    index = (number, 0, "primary", "tree", {"unique": True}, options.get("parts", parts))
    return [["insert", SPACE, row], ["insert", INDEX, index]]


def statements(schema: Schema, space: Space, method: str, arguments: Tuple) -> list[object]:
    """`box.space.NAME:alter(options)`, `:drop()`, `:truncate()`."""
    definition = space.definition
    match method, arguments:
        case "alter", [dict(options)]:
            altered = _known(options, _ALTERED)
            row = schema.by_id[SPACE].prepared_version(definition.id)[0]
            assert row is not None, definition
            return [["replace", SPACE, _altered(row, altered)]]
        case "drop", []:
            dropped = [["delete", INDEX, [definition.id, row[1]]] for row in index_rows(definition)]
            return [*reversed(dropped), ["delete", SPACE, definition.id]]
        case "truncate", [] if definition.id > SYSTEM_ID_MAX:
            keys = list(space.scan(dirty=True))
            fields = [part.field for part in space.primary_parts]
            return [["delete", definition.id, [value[field] for field in fields]] for value in keys]
    raise Rejected(Code.ILLEGAL_PARAMS, f"space:{method} does not take {arguments!r:.100}")


def _known(options: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """The options but those that are nil, which count as absent. Raises Rejected for an unknown one or a wrong type."""
    for option, value in options.items():
        if option not in known:
            raise Rejected(Code.ILLEGAL_PARAMS, f"unexpected option '{option}'")
        if value is not None and not _is_of(known[option], value):
            why = f"options parameter '{option}' should be of type {known[option]}"
            raise Rejected(Code.ILLEGAL_PARAMS, why)
    return {option: value for option, value in options.items() if value is not None}


def _is_of(name: str, value: object) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _altered(row: Tuple, options: dict[str, Any]) -> Tuple:
    number, owner, name, engine, field_count, flags, format_ = row
    assert isinstance(flags, dict), row
    flags = flags | {name: options[name] for name in ("is_sync", "temporary") if name in options}
    if "is_local" in options:
        flags.pop("group_id", None)
        if options["is_local"] is True:
            flags["group_id"] = 1
    return (
        *(number, owner, options.get("name", name), options.get("engine", engine)),
        *(options.get("field_count", field_count), flags, options.get("format", format_)),
    )


def check(schema: Schema, changes: Iterable[Change]) -> None:
    """Raises Rejected if a client's changes lead to a definition that this node cannot serve."""
    own = {(change.space.definition.id, change.key): change.tuple for change in changes}
    touched = dict.fromkeys(
        key[0] if isinstance(key, tuple) else key for space, key in own if space in (SPACE, INDEX)
    )
    for number in touched:
        assert isinstance(number, int)
        if number <= SYSTEM_ID_MAX:
            raise Rejected(Code.ALTER_SPACE, str(number), "it is a system space")
        if number > ID_MAX:
            raise Rejected(Code.CREATE_SPACE, str(number), "space id is too big")
        _check_one(schema, number, own)


def _check_one(schema: Schema, number: int, own: dict[tuple[int, Any], Tuple | None]) -> None:
    rows = {
        (space_id, key): value
        for space_id in (SPACE, INDEX)
        for key in {**schema.by_id[space_id].confirmed, **schema.by_id[space_id].prepared}
        if (value := schema.by_id[space_id].prepared_version(key)[0]) is not None
    } | own
    row = rows.get((SPACE, number))
    indexes = [value for (space_id, _), value in rows.items() if space_id == INDEX and value is not None]
    indexes = [value for value in indexes if value[0] == number]
    if row is not None and (SPACE, number) in own:
        _check_flags(row[5] if len(row) > 5 else {})
    if row is None:
        if indexes:
            raise Rejected(Code.DROP_SPACE, str(number), "the space has indexes")
        return
    new = definition_of_rows(row, indexes)  # `Space.must_define` has read each of them
    _must_be_servable(
        schema, new, {key: value for (space_id, key), value in own.items() if space_id == number}
    )


def _check_flags(flags: object) -> None:
    """Check the flags of a row that a client writes; rows of other nodes are not checked."""
    if not isinstance(flags, dict):
        return  # refused as no row of _space
    for name, value in flags.items():
        kind = _FLAGS.get(name)
        if kind is None:
            raise Rejected(Code.WRONG_SPACE_OPTIONS, 5, f"unexpected option '{name}'")
        if kind == "boolean" and not isinstance(value, bool):
            raise Rejected(Code.WRONG_SPACE_OPTIONS, 5, f"'{name}' must be boolean")
        if kind == "unsigned" and (type(value) is not int or value < 0):
            raise Rejected(Code.WRONG_SPACE_OPTIONS, 5, f"'{name}' must be unsigned")
    if flags.get("group_id", 0) > 1:
        raise Rejected(Code.NO_SUCH_GROUP, flags["group_id"])


def _must_be_servable(schema: Schema, new: SpaceDefinition, own: Mapping[Any, Tuple | None]) -> None:
    """`own`: the tuples of the space that the same transaction writes, by key."""
    namesake = schema.lookup.get(new.name)
    if namesake is not None and namesake.definition.id != new.id:
        raise Rejected(Code.SPACE_EXISTS, new.name)
    if new.engine != "memtx":
        raise Rejected(Code.NO_SUCH_ENGINE, new.engine)
    if new.is_sync and not new.is_replicated:
        raise Rejected(Code.ALTER_SPACE, new.name, "local space can't be synchronous")
    if any(index.type not in ("tree", "TREE") or not index.parts for index in new.indexes):
        raise Rejected(Code.ALTER_SPACE, new.name, "only TREE indexes are supported")
    for part in (part for index in new.indexes for part in index.parts):
        in_format = new.format[part.field].type if 0 <= part.field < len(new.format) else "any"
        is_unfit = part.type in ("any", "array", "map") or narrower(in_format, part.type) is None
        if not 0 <= part.field < FIELDS_MAX or is_unfit:
            why = f"no index can be over {part.type} in field {part.field + 1}"
            raise Rejected(Code.ALTER_SPACE, new.name, f"{why}{f' of {in_format}' * (in_format != 'any')}")
    old = schema.by_id.get(new.id)
    if old is None or not (old.confirmed or old.prepared or own):
        return
    was = old.definition
    if (was.is_local, was.is_temporary) != (new.is_local, new.is_temporary):
        raise Rejected(Code.ALTER_SPACE, new.name, "can not switch replication of a non-empty space")
    if new.indexes and was.indexes and new.indexes[0].parts != was.indexes[0].parts:
        raise Rejected(Code.ALTER_SPACE, new.name, "can not change the primary key of a non-empty space")
    _must_fit(old, new, own)


def _must_fit(old: Space, new: SpaceDefinition, own: Mapping[Any, Tuple | None]) -> None:
    """Check that all rows of the space, confirmed or not, have the new format, and that the newest ones are unique."""
    trial = Space(new)
    newest = {key: old.prepared_version(key)[0] for key in {**old.confirmed, **old.prepared}} | dict(own)
    values = [value for value in newest.values() if value is not None]
    for value in (*values, *old.confirmed.values()):
        trial.key_of(value)
    for index in trial.unique_others:
        keys = [key for value in values if (key := unique_key(value, index.parts)) is not None]
        if len(set(keys)) < len(keys):
            raise Rejected(Code.TUPLE_FOUND, index.name, new.name)
