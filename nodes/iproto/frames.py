"""IPROTO on a link: `encode` turns messages into bytes, three decoders (`decoders.py`) take bytes as they
come.

A frame is its length (a msgpack integer, written as five bytes), a header map and a body map. A server greets
first (`greeting`); after that both sides send frames. The decoders read, in this order:

| decoder | reads |
|---|---|
| `ServerDecoder` | requests; after a Subscribe also Acks, and Heartbeats of an idle replica |
| `ApplierDecoder` | greeting; Ballot; Stages and Rows of a JOIN; Subscribed; Rows, Heartbeats; or a Refusal |
| `ClientDecoder` | the greeting; Answers and Refusals |

`feed` may be given any pieces of the stream: the messages do not depend on where it was cut, with one exception:
rows that came in one piece are joined into one `Rows`. A `ProtocolError` ends a link; its
`messages` are those decoded before it by the same `feed`.

Arrays: `Answer.data`, tuples, keys and arguments are Python tuples, arrays *inside* them are lists. A
SELECT's rows are therefore lists in a tuple. Component 0 of a vclock (local rows) is not sent.
"""

from __future__ import annotations

from struct import Struct

from nodes.iproto.decoders import FRAME_BYTES_MAX, ApplierDecoder, ClientDecoder, ServerDecoder
from nodes.iproto.greeting import Greeting, greeting, parse_greeting
from nodes.iproto.messages import (
    Ack,
    Answer,
    Auth,
    Ballot,
    Call,
    Checked,
    Delete,
    Eval,
    Execute,
    Heartbeat,
    Insert,
    Join,
    JoinMeta,
    JoinSnapshot,
    Message,
    Ping,
    RaftState,
    Refusal,
    Register,
    Replace,
    Rows,
    Select,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Update,
    Upsert,
    Vote,
)
from nodes.iproto.packing import pack, packed_vclock
from nodes.iproto.requests import halves
from nodes.iproto.rows import packed_row

__all__ = [
    "FRAME_BYTES_MAX",
    "ApplierDecoder",
    "ClientDecoder",
    "Greeting",
    "ServerDecoder",
    "encode",
    "greeting",
    "parse_greeting",
]

# The keys of `messages.Key` as plain ints: looking up an enum's member costs as much as packing a small map.
_TYPE, _SYNC, _REPLICA_ID, _TIMESTAMP, _SCHEMA_VERSION, _SERVER_VERSION = 0x00, 0x01, 0x02, 0x04, 0x05, 0x06
_SPACE_ID, _INDEX_ID, _LIMIT, _OFFSET, _ITERATOR = 0x10, 0x11, 0x12, 0x13, 0x14
_INDEX_BASE, _KEY, _TUPLE, _FUNCTION_NAME, _USER_NAME, _EXPRESSION, _OPS = (
    *(0x15, 0x20, 0x21, 0x22),
    *(0x23, 0x27, 0x28),
)
_INSTANCE_UUID, _CLUSTER_UUID, _VCLOCK, _TERM = 0x24, 0x25, 0x26, 0x53
_DATA, _ERROR_24, _ERROR_STACK, _VCLOCK_SYNC = 0x30, 0x31, 0x52, 0x5A
_BALLOT, _REPLICA_ANON, _FEATURES = 0x29, 0x50, 0x55
_OK, _ERROR = int(Type.OK), int(Type.ERROR)
_SELECT, _INSERT, _REPLACE, _DELETE = int(Type.SELECT), int(Type.INSERT), int(Type.REPLACE), int(Type.DELETE)
_UPDATE, _UPSERT, _CALL_16, _EVAL = int(Type.UPDATE), int(Type.UPSERT), int(Type.CALL_16), int(Type.EVAL)
_EXECUTE, _PREPARE, _AUTH = int(Type.EXECUTE), int(Type.PREPARE), int(Type.AUTH)
_CALL, _PING, _SUBSCRIBE, _RAFT = int(Type.CALL), int(Type.PING), int(Type.SUBSCRIBE), int(Type.RAFT)

_LENGTH = Struct(">BI")
# Tarantool writes the header of a reply, and the head of an answer's array, in fixed widths.
_REPLY_HEADER = Struct(">BBBIBBQBBQ")
_ANSWER_BODY = Struct(">BBBI")
_NO_DATA = b"\x80"


def encode(message: Message) -> bytes:
    """The bytes of one message; several frames if it is Rows."""
    match message:
        case Answer(sync, data, schema_version, has_data):
            return _reply(_OK, sync, schema_version, _answer_body(data) if has_data else _NO_DATA)
        case Rows(rows):
            return b"".join([_framed(packed_row(row)) for row in rows])
        case Call(sync, name, arguments, wraps):
            return _request(_CALL_16 if wraps else _CALL, sync, {_FUNCTION_NAME: name, _TUPLE: arguments})
        case Ack(vclock, term, sync):
            body: dict[int, object] = {_VCLOCK: packed_vclock(vclock)}
            if term:
                body[_TERM] = term
            return _frame({_TYPE: _OK}, body | {_VCLOCK_SYNC: sync} if sync else body)
        case Heartbeat(replica_id, timestamp, sync):
            header = pack(_heartbeat_header(replica_id, timestamp))
            return _framed(header + pack({_VCLOCK_SYNC: sync}) if sync else header)
        case RaftState():
            return _frame({_TYPE: _RAFT, _REPLICA_ID: message.replica_id}, _raft_body(message))
        case Refusal(sync, code, text, schema_version):
            return _reply(_ERROR | code, sync, schema_version, _refusal_body(code, text))
        case Select() | Replace() | Insert() | Delete() | Ping():
            return _encoded_request(message)
        case Subscribe() | Subscribed() | Vote() | Ballot() | Join() | Register():
            return _of_following(message)
        case Stage() | JoinMeta() | JoinSnapshot():
            return _of_following(message)
        case _:
            return _encoded_request(message)


def _encoded_request(message: Message) -> bytes:
    """The bytes of a client's request."""
    match message:
        case Select(sync, space_id, key, index_id, limit, offset, iterator):
            where = {_SPACE_ID: space_id, _INDEX_ID: index_id}
            how_many = {_LIMIT: limit, _OFFSET: offset, _ITERATOR: iterator}
            return _request(_SELECT, sync, {**where, **how_many, _KEY: key})
        case Replace(sync, space_id, fields):
            return _request(_REPLACE, sync, {_SPACE_ID: space_id, _TUPLE: fields})
        case Insert(sync, space_id, fields):
            return _request(_INSERT, sync, {_SPACE_ID: space_id, _TUPLE: fields})
        case Delete(sync, space_id, key, index_id):
            return _request(_DELETE, sync, {_SPACE_ID: space_id, _INDEX_ID: index_id, _KEY: key})
        case Update(sync, space_id, key, operations, index_id, base):
            where = {_SPACE_ID: space_id, _INDEX_ID: index_id, _INDEX_BASE: base}
            return _request(_UPDATE, sync, {**where, _KEY: key, _TUPLE: operations})
        case Upsert(sync, space_id, fields, operations, base):
            where = {_SPACE_ID: space_id, _INDEX_BASE: base}
            return _request(_UPSERT, sync, {**where, _TUPLE: fields, _OPS: operations})
        case Eval(sync, expression, arguments):
            return _request(_EVAL, sync, {_EXPRESSION: expression, _TUPLE: arguments})
        case Execute(sync, prepares, statement):
            return _request(_PREPARE if prepares else _EXECUTE, sync, dict(statement))
        case Auth(sync, user, proof):
            return _request(_AUTH, sync, {_USER_NAME: user, _TUPLE: proof})
        case Checked(version, request):
            return _checked(version, request)
        case Ping(sync):
            return _request(_PING, sync, {})
    raise AssertionError(f"only a decoder makes an Unknown; answer it with a Refusal: {message}")


def _checked(version: int, request: Message) -> bytes:
    """The request with the schema version in its header."""
    header, body = halves(encode(request)[_LENGTH.size :])
    return _frame(header | {_SCHEMA_VERSION: version}, body)


def _of_following(
    message: Subscribe | Subscribed | Vote | Ballot | Join | Register | Stage | JoinMeta | JoinSnapshot,
) -> bytes:
    """Messages by which a node begins to follow another one: they are rare, so they are matched last."""
    match message:
        case Subscribe():
            return _frame(_subscribe_header(message), _subscribe_body(message))
        case Subscribed(sync, cluster_uuid, vclock, replica_id, features):
            sender = {_REPLICA_ID: replica_id} if replica_id else {}
            answer: dict[int, object] = {_CLUSTER_UUID: cluster_uuid, _VCLOCK: packed_vclock(vclock)}
            if features:
                answer[_FEATURES] = list(features)
            return _frame({_TYPE: _OK, _SYNC: sync, **sender}, answer)
        case Stage(sync, vclock):
            return _frame({_TYPE: _OK, _SYNC: sync}, {_VCLOCK: packed_vclock(vclock)})
        case Vote(sync):
            return _request(int(Type.VOTE), sync, {})
        case Ballot():
            vclock, gc_vclock = packed_vclock(message.vclock), packed_vclock(message.gc_vclock)
            ballot = {1: message.is_read_only, 2: vclock, 3: gc_vclock, 4: message.is_loading}
            return _frame({_TYPE: _OK, _SYNC: message.sync}, {_BALLOT: ballot})
        case Join(sync, instance_uuid, version, is_anonymous):
            if is_anonymous:
                return _request(int(Type.FETCH_SNAPSHOT), sync, {_SERVER_VERSION: version})
            body = {_INSTANCE_UUID: instance_uuid, _SERVER_VERSION: version}
            return _request(int(Type.JOIN), sync, body)
        case Register(sync, instance_uuid, vclock):
            body = {_INSTANCE_UUID: instance_uuid, _VCLOCK: packed_vclock(vclock)}
            return _request(int(Type.REGISTER), sync, body)
        case JoinMeta(sync):
            return _request(int(Type.JOIN_META), sync, {})
        case JoinSnapshot(sync):
            return _request(int(Type.JOIN_SNAPSHOT), sync, {})


def _framed(payload: bytes) -> bytes:
    return _LENGTH.pack(0xCE, len(payload)) + payload


def _frame(header: object, body: object) -> bytes:
    return _framed(pack(header) + pack(body))


def _request(request_type: int, sync: int, body: object) -> bytes:
    return _framed(pack({_TYPE: request_type, _SYNC: sync}) + pack(body))


def _reply(reply_type: int, sync: int, schema_version: int, body: bytes) -> bytes:
    length = _LENGTH.pack(0xCE, _REPLY_HEADER.size + len(body))
    fields = (0x83, _TYPE, 0xCE, reply_type, _SYNC, 0xCF, sync, _SCHEMA_VERSION, 0xCF, schema_version)
    return length + _REPLY_HEADER.pack(*fields) + body


def _answer_body(data: tuple[object, ...]) -> bytes:
    count = len(data)
    values = pack(data)[1 if count < 16 else 3 if count < 65536 else 5 :]
    return _ANSWER_BODY.pack(0x81, _DATA, 0xDD, count) + values


def _refusal_body(code: int, text: str) -> bytes:
    """The text for clients before 2.4, and the stack of one error for later ones."""
    error = {0: "ClientError", 1: "", 2: 0, 3: text, 4: 0, 5: code}
    return pack({_ERROR_24: text, _ERROR_STACK: {0: [error]}})


def _heartbeat_header(replica_id: int, timestamp: float) -> dict[int, int | float]:
    header: dict[int, int | float] = {_TYPE: _OK}
    if replica_id:
        header[_REPLICA_ID] = replica_id
    if timestamp:
        header[_TIMESTAMP] = float(timestamp)
    return header


def _raft_body(message: RaftState) -> dict[int, object]:
    """The body, as Tarantool writes it: zeros are left out; key 3 is a candidate's vclock."""
    body: dict[int, object] = {0: message.term}
    if message.vote:
        body[1] = message.vote
    body[2] = message.state
    if message.vclock is not None:
        body[3] = packed_vclock(message.vclock)
    body[4] = message.leader_id
    body[5] = message.is_leader_seen
    return body


def _subscribe_header(message: Subscribe) -> dict[int, int]:
    """The header. Tarantool finds a replica's id by its UUID, and ignores the id here."""
    header = {_TYPE: _SUBSCRIBE, _SYNC: message.sync, _REPLICA_ID: message.replica_id}
    return {key: value for key, value in header.items() if value}


def _subscribe_body(message: Subscribe) -> dict[int, object]:
    body: dict[int, object] = {
        _CLUSTER_UUID: message.cluster_uuid,
        _INSTANCE_UUID: message.instance_uuid,
        _VCLOCK: packed_vclock(message.vclock),
        _SERVER_VERSION: message.server_version,
    }
    if message.is_anonymous:
        body[_REPLICA_ANON] = True
    if message.features:
        body[_FEATURES] = list(message.features)
    return body
