"""Reading what a client or a replica asks.

Inside a sound frame nothing is fatal: an unknown type, a missing field or a field of the wrong type becomes
an `Unknown` that carries the refusal Tarantool would send, and the link lives on.

| request | must have | may have |
|---|---|---|
| SELECT | space id, limit, key | index id, offset, iterator |
| INSERT, REPLACE | space id, tuple | |
| DELETE | space id, key | index id |
| CALL | function name | tuple (the arguments) |
| SUBSCRIBE | cluster UUID, instance UUID, vclock | server version, anonymous; the replica id stands in the header |
| VOTE | | |
| JOIN, FETCH_SNAPSHOT | instance UUID (JOIN) | server version |
| REGISTER | instance UUID, vclock | |

Tuples, keys and arguments come as Python tuples; arrays inside them are lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from nodes.iproto.codes import Code
from nodes.iproto.errors import MalformedFrame
from nodes.iproto.messages import (
    Call,
    Delete,
    Insert,
    Join,
    Key,
    Ping,
    Register,
    Replace,
    Request,
    Select,
    Subscribe,
    Type,
    Unknown,
    Vote,
)
from nodes.iproto.packing import is_vclock, packed_vclock, unpack, unpack_some

Map = dict[int, object]
T = TypeVar("T")

_TYPE, _SYNC, _REPLICA_ID = int(Key.REQUEST_TYPE), int(Key.SYNC), int(Key.REPLICA_ID)
_SPACE_ID, _INDEX_ID, _LIMIT = int(Key.SPACE_ID), int(Key.INDEX_ID), int(Key.LIMIT)
_OFFSET, _ITERATOR, _KEY, _TUPLE = int(Key.OFFSET), int(Key.ITERATOR), int(Key.KEY), int(Key.TUPLE)
_FUNCTION_NAME = int(Key.FUNCTION_NAME)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Refused(Exception):
    """Ends the reading of one request; never leaves this module."""

    def __init__(self, code: Code, *arguments: object) -> None:
        super().__init__(code, arguments)
        self.code = code
        self.text = code.text(*arguments)


def halves(payload: bytes) -> tuple[Map, Map]:
    """Header and body of a frame; a body that is not there is empty. Raises MalformedFrame."""
    try:
        both = unpack(b"\x92" + payload)  # as the array [header, body]: one call instead of two
    except MalformedFrame:
        both = [unpack(payload), {}]
    match both:
        case [dict() as header, dict() as body]:
            return header, body
    raise MalformedFrame(f"expected a frame of two maps, got {both!r:.80}")


def request_of(payload: bytes) -> Request:
    """What a frame asks; never raises."""
    sync = 0
    try:
        header, body = _header_and_body(payload)
        sync = _unsigned(header, _SYNC, "packet header")
        request_type = _unsigned(header, _TYPE, "packet header")
        if body is None:
            raise Refused(Code.INVALID_MSGPACK, "packet body")
        reader = _READERS.get(request_type)
        if reader is None:
            raise Refused(Code.UNKNOWN_REQUEST_TYPE, request_type)
        return reader(sync, header, body)
    except Refused as refused:
        return Unknown(sync, refused.code, refused.text)


def _header_and_body(payload: bytes) -> tuple[Map, Map | None]:
    """Without a body that can be read there may still be a header, and so a sync to answer to."""
    try:
        return halves(payload)
    except MalformedFrame:
        pass
    try:
        match unpack_some(payload, 1):
            case [dict() as header]:
                return header, None
    except MalformedFrame:
        pass
    raise Refused(Code.INVALID_MSGPACK, "packet header")


def _unsigned(fields: Map, key: int, where: str = "packet body") -> int:
    value = fields.get(key, 0)
    if type(value) is not int or value < 0:
        raise Refused(Code.INVALID_MSGPACK, where)
    return value


def _required(body: Map, key: int, needed: type[T]) -> T:
    value = body.get(key, _ABSENT)
    if value is _ABSENT:
        raise Refused(Code.MISSING_REQUEST_FIELD, Key(key).name)
    if type(value) is not needed:
        raise Refused(Code.INVALID_MSGPACK, "packet body")
    return value


def _required_unsigned(body: Map, key: int) -> int:
    _required(body, key, int)
    return _unsigned(body, key)


def _select(sync: int, header: Map, body: Map) -> Request:
    space_id, limit = _required_unsigned(body, _SPACE_ID), _required_unsigned(body, _LIMIT)
    key = tuple(_required(body, _KEY, list))
    index_id, offset = _unsigned(body, _INDEX_ID), _unsigned(body, _OFFSET)
    return Select(sync, space_id, key, index_id, limit, offset, _unsigned(body, _ITERATOR))


def _insert(sync: int, header: Map, body: Map) -> Request:
    return Insert(sync, _required_unsigned(body, _SPACE_ID), tuple(_required(body, _TUPLE, list)))


def _replace(sync: int, header: Map, body: Map) -> Request:
    return Replace(sync, _required_unsigned(body, _SPACE_ID), tuple(_required(body, _TUPLE, list)))


def _delete(sync: int, header: Map, body: Map) -> Request:
    space_id = _required_unsigned(body, _SPACE_ID)
    return Delete(sync, space_id, tuple(_required(body, _KEY, list)), _unsigned(body, _INDEX_ID))


def _call(sync: int, header: Map, body: Map) -> Request:
    name, arguments = body.get(_FUNCTION_NAME), body.get(_TUPLE, [])
    if type(name) is not str or type(arguments) is not list:
        name, arguments = _required(body, _FUNCTION_NAME, str), _required(body, _TUPLE, list)
    return Call(sync, name, tuple(arguments))


def _ping(sync: int, header: Map, body: Map) -> Request:
    return Ping(sync)


def _subscribe(sync: int, header: Map, body: Map) -> Request:
    return Subscribe(
        sync,
        _uuid(body, Key.CLUSTER_UUID, "replicaset UUID"),
        _uuid(body, Key.INSTANCE_UUID, "instance UUID"),
        _unsigned(header, _REPLICA_ID, "packet header"),
        _vclock(body),
        _unsigned(body, Key.SERVER_VERSION, "invalid VERSION"),
        body.get(Key.REPLICA_ANON, False) is True,
    )


def _vote(sync: int, header: Map, body: Map) -> Request:
    return Vote(sync)


def _join(sync: int, header: Map, body: Map) -> Request:
    version = _unsigned(body, Key.SERVER_VERSION, "invalid VERSION")
    return Join(sync, _uuid(body, Key.INSTANCE_UUID, "instance UUID"), version)


def _fetch_snapshot(sync: int, header: Map, body: Map) -> Request:
    return Join(sync, "", _unsigned(body, Key.SERVER_VERSION, "invalid VERSION"), is_anonymous=True)


def _register(sync: int, header: Map, body: Map) -> Request:
    return Register(sync, _uuid(body, Key.INSTANCE_UUID, "instance UUID"), _vclock(body))


def _vclock(body: Map) -> dict[int, int]:
    vclock = _required(body, Key.VCLOCK, dict)
    if not is_vclock(vclock):
        raise Refused(Code.INVALID_MSGPACK, "invalid VCLOCK")
    return packed_vclock(vclock)


def _uuid(body: Map, key: int, what: str) -> str:
    value = _required(body, key, str)
    if not _UUID.fullmatch(value):
        raise Refused(Code.INVALID_MSGPACK, what)
    return value


_ABSENT = object()
_READERS: dict[int, Callable[[int, Map, Map], Request]] = {
    Type.SELECT: _select,
    Type.INSERT: _insert,
    Type.REPLACE: _replace,
    Type.DELETE: _delete,
    Type.CALL: _call,
    Type.PING: _ping,
    Type.SUBSCRIBE: _subscribe,
    Type.VOTE: _vote,
    Type.JOIN: _join,
    Type.FETCH_SNAPSHOT: _fetch_snapshot,
    Type.REGISTER: _register,
}
