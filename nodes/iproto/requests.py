"""Decoding the requests of clients and replicas.

Inside a sound frame nothing is fatal: an unknown type, a missing field or a field of the wrong type becomes
an `Unknown` that carries the refusal Tarantool would send, and the link lives on.

| request | must have | may have |
|---|---|---|
| SELECT | space id, limit, key | index id, offset, iterator |
| INSERT, REPLACE | space id, tuple | |
| UPDATE | space id, key, tuple (the operations) | index id, index base |
| UPSERT | space id, tuple, operations | index base |
| DELETE | space id, key | index id |
| CALL, CALL_16 | function name | tuple (the arguments) |
| EVAL | expression | tuple (the arguments) |
| AUTH | user name, tuple (mechanism and scramble) | |
| SUBSCRIBE | cluster UUID, instance UUID, vclock | server version, anonymous; the replica id stands in the header |
| VOTE | | |
| JOIN, FETCH_SNAPSHOT | instance UUID (JOIN) | server version |
| REGISTER | instance UUID, vclock | |

A client may name the schema version under which it wants to be served: then the request comes as a `Checked`.
Tuples, keys and arguments come as Python tuples; arrays inside them are lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nodes.iproto.codes import Code
from nodes.iproto.errors import MalformedFrame, shown
from nodes.iproto.messages import (
    UUID,
    Auth,
    Call,
    Checked,
    ClientRequest,
    Delete,
    Eval,
    Execute,
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
    Update,
    Upsert,
    Vote,
)
from nodes.iproto.packing import is_vclock, packed_vclock, unpack, unpack_some

Map = dict[int, object]
T = TypeVar("T")

_TYPE, _SYNC, _REPLICA_ID = int(Key.REQUEST_TYPE), int(Key.SYNC), int(Key.REPLICA_ID)
_SPACE_ID, _INDEX_ID, _LIMIT = int(Key.SPACE_ID), int(Key.INDEX_ID), int(Key.LIMIT)
_OFFSET, _ITERATOR, _KEY, _TUPLE = int(Key.OFFSET), int(Key.ITERATOR), int(Key.KEY), int(Key.TUPLE)
_FUNCTION_NAME, _OPS, _INDEX_BASE = int(Key.FUNCTION_NAME), int(Key.OPS), int(Key.INDEX_BASE)
_SCHEMA_VERSION, _USER_NAME, _EXPRESSION = int(Key.SCHEMA_VERSION), int(Key.USER_NAME), int(Key.EXPRESSION)
_NAMES = {_KEY: "key", _TUPLE: "tuple", _FUNCTION_NAME: "function name", _USER_NAME: "user name"} | {
    _SPACE_ID: "space id",
    _LIMIT: "limit",
    _EXPRESSION: "expression",
    _OPS: "operations",
    int(Key.INSTANCE_UUID): "instance uuid",
    int(Key.CLUSTER_UUID): "cluster uuid",
    int(Key.VCLOCK): "vector clock",
}
"""Tarantool's names for fields, in its errors about a missing one."""


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
    raise MalformedFrame(f"expected a frame of two maps, got {shown(both)}")


def request_of(payload: bytes) -> Request:
    """The request in a frame; never raises."""
    sync = 0
    try:
        header, body = _header_and_body(payload)
        sync = _unsigned(header, _SYNC, "packet header")
        request_type = _unsigned(header, _TYPE, "packet header")
        reader = _READERS.get(request_type)
        if reader is None:
            raise Refused(Code.UNKNOWN_REQUEST_TYPE, request_type)
        if body is None:
            if request_type == Type.PING and not _has_more(payload):
                return Ping(sync)  # whatever it brings along
            raise Refused(Code.INVALID_MSGPACK, "packet body")
        request = reader(sync, header, body)
        version = header.get(_SCHEMA_VERSION)
        if version and type(version) is int and isinstance(request, ClientRequest):
            return Checked(version, request)
        return request
    except Refused as refused:
        return Unknown(sync, refused.code, refused.text)


def _header_and_body(payload: bytes) -> tuple[Map, Map | None]:
    """Header and body; if the body is malformed, the header may still have a sync to answer to."""
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


def _has_more(payload: bytes) -> bool:
    """More bytes follow the body."""
    try:
        return len(unpack_some(payload)) > 2
    except MalformedFrame:
        return False


def _unsigned(fields: Map, key: int, where: str = "packet body") -> int:
    value = fields.get(key, 0)
    if type(value) is not int or value < 0:
        raise Refused(Code.INVALID_MSGPACK, where)
    return value


def _required(body: Map, key: int, needed: type[T]) -> T:
    value = body.get(key, _ABSENT)
    if value is _ABSENT:
        raise Refused(Code.MISSING_REQUEST_FIELD, _NAMES[key])
    if type(value) is not needed:
        raise Refused(Code.INVALID_MSGPACK, "packet body")
    return value


def _dml(body: Map, *required: int) -> None:
    """Check the common part of data requests: known fields have their types, and none that is required is missing."""
    for key, value in body.items():
        needed = _DML_TYPES.get(key)
        if needed is not None and (type(value) is not needed or (needed is int and value < 0)):  # type: ignore[operator]
            raise Refused(Code.INVALID_MSGPACK, "packet body")
    for key in required:
        if key not in body:
            raise Refused(Code.MISSING_REQUEST_FIELD, _NAMES[key])


def _select(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _LIMIT, _KEY)
    how_many = _of(body, _LIMIT), _of(body, _OFFSET)
    key = _values(body, _KEY)
    return Select(sync, _of(body, _SPACE_ID), key, _of(body, _INDEX_ID), *how_many, _of(body, _ITERATOR))


def _insert(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _TUPLE)
    return Insert(sync, _of(body, _SPACE_ID), _values(body, _TUPLE))


def _replace(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _TUPLE)
    return Replace(sync, _of(body, _SPACE_ID), _values(body, _TUPLE))


def _update(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _KEY, _TUPLE)
    key, operations = _values(body, _KEY), _values(body, _TUPLE)
    return Update(sync, _of(body, _SPACE_ID), key, operations, _of(body, _INDEX_ID), _of(body, _INDEX_BASE))


def _upsert(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _TUPLE, _OPS)
    values, operations = _values(body, _TUPLE), _values(body, _OPS)
    return Upsert(sync, _of(body, _SPACE_ID), values, operations, _of(body, _INDEX_BASE))


def _delete(sync: int, header: Map, body: Map) -> Request:
    _dml(body, _SPACE_ID, _KEY)
    return Delete(sync, _of(body, _SPACE_ID), _values(body, _KEY), _of(body, _INDEX_ID))


def _of(body: Map, key: int) -> int:
    value = body.get(key, 0)
    assert isinstance(value, int), "checked by _dml"
    return value


def _values(body: Map, key: int) -> tuple[object, ...]:
    value = body[key]
    assert isinstance(value, list), "checked by _dml"
    return tuple(value)


def _call(sync: int, header: Map, body: Map) -> Request:
    name, arguments = body.get(_FUNCTION_NAME), body.get(_TUPLE, [])
    if type(name) is not str or type(arguments) is not list:
        name, arguments = _called(body, _FUNCTION_NAME)
    return Call(sync, name, tuple(arguments))


def _call_16(sync: int, header: Map, body: Map) -> Request:
    name, arguments = _called(body, _FUNCTION_NAME)
    return Call(sync, name, tuple(arguments), wraps=True)


def _eval(sync: int, header: Map, body: Map) -> Request:
    expression, arguments = _called(body, _EXPRESSION)
    return Eval(sync, expression, tuple(arguments))


def _called(body: Map, key: int) -> tuple[str, list[object]]:
    """The name of the function, and its arguments, by default none."""
    arguments = body.get(_TUPLE, [])
    if type(arguments) is not list:
        raise Refused(Code.INVALID_MSGPACK, "packet body")
    return _required(body, key, str), arguments


def _execute(sync: int, header: Map, body: Map) -> Request:
    return Execute(sync, header[_TYPE] == Type.PREPARE, body)


def _auth(sync: int, header: Map, body: Map) -> Request:
    name, _ = _called(body, _USER_NAME)
    return Auth(sync, name, tuple(_required(body, _TUPLE, list)))


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
        features_of(body),
    )


def features_of(body: Map) -> tuple[int, ...]:
    """The features that the sender reports; values that are not numbers are ignored."""
    numbers = body.get(Key.FEATURES, [])
    return tuple(number for number in numbers if type(number) is int) if isinstance(numbers, list) else ()


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


def _uuid(body: Map, key: int, field: str) -> str:
    value = _required(body, key, str)
    if not UUID.fullmatch(value):
        raise Refused(Code.INVALID_MSGPACK, field)
    return value


_ABSENT = object()
_DML_TYPES: dict[int, type] = dict.fromkeys(
    (_SPACE_ID, _INDEX_ID, _LIMIT, _OFFSET, _ITERATOR, _INDEX_BASE), int
) | dict.fromkeys((_KEY, _TUPLE, _OPS), list)
_READERS: dict[int, Callable[[int, Map, Map], Request]] = {
    Type.SELECT: _select,
    Type.INSERT: _insert,
    Type.REPLACE: _replace,
    Type.UPDATE: _update,
    Type.UPSERT: _upsert,
    Type.DELETE: _delete,
    Type.CALL: _call,
    Type.CALL_16: _call_16,
    Type.EVAL: _eval,
    Type.EXECUTE: _execute,
    Type.PREPARE: _execute,
    Type.AUTH: _auth,
    Type.PING: _ping,
    Type.SUBSCRIBE: _subscribe,
    Type.VOTE: _vote,
    Type.JOIN: _join,
    Type.FETCH_SNAPSHOT: _fetch_snapshot,
    Type.REGISTER: _register,
}
