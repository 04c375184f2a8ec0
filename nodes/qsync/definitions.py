"""The definition of a space: its format, its indexes and its options, and how that stands in `_space` and `_index`.

The rows are Tarantool's: `[id, owner, name, engine, field count, options, format]` in `_space` and
`[space id, index id, name, type, options, parts]` in `_index`. Reading them is lenient: properties that this node does
not support (collations, functional indexes, constraints) are ignored, so that it can follow any master's definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.qsync.keys import Part, Tuple, type_name

ADMIN = 1
"""The user that owns new spaces."""
FIELDS_MAX = 1000
"""How many fields can be indexed."""
ROLES = ((2, "public"), (3, "replication"), (31, "super"))
"""Rows of `_user` as well: no user can have one of these names."""


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    name: str
    type: str = "any"
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """Index 0 is the primary one."""

    id: int = 0
    name: str = "primary"
    parts: tuple[Part, ...] = (Part(0, "scalar"),)
    is_unique: bool = True
    type: str = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceDefinition:
    """A space. By default its primary key is the first field of its tuples, any scalar.

    The rows of a local space (replication group 1) stay on their node; those of a temporary one are in no log.
    `field_count` is the exact number of fields, 0: any.
    """

    id: int
    name: str
    is_sync: bool = False
    is_local: bool = False
    is_temporary: bool = False
    field_count: int = 0
    engine: str = "memtx"
    format: tuple[FieldDefinition, ...] = ()
    indexes: tuple[IndexDefinition, ...] = field(default=(IndexDefinition(),))

    @property
    def is_replicated(self) -> bool:
        return not (self.is_local or self.is_temporary)


def definition_from_json(document: Mapping[str, Any]) -> SpaceDefinition:
    """A definition from its form by `dataclasses.asdict` and JSON."""
    fields = dict(document)
    if "format" in fields:
        fields["format"] = tuple(FieldDefinition(**entry) for entry in fields["format"])
    if "indexes" in fields:
        fields["indexes"] = tuple(
            IndexDefinition(**{**entry, "parts": tuple(Part(**part) for part in entry["parts"])})
            for entry in fields["indexes"]
        )
    return SpaceDefinition(**fields)


def space_row(definition: SpaceDefinition) -> Tuple:
    """Options that are not set are left out."""
    is_local, is_temporary = int(definition.is_local), definition.is_temporary
    options = {"group_id": is_local, "temporary": is_temporary, "is_sync": definition.is_sync}
    format_ = [
        {"name": entry.name, "type": entry.type, **({"is_nullable": True} if entry.is_nullable else {})}
        for entry in definition.format
    ]
    return (
        *(definition.id, ADMIN, definition.name, definition.engine, definition.field_count),
        *({name: value for name, value in options.items() if value}, format_),
    )


def index_rows(definition: SpaceDefinition) -> list[Tuple]:
    return [
        (
            *(definition.id, index.id, index.name, index.type, {"unique": index.is_unique}),
            [_part_row(part) for part in index.parts],
        )
        for index in definition.indexes
    ]


def _part_row(part: Part) -> object:
    if part.is_nullable:
        return {"field": part.field, "type": part.type, "is_nullable": True}
    return [part.field, part.type]


def definition_of_rows(space: Tuple, indexes: Iterable[Tuple]) -> SpaceDefinition:
    """The definition in rows of `_space` and `_index`; ValueError, in one sentence, if they are malformed."""
    match space:
        case (int(number), _, str(name), str(engine), int(field_count), dict(options), *rest):
            pass
        case _:
            raise ValueError(f"expected a row of _space, got {space!r:.120}")
    return SpaceDefinition(
        id=number,
        name=name,
        is_sync=options.get("is_sync") is True,
        is_local=options.get("group_id") == 1,
        is_temporary=options.get("temporary") is True,
        field_count=field_count,
        engine=engine,
        format=tuple(_field(entry) for entry in _list(rest[0] if rest else ())),
        indexes=tuple(sorted((index_of_row(row) for row in indexes), key=lambda index: index.id)),
    )


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _field(entry: object) -> FieldDefinition:
    match entry:
        case {"name": str(name), **rest}:
            nullable = rest.get("is_nullable") is True
            return FieldDefinition(name, type_name(str(rest.get("type", "any"))), nullable)
    raise ValueError(f"expected a map with a name as a field of a format, got {entry!r:.120}")


def index_of_row(row: Tuple) -> IndexDefinition:
    """The index in a row of `_index`; ValueError, in one sentence, if it is malformed."""
    match row:
        case (int(), int(number), str(name), str(kind), dict(options), parts):
            unique = options.get("unique", True) is not False
            return IndexDefinition(number, name, tuple(_part(part) for part in _list(parts)), unique, kind)
    raise ValueError(f"expected a row of _index, got {row!r:.120}")


def _part(entry: object) -> Part:
    match entry:
        case {"field": int(number), **rest}:
            nullable = rest.get("is_nullable") is True
            return Part(number, type_name(str(rest.get("type", "scalar"))), nullable)
        case [int(number), str(type_), *_]:
            return Part(number, type_name(type_))
    raise ValueError(f"expected [field, type] as a part of an index, got {entry!r:.120}")
