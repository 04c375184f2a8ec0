"""What a cluster begins with: the rows of Tarantool's system spaces, and those that describe this cluster.

`bootstrap.snap` holds what Tarantool 2.6.0 makes itself for an empty data folder (`tarantoolctl cat` prints it): its
collations, system spaces and their indexes, Lua functions, users and privileges; only the cluster's UUID and members
are left out, and `guest` may do everything, because a reference node asks nobody who he is. So a real Tarantool can
join a cluster of ours, and recover from our files.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from functools import cache

from nodes.iproto import xlog
from nodes.iproto.messages import Key, Row, Type
from nodes.qsync.configuration import Configuration, Identity, SpaceDefinition

SCHEMA, SPACE, INDEX, CLUSTER = 272, 280, 288, 320
USER_SPACES = 512
"""Ids from here on are those of users' spaces."""
ADMIN = 1

Tuple = tuple[object, ...]
Stored = tuple[int, Tuple]
"""A space's id and one of its tuples."""


@cache
def system_tuples() -> tuple[Stored, ...]:
    """What every Tarantool begins with, in the order of spaces and keys."""
    data = pkgutil.get_data("nodes.qsync", "bootstrap.snap")
    assert data is not None, "bootstrap.snap belongs to this package"
    return tuple(stored(row) for row in xlog.decode(data).rows)


@cache
def key_fields(space_id: int) -> tuple[int, ...]:
    """Which fields of a system space's tuples are its primary key."""
    for holder, fields in system_tuples():
        if holder == INDEX and fields[:2] == (space_id, 0):
            parts = fields[5]
            assert isinstance(parts, list), fields
            return tuple(part[0] for part in parts)
    return (0,)


def stored(row: Row) -> Stored:
    """The space and the tuple of a row of a snapshot."""
    space_id, fields = row.body[Key.SPACE_ID.value], row.body[Key.TUPLE.value]
    assert isinstance(space_id, int), row
    assert isinstance(fields, tuple), row
    return space_id, fields


def first_tuples(
    cluster_uuid: str, members: Iterable[Identity], spaces: Iterable[SpaceDefinition]
) -> list[Stored]:
    """What a node that bootstraps its cluster holds."""
    described: list[Stored] = [(SCHEMA, ("cluster", cluster_uuid))]
    described += [(CLUSTER, cluster_tuple(member)) for member in members if member.id]
    for space in spaces:
        described += space_tuples(space)
    return in_order([*system_tuples(), *described])


def first_snapshot(configuration: Configuration) -> bytes:
    """The first file of a node that bootstraps its cluster: all its members have the same but for the header."""
    described = (configuration.cluster_uuid, configuration.members, configuration.spaces)
    header = xlog.encode_header("SNAP", configuration.instance_uuid, {}, server_version=configuration.version)
    return header + _first_block(*described) + xlog.encode_eof()


@cache
def _first_block(
    cluster_uuid: str, members: tuple[Identity, ...], spaces: tuple[SpaceDefinition, ...]
) -> bytes:
    tuples = first_tuples(cluster_uuid, members, spaces)
    return xlog.encode_block([insert_row(pair, place) for place, pair in enumerate(tuples)])


def cluster_tuple(member: Identity) -> Tuple:
    return (member.id, member.uuid)


def space_tuples(space: SpaceDefinition) -> list[Stored]:
    """How Tarantool describes a space whose primary key is the first field."""
    flags = {"is_sync": True} if space.is_sync else {}
    return [
        (SPACE, (space.id, ADMIN, space.name, "memtx", 0, flags, [])),
        (INDEX, (space.id, 0, "primary", "tree", {"unique": True}, [[0, "scalar"]])),
    ]


def in_order(tuples: Iterable[Stored]) -> list[Stored]:
    """By space; a stable sort leaves the tuples of one space as they came."""
    return sorted(tuples, key=lambda pair: pair[0])


def insert_row(pair: Stored, place: int, timestamp: float = 0.0) -> Row:
    """A row as it stands in a snapshot: numbered by its place, of no origin."""
    body = {Key.SPACE_ID.value: pair[0], Key.TUPLE.value: pair[1]}
    return Row(Type.INSERT.value, 0, place, timestamp, place, body=body)
