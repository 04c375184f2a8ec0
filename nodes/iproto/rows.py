"""One row as bytes: a header map and, for all types but NOP, a body map; links and xlog files share this
form.

A header key that is absent is 0, and a zero is written under key 8 alone. A transaction of one row carries neither
transaction number nor COMMIT flag; in a longer one every row carries key 8, its lsn less that of the transaction's
first row, and the last row the COMMIT flag. (Where local and global rows mix the difference may be negative: it
wraps at 64 bits.) This is Tarantool's way (`src/box/xrow.c`), byte for byte.

A decoded row can be trusted in its form: the fields that its type needs are there and have the right type,
the tuple or key in its body is a Python tuple (arrays inside it are lists). A row about the queue or the election needs
no field, as in Tarantool's decoder: a number that is absent is 0 (2.11.5 to 3.4 write a PROMOTE without a term).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nodes.iproto.errors import MalformedFrame, shown
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import is_vclock, pack, unpack_some

COMMIT = 1
WAIT_SYNC = 2
WAIT_ACK = 4

# Plain ints: a look-up of an enum member costs as much as packing a small map.
_TYPE, _REPLICA_ID, _LSN = int(Key.REQUEST_TYPE), int(Key.REPLICA_ID), int(Key.LSN)
_TIMESTAMP, _GROUP_ID, _TSN, _FLAGS = int(Key.TIMESTAMP), int(Key.GROUP_ID), int(Key.TSN), int(Key.FLAGS)
_SPACE_ID, _KEY, _TUPLE, _TERM = int(Key.SPACE_ID), int(Key.KEY), int(Key.TUPLE), int(Key.TERM)
_OPS, _VCLOCK = int(Key.OPS), int(Key.VCLOCK)
_NOP, _INSERT = int(Type.NOP), int(Type.INSERT)
_64_BITS = 0xFFFFFFFFFFFFFFFF

_NEEDS: dict[int, tuple[tuple[int, type], ...]] = {
    Type.INSERT: ((_SPACE_ID, int), (_TUPLE, list)),
    Type.REPLACE: ((_SPACE_ID, int), (_TUPLE, list)),
    Type.UPDATE: ((_SPACE_ID, int), (_KEY, list), (_TUPLE, list)),
    Type.UPSERT: ((_SPACE_ID, int), (_TUPLE, list), (_OPS, list)),
    Type.DELETE: ((_SPACE_ID, int), (_KEY, list)),
}


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_flag(value: object) -> bool:
    return type(value) is bool


_MAY_HAVE: dict[int, tuple[tuple[int, Callable[[object], bool]], ...]] = {
    Type.RAFT: (*((key, _is_number) for key in (0, 1, 2, 4)), (3, is_vclock), (5, _is_flag)),
    Type.PROMOTE: ((_REPLICA_ID, _is_number), (_LSN, _is_number), (_TERM, _is_number), (_VCLOCK, is_vclock)),
    Type.CONFIRM: ((_REPLICA_ID, _is_number), (_LSN, _is_number)),
}
_MAY_HAVE |= dict.fromkeys((Type.UPDATE, Type.UPSERT), ((int(Key.INDEX_BASE), _is_number),))
_MAY_HAVE |= {Type.DEMOTE: _MAY_HAVE[Type.PROMOTE], Type.ROLLBACK: _MAY_HAVE[Type.CONFIRM]}


def packed_row(row: Row) -> bytes:
    """Header and body. A NOP has no body: Tarantool would take one for the next row's header."""
    header: dict[int, int | float] = {_TYPE: row.type}
    flags = (WAIT_SYNC if row.wait_sync else 0) | (WAIT_ACK if row.wait_ack else 0)
    if row.replica_id:
        header[_REPLICA_ID] = row.replica_id
    if row.group_id:
        header[_GROUP_ID] = row.group_id
    if row.lsn:
        header[_LSN] = row.lsn
    if row.timestamp:
        header[_TIMESTAMP] = float(row.timestamp)
    if row.tsn and (row.tsn != row.lsn or not row.is_commit):
        header[_TSN] = (row.lsn - row.tsn) & _64_BITS
        if row.is_commit:
            flags |= COMMIT
    if flags:
        header[_FLAGS] = flags
    if row.type == _NOP:
        assert not row.body, f"a NOP has no body: {row}"
        return pack(header)
    return pack(header) + pack(dict(row.body))


_BODIES: dict[int, tuple[tuple[object, ...], int, bytes]] = {}
"""By the id of a tuple: the tuple itself, its space, and the packed body of a row that inserts it."""
_BODIES_MAX = 8192


def packed_insert(pair: tuple[int, tuple[object, ...]], place: int, timestamp: float) -> bytes:
    """The row of a snapshot that inserts (space, tuple): its lsn is its place, and it has no origin.

    A node takes many snapshots, and most tuples are of system spaces and never change: their bodies are cached.
    """
    space, fields = pair
    known = _BODIES.get(id(fields))  # it keeps the tuple alive: no other one can have this id meanwhile
    if known is None or known[0] is not fields or known[1] != space:
        if len(_BODIES) >= _BODIES_MAX:
            _BODIES.clear()
        known = _BODIES[id(fields)] = (fields, space, pack({_SPACE_ID: space, _TUPLE: fields}))
    header: dict[int, int | float] = {_TYPE: _INSERT}
    if place:
        header[_LSN] = place
    if timestamp:
        header[_TIMESTAMP] = float(timestamp)
    return pack(header) + known[2]


def row_of(header: dict[int, object], body: dict[int, object]) -> Row:
    """Raises MalformedFrame."""
    row_type, lsn = _unsigned(header, _TYPE), _unsigned(header, _LSN)
    flags = _unsigned(header, _FLAGS)
    tsn, is_commit = lsn, True
    if _TSN in header:
        tsn, is_commit = _first_lsn(lsn, _unsigned(header, _TSN)), bool(flags & COMMIT)
    timestamp = header.get(_TIMESTAMP, 0.0)
    if type(timestamp) is not float:
        raise MalformedFrame(f"expected a double as the timestamp of a row, got {shown(timestamp)}")
    return Row(
        row_type,
        _unsigned(header, _REPLICA_ID),
        lsn,
        timestamp,
        tsn,
        is_commit,
        bool(flags & WAIT_SYNC),
        bool(flags & WAIT_ACK),
        _unsigned(header, _GROUP_ID),
        _checked_body(row_type, body),
    )


Wanted = Callable[[int, dict[int, object]], bool]
"""(type, body) → whether a row is wanted."""


def rows_of(data: bytes, wanted: Wanted | None = None) -> list[Row]:
    """The consecutive rows in `data`, or the wanted ones. Raises MalformedFrame."""
    pairs = _pairs(unpack_some(data, usual=2))
    if wanted is not None:
        pairs = (pair for pair in pairs if wanted(_unsigned(pair[0], _TYPE), pair[1]))
    return [row_of(header, body) for header, body in pairs]


def _pairs(values: Iterable[object]) -> Iterator[tuple[dict[int, object], dict[int, object]]]:
    remaining = iter(values)
    for header in remaining:
        if type(header) is not dict:
            raise MalformedFrame(f"expected a map as the header of a row, got {shown(header)}")
        body = {} if header.get(_TYPE) == _NOP else next(remaining, {})
        if type(body) is not dict:
            raise MalformedFrame(f"expected a map as the body of a row, got {shown(body)}")
        yield header, body


def _unsigned(header: dict[int, object], key: int) -> int:
    value = header.get(key, 0)
    if type(value) is not int or value < 0:
        raise MalformedFrame(
            f"expected an unsigned integer under a row's header key {key}, got {shown(value)}"
        )
    return value


def _first_lsn(lsn: int, difference: int) -> int:
    return lsn - (difference if difference <= _64_BITS >> 1 else difference - _64_BITS - 1)


def _checked_body(row_type: int, body: dict[int, object]) -> dict[int, object]:
    if row_type == _NOP and body:
        raise MalformedFrame(f"expected a NOP without a body, got {shown(body)}")
    for key, needed in _NEEDS.get(row_type, ()):
        if type(body.get(key)) is not needed:
            raise MalformedFrame(
                f"expected {needed.__name__} under key {key} of a row of type {row_type}, got {shown(body)}"
            )
    for key, is_right in _MAY_HAVE.get(row_type, ()):
        if key in body and not is_right(body[key]):
            raise MalformedFrame(
                f"expected a number, flag or vclock under key {key} of a row of type {row_type}, got {shown(body)}"
            )
    for key in (_KEY, _TUPLE):
        value = body.get(key)
        if type(value) is list:
            body[key] = tuple(value)
    for key in body:
        if type(key) is not int:
            raise MalformedFrame(f"expected integers as the keys of a row's body, got {shown(key)}")
    return body
