"""Tarantool's system spaces as in version 2.6, from which connectors and administrators read the schema.

`_space` and `_index` describe all spaces, themselves included; a view (`_vspace` …) shows the tuples of its source that
the reader may know. In the table: field `name:type`, with `?` if it may be nil; index `id name type unique parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from nodes.qsync.definitions import FieldDefinition, IndexDefinition, SpaceDefinition
from nodes.qsync.keys import Part, type_name

SCHEMA, COLLATION, SPACE, INDEX, USER, PRIVILEGE, CLUSTER = 272, 276, 280, 288, 304, 312, 320
TRUNCATE, SESSION_SETTINGS = 330, 380
VIEWS = {277: COLLATION, 281: SPACE, 286: 284, 289: INDEX, 297: 296, 305: USER, 313: PRIVILEGE}
"""View → its source."""
SYSTEM_ID_MAX = 511
SCHEMA_VERSION = (2, 3, 1)
"""The version of the system spaces in `_schema`."""


@dataclass(frozen=True, slots=True)
class _System:
    id: int
    name: str
    engine: str
    fields: str
    indexes: str


def definitions() -> Iterator[SpaceDefinition]:
    """The definitions of all system spaces, by id."""
    for system in _TABLE:
        yield SpaceDefinition(
            id=system.id,
            name=system.name,
            is_local=system.engine == "blackhole",
            is_temporary=system.engine == "service",
            field_count=2 if system.engine == "service" else 0,
            engine=system.engine,
            format=tuple(_field(text) for text in system.fields.split()),
            indexes=tuple(_index(text) for text in system.indexes.split("; ") if text),
        )


@cache
def primary_keys() -> Mapping[int, tuple[int, ...]]:
    """Space → the places of the fields of its primary key."""
    return {
        space.id: tuple(part.field for part in space.indexes[0].parts)
        for space in definitions()
        if space.indexes
    }


def _field(text: str) -> FieldDefinition:
    name, _, type_ = text.partition(":")
    return FieldDefinition(name, type_name(type_.rstrip("?")), type_.endswith("?"))


def _index(text: str) -> IndexDefinition:
    number, name, kind, unique, parts = text.split()
    pairs = (part.partition(":") for part in parts.split(","))
    return IndexDefinition(
        int(number), name, tuple(Part(int(f), t) for f, _, t in pairs), unique == "unique", kind
    )


_TABLE = (
    _System(
        257,
        "_vinyl_deferred_delete",
        "blackhole",
        "space_id:unsigned lsn:unsigned tuple:array",
        "",
    ),
    _System(
        272,
        "_schema",
        "memtx",
        "key:string value:any?",
        "0 primary tree unique 0:string",
    ),
    _System(
        276,
        "_collation",
        "memtx",
        "id:unsigned name:string owner:unsigned type:string locale:string opts:map",
        "0 primary tree unique 0:unsigned; 1 name tree unique 1:string",
    ),
    _System(
        277,
        "_vcollation",
        "sysview",
        "id:unsigned name:string owner:unsigned type:string locale:string opts:map",
        "0 primary tree unique 0:unsigned; 1 name tree unique 1:string",
    ),
    _System(
        280,
        "_space",
        "memtx",
        ("id:unsigned owner:unsigned name:string engine:string field_count:unsigned flags:map format:array"),
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        281,
        "_vspace",
        "sysview",
        ("id:unsigned owner:unsigned name:string engine:string field_count:unsigned flags:map format:array"),
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        284,
        "_sequence",
        "memtx",
        (
            "id:unsigned owner:unsigned name:string step:integer min:integer max:integer start:integer "
            "cache:integer cycle:boolean"
        ),
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        285,
        "_sequence_data",
        "memtx",
        "id:unsigned value:integer",
        "0 primary hash unique 0:unsigned",
    ),
    _System(
        286,
        "_vsequence",
        "sysview",
        (
            "id:unsigned owner:unsigned name:string step:integer min:integer max:integer start:integer "
            "cache:integer cycle:boolean"
        ),
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        288,
        "_index",
        "memtx",
        "id:unsigned iid:unsigned name:string type:string opts:map parts:array",
        "0 primary tree unique 0:unsigned,1:unsigned; 2 name tree unique 0:unsigned,2:string",
    ),
    _System(
        289,
        "_vindex",
        "sysview",
        "id:unsigned iid:unsigned name:string type:string opts:map parts:array",
        "0 primary tree unique 0:unsigned,1:unsigned; 2 name tree unique 0:unsigned,2:string",
    ),
    _System(
        296,
        "_func",
        "memtx",
        (
            "id:unsigned owner:unsigned name:string setuid:unsigned language:string body:string "
            "routine_type:string param_list:array returns:string aggregate:string "
            "sql_data_access:string is_deterministic:boolean is_sandboxed:boolean is_null_call:boolean "
            "exports:array opts:map comment:string created:string last_altered:string"
        ),
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        297,
        "_vfunc",
        "sysview",
        "id:unsigned owner:unsigned name:string setuid:unsigned",
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        304,
        "_user",
        "memtx",
        "id:unsigned owner:unsigned name:string type:string auth:map",
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        305,
        "_vuser",
        "sysview",
        "id:unsigned owner:unsigned name:string type:string auth:map",
        ("0 primary tree unique 0:unsigned; 1 owner tree plain 1:unsigned; 2 name tree unique 2:string"),
    ),
    _System(
        312,
        "_priv",
        "memtx",
        "grantor:unsigned grantee:unsigned object_type:string object_id:scalar privilege:unsigned",
        (
            "0 primary tree unique 1:unsigned,2:string,3:scalar; 1 owner tree plain 0:unsigned; 2 "
            "object tree plain 2:string,3:scalar"
        ),
    ),
    _System(
        313,
        "_vpriv",
        "sysview",
        "grantor:unsigned grantee:unsigned object_type:string object_id:scalar privilege:unsigned",
        (
            "0 primary tree unique 1:unsigned,2:string,3:scalar; 1 owner tree plain 0:unsigned; 2 "
            "object tree plain 2:string,3:scalar"
        ),
    ),
    _System(
        320,
        "_cluster",
        "memtx",
        "id:unsigned uuid:string",
        "0 primary tree unique 0:unsigned; 1 uuid tree unique 1:string",
    ),
    _System(
        328,
        "_trigger",
        "memtx",
        "name:string space_id:unsigned opts:map",
        "0 primary tree unique 0:string; 1 space_id tree plain 1:unsigned",
    ),
    _System(
        330,
        "_truncate",
        "memtx",
        "id:unsigned count:unsigned",
        "0 primary tree unique 0:unsigned",
    ),
    _System(
        340,
        "_space_sequence",
        "memtx",
        "id:unsigned sequence_id:unsigned is_generated:boolean field:unsigned path:string",
        "0 primary tree unique 0:unsigned; 1 sequence tree plain 1:unsigned",
    ),
    _System(
        356,
        "_fk_constraint",
        "memtx",
        (
            "name:string child_id:unsigned parent_id:unsigned is_deferred:boolean match:string "
            "on_delete:string on_update:string child_cols:array parent_cols:array"
        ),
        "0 primary tree unique 0:string,1:unsigned; 1 child_id tree plain 1:unsigned",
    ),
    _System(
        364,
        "_ck_constraint",
        "memtx",
        "space_id:unsigned name:string is_deferred:boolean language:str code:str is_enabled:boolean",
        "0 primary tree unique 0:unsigned,1:string",
    ),
    _System(
        372,
        "_func_index",
        "memtx",
        "space_id:unsigned index_id:unsigned func_id:unsigned",
        "0 primary tree unique 0:unsigned,1:unsigned; 1 fid tree plain 2:unsigned",
    ),
    _System(
        380,
        "_session_settings",
        "service",
        "name:string value:any",
        "0 primary tree unique 0:string",
    ),
)
