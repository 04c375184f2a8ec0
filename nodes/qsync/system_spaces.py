"""Tarantool's system spaces on a node: who the members are, and which spaces there are.

They are spaces as others are, but for two things. Their primary keys have up to three parts; inside, such a key is the
bytes of its parts. And what is written to three of them means something:

| space | means |
|---|---|
| `_cluster` | a tuple (id, UUID) is a member |
| `_space` | a tuple describes a space: one that we did not know exists from here on |
| others | nothing to this node; kept, so that snapshots and those who join get them |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import pack
from nodes.qsync.bootstrap import CLUSTER, SPACE, USER_SPACES, Stored, key_fields, system_tuples
from nodes.qsync.configuration import SpaceDefinition
from nodes.qsync.spaces import Change, Scalar, Space, Tuple
from nodes.qsync.statements import change_of_row

Spaces = dict[int, Space]


class SystemSpace(Space):
    """One of Tarantool's own spaces. `on_put` is told of each change that has been committed."""

    def __init__(self, definition: SpaceDefinition) -> None:
        super().__init__(definition)
        self.on_put: Callable[[], None] = lambda: None

    def put(self, key: Scalar, value: Tuple | None) -> None:
        super().put(key, value)
        self.on_put()

    def key_of(self, fields: Tuple) -> bytes:
        return pack([fields[place] for place in key_fields(self.definition.id)])

    def scan(self, *, dirty: bool) -> Iterator[Tuple]:
        """All tuples of a view, in key order."""
        found = dict(self.confirmed)
        if dirty:
            for key, versions in self.prepared.items():
                newest = versions[-1][1]
                if newest is None:
                    found.pop(key, None)
                else:
                    found[key] = newest
        places = key_fields(self.definition.id)
        yield from sorted(found.values(), key=lambda fields: [_sortable(fields[place]) for place in places])


def _sortable(value: object) -> tuple[int, object]:
    return (1, value) if isinstance(value, str) else (0, value)


def is_system(space_id: int) -> bool:
    return space_id < USER_SPACES


def fill(users: Spaces, system: Spaces, tuples: Iterable[Stored]) -> None:
    """Put what a snapshot holds into spaces; those of users are made where they are not known."""
    for space_id, fields in tuples:
        space = system[space_id] if is_system(space_id) else users[space_id]
        key = space.key_of(fields) if isinstance(space, SystemSpace) else fields[0]
        space.put(key, fields)  # type: ignore[arg-type]  # the first field of a tuple is a scalar
        if space_id == SPACE:
            _describe(fields, users)


def members_of(system: Mapping[int, Space]) -> dict[int, str]:
    """Replica id → UUID, as `_cluster` says it."""
    return {int(str(number)): str(uuid) for number, uuid, *_ in system[CLUSTER].scan(dirty=False)}


def change_of(row: Row, users: Spaces, system: Spaces) -> Change | None:
    """What a row does to a space; None if it is nothing that this node keeps."""
    space_id = row.body[Key.SPACE_ID.value]
    assert isinstance(space_id, int), row
    if not is_system(space_id):
        return change_of_row(row, users)
    space = system.get(space_id)
    if not isinstance(space, SystemSpace):
        return None
    if row.type == Type.DELETE:
        key = row.body[Key.KEY.value]
        assert isinstance(key, tuple), row
        return Change(space, pack(list(key)), None)
    if row.type not in (Type.INSERT, Type.REPLACE):
        return None
    fields = row.body[Key.TUPLE.value]
    assert isinstance(fields, tuple), row
    if space_id == SPACE:
        _describe(fields, users)
    return Change(space, space.key_of(fields), fields)


def _describe(fields: Tuple, users: Spaces) -> None:
    """A tuple of `_space`: from here on the space exists, and is synchronous or not."""
    space_id, flags = fields[0], fields[5] if len(fields) > 5 else {}
    assert isinstance(space_id, int), fields
    if is_system(space_id):
        return
    is_sync = isinstance(flags, dict) and flags.get("is_sync") is True
    known = users.get(space_id)
    if known is None:
        users[space_id] = Space(SpaceDefinition(id=space_id, name=str(fields[2]), is_sync=is_sync))
    elif known.definition.is_sync != is_sync:
        known.definition = replace(known.definition, is_sync=is_sync)


def new_system_spaces() -> Spaces:
    """The system spaces of a node that has nothing yet, by id."""
    return {
        fields[0]: SystemSpace(SpaceDefinition(id=fields[0], name=str(fields[2]), is_sync=False))
        for space_id, fields in system_tuples()
        if space_id == SPACE and isinstance(fields[0], int)
    }
