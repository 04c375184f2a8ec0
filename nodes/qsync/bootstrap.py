"""The first data of a cluster: the rows of Tarantool's system spaces, and the rows that describe this cluster.

`bootstrap.snap` is the file that Tarantool 2.6.0 makes for an empty data folder (`tarantoolctl cat` prints it): its
collations, system spaces and their indexes, Lua functions, roles and privileges; only the cluster's UUID and members
are left out. So a real Tarantool can join a cluster of these nodes, and recover from their files.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from functools import cache, lru_cache

from nodes.iproto import xlog
from nodes.iproto.messages import Key, Row, Type
from nodes.qsync.access import users_and_privileges
from nodes.qsync.configuration import Configuration, Identity, SpaceDefinition, User
from nodes.qsync.definitions import index_rows, space_row
from nodes.qsync.keys import Tuple
from nodes.qsync.system_spaces import CLUSTER, INDEX, PRIVILEGE, SCHEMA, SPACE, USER, primary_keys

CLUSTERS_MAX = 16
"""For how many clusters the first rows are cached: a simulating process has had thousands."""
Stored = tuple[int, Tuple]
"""A space's id and one of its tuples."""


@cache
def system_tuples() -> tuple[Stored, ...]:
    """The first rows of every Tarantool, in the order of spaces and keys."""
    data = pkgutil.get_data("nodes.qsync", "bootstrap.snap")
    assert data is not None, "bootstrap.snap belongs to this package"
    return tuple(stored(row) for row in xlog.decode(data).rows)


def stored(row: Row) -> Stored:
    """The space and the tuple of a row of a snapshot."""
    space_id, fields = row.body[Key.SPACE_ID.value], row.body[Key.TUPLE.value]
    assert isinstance(space_id, int), row
    assert isinstance(fields, tuple), row
    return space_id, fields


def first_tuples(configuration: Configuration) -> list[Stored]:
    """The rows of a node that bootstraps its cluster."""
    return list(_first_tuples(*_described(configuration)))


def first_snapshot(configuration: Configuration) -> bytes:
    """The first file of a node that bootstraps its cluster: all its members have the same but for the header."""
    header = xlog.encode_header("SNAP", configuration.instance_uuid, {}, server_version=configuration.version)
    return header + _first_block(*_described(configuration)) + xlog.encode_eof()


def _described(
    configuration: Configuration,
) -> tuple[str, tuple[Identity, ...], tuple[SpaceDefinition, ...], tuple[User, ...]]:
    return configuration.cluster_uuid, configuration.members, configuration.spaces, configuration.users


@lru_cache(maxsize=CLUSTERS_MAX)
def _first_tuples(
    cluster_uuid: str,
    members: tuple[Identity, ...],
    spaces: tuple[SpaceDefinition, ...],
    users: tuple[User, ...],
) -> tuple[Stored, ...]:
    user_rows, privileges = users_and_privileges(users)
    own: list[Stored] = [(SCHEMA, ("cluster", cluster_uuid))]
    own += [(CLUSTER, (member.id, member.uuid)) for member in members if member.id]
    own += [(USER, row) for row in user_rows] + [(PRIVILEGE, row) for row in privileges]
    for space in spaces:
        own += [(SPACE, space_row(space)), *((INDEX, row) for row in index_rows(space))]
    return merged((*system_tuples(), *own))


def merged(tuples: Iterable[Stored]) -> tuple[Stored, ...]:
    """In the order of spaces; of tuples of a system space with the same key only the last."""
    keys = primary_keys()
    by_key: dict[object, Stored] = {}
    for place, (space_id, fields) in enumerate(tuples):
        key = keys.get(space_id)
        by_key[place if key is None else (space_id, *(fields[field] for field in key))] = space_id, fields
    return tuple(in_order(by_key.values()))


@lru_cache(maxsize=CLUSTERS_MAX)
def _first_block(
    cluster_uuid: str,
    members: tuple[Identity, ...],
    spaces: tuple[SpaceDefinition, ...],
    users: tuple[User, ...],
) -> bytes:
    tuples = _first_tuples(cluster_uuid, members, spaces, users)
    return xlog.encode_block([insert_row(pair, place) for place, pair in enumerate(tuples)])


def members_of(tuples: Iterable[Stored]) -> dict[int, str]:
    """Replica id → UUID, by the tuples of `_cluster`."""
    return {int(str(fields[0])): str(fields[1]) for space_id, fields in tuples if space_id == CLUSTER}


def in_order(tuples: Iterable[Stored]) -> list[Stored]:
    """By space; a stable sort leaves the tuples of one space as they came."""
    return sorted(tuples, key=lambda pair: pair[0])


def insert_row(pair: Stored, place: int, timestamp: float = 0.0) -> Row:
    """A row of a snapshot: its lsn is its place, and it has no origin."""
    body = {Key.SPACE_ID.value: pair[0], Key.TUPLE.value: pair[1]}
    return Row(Type.INSERT.value, 0, place, timestamp, place, body=body)
