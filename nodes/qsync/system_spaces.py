"""Tarantool's system spaces as in version 2.6, from which connectors and administrators read the schema.

`_space` and `_index` describe all spaces, themselves included; a view (`_vspace` …) shows the tuples of its source that
the reader may know. In the table: id, name and engine; fields `name:type`, with `?` for one that may be nil; each on a
line of its own the indexes, `id name type unique parts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from nodes.qsync.definitions import FieldDefinition, IndexDefinition, SpaceDefinition
from nodes.qsync.keys import Part, type_name

SCHEMA, COLLATION, SPACE, INDEX, USER, PRIVILEGE, CLUSTER = 272, 276, 280, 288, 304, 312, 320
TRUNCATE = 330
VIEWS = {277: COLLATION, 281: SPACE, 286: 284, 289: INDEX, 297: 296, 305: USER, 313: PRIVILEGE}
"""View → its source."""
SYSTEM_ID_MAX = 511


@cache
def definitions() -> tuple[SpaceDefinition, ...]:
    """The definitions of all system spaces, by id."""
    stored = {space.id: space for space in map(_space, _TABLE.strip().split("\n\n"))}
    views = {number: _view(number, stored[source]) for number, source in VIEWS.items()}
    return tuple(space for _, space in sorted({**stored, **views}.items()))


def _space(text: str) -> SpaceDefinition:
    head, *lines = text.splitlines()
    number, name, engine = head.split()
    indexes = [line for line in lines if line.lstrip()[0].isdigit()]
    fields = " ".join(line for line in lines if line not in indexes)
    return SpaceDefinition(
        id=int(number),
        name=name,
        is_local=engine == "blackhole",
        is_temporary=engine == "service",
        field_count=2 if engine == "service" else 0,
        engine=engine,
        format=tuple(_field(field) for field in fields.split()),
        indexes=tuple(map(_index, indexes)),
    )


def _view(number: int, source: SpaceDefinition) -> SpaceDefinition:
    shown = source.format[:4] if source.name == "_func" else source.format
    return replace(source, id=number, name=f"_v{source.name[1:]}", engine="sysview", format=shown)


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


_TABLE = """
257 _vinyl_deferred_delete blackhole
    space_id:unsigned lsn:unsigned tuple:array

272 _schema memtx
    key:string value:any?
    0 primary tree unique 0:string

276 _collation memtx
    id:unsigned name:string owner:unsigned type:string locale:string opts:map
    0 primary tree unique 0:unsigned
    1 name tree unique 1:string

280 _space memtx
    id:unsigned owner:unsigned name:string engine:string field_count:unsigned flags:map format:array
    0 primary tree unique 0:unsigned
    1 owner tree plain 1:unsigned
    2 name tree unique 2:string

284 _sequence memtx
    id:unsigned owner:unsigned name:string step:integer min:integer max:integer start:integer cache:integer
    cycle:boolean
    0 primary tree unique 0:unsigned
    1 owner tree plain 1:unsigned
    2 name tree unique 2:string

285 _sequence_data memtx
    id:unsigned value:integer
    0 primary hash unique 0:unsigned

288 _index memtx
    id:unsigned iid:unsigned name:string type:string opts:map parts:array
    0 primary tree unique 0:unsigned,1:unsigned
    2 name tree unique 0:unsigned,2:string

296 _func memtx
    id:unsigned owner:unsigned name:string setuid:unsigned language:string body:string routine_type:string
    param_list:array returns:string aggregate:string sql_data_access:string is_deterministic:boolean
    is_sandboxed:boolean is_null_call:boolean exports:array opts:map comment:string created:string
    last_altered:string
    0 primary tree unique 0:unsigned
    1 owner tree plain 1:unsigned
    2 name tree unique 2:string

304 _user memtx
    id:unsigned owner:unsigned name:string type:string auth:map
    0 primary tree unique 0:unsigned
    1 owner tree plain 1:unsigned
    2 name tree unique 2:string

312 _priv memtx
    grantor:unsigned grantee:unsigned object_type:string object_id:scalar privilege:unsigned
    0 primary tree unique 1:unsigned,2:string,3:scalar
    1 owner tree plain 0:unsigned
    2 object tree plain 2:string,3:scalar

320 _cluster memtx
    id:unsigned uuid:string
    0 primary tree unique 0:unsigned
    1 uuid tree unique 1:string

328 _trigger memtx
    name:string space_id:unsigned opts:map
    0 primary tree unique 0:string
    1 space_id tree plain 1:unsigned

330 _truncate memtx
    id:unsigned count:unsigned
    0 primary tree unique 0:unsigned

340 _space_sequence memtx
    id:unsigned sequence_id:unsigned is_generated:boolean field:unsigned path:string
    0 primary tree unique 0:unsigned
    1 sequence tree plain 1:unsigned

356 _fk_constraint memtx
    name:string child_id:unsigned parent_id:unsigned is_deferred:boolean match:string on_delete:string
    on_update:string child_cols:array parent_cols:array
    0 primary tree unique 0:string,1:unsigned
    1 child_id tree plain 1:unsigned

364 _ck_constraint memtx
    space_id:unsigned name:string is_deferred:boolean language:str code:str is_enabled:boolean
    0 primary tree unique 0:unsigned,1:string

372 _func_index memtx
    space_id:unsigned index_id:unsigned func_id:unsigned
    0 primary tree unique 0:unsigned,1:unsigned
    1 fid tree plain 2:unsigned

380 _session_settings service
    name:string value:any
    0 primary tree unique 0:string
"""
