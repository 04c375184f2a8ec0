"""Bytes of a link, as they come, to messages: one decoder for each of the three kinds of readers.

`frames.py` describes the order of messages on a link. A decoder keeps the bytes of an incomplete frame. After a
ProtocolError it is broken for good: the boundaries of the following frames are lost.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from struct import Struct

from nodes.iproto.errors import FrameTooLong, MalformedFrame, ProtocolError, shown
from nodes.iproto.greeting import SIZE as GREETING_SIZE
from nodes.iproto.greeting import Greeting, parse_greeting
from nodes.iproto.messages import (
    Ack,
    Answer,
    Auth,
    Ballot,
    Checked,
    Heartbeat,
    JoinMeta,
    JoinSnapshot,
    Key,
    Message,
    RaftState,
    Refusal,
    Rows,
    Stage,
    Subscribe,
    Subscribed,
    Type,
)
from nodes.iproto.packing import is_vclock, packed_vclock
from nodes.iproto.requests import Map, features_of, halves, request_of
from nodes.iproto.rows import row_of

FRAME_BYTES_MAX = 64 * 1024 * 1024

_TYPE, _SYNC, _REPLICA_ID = int(Key.REQUEST_TYPE), int(Key.SYNC), int(Key.REPLICA_ID)
_TIMESTAMP, _SCHEMA_VERSION = int(Key.TIMESTAMP), int(Key.SCHEMA_VERSION)
_DATA, _ERROR_24, _VCLOCK, _TERM = int(Key.DATA), int(Key.ERROR_24), int(Key.VCLOCK), int(Key.TERM)
_CLUSTER_UUID, _VCLOCK_SYNC, _BALLOT = int(Key.CLUSTER_UUID), int(Key.VCLOCK_SYNC), int(Key.BALLOT)
_JOIN_META, _JOIN_SNAPSHOT = int(Type.JOIN_META), int(Type.JOIN_SNAPSHOT)
_OK, _ERROR, _RAFT = int(Type.OK), int(Type.ERROR), int(Type.RAFT)


class _Decoder:
    """Reads the greeting and frames, and refuses to go on after a fault; `_message` decodes one frame."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.greeting: Greeting | None = None
        self.greeted = False
        self._greeting_bytes = b""
        self._frames = _Frames(frame_bytes_max)
        self._is_broken = False

    def feed(self, data: bytes) -> list[Message]:
        """The messages that `data` completes. Raises ProtocolError, and again at every later call."""
        if self._is_broken:
            raise ProtocolError("this link broke the protocol before; end it")
        messages: list[Message] = []
        try:
            if not self.greeted:
                data = self._behind_greeting(data)
            for payload in self._frames.split(data):
                messages.append(self._message(payload))
        except ProtocolError as error:
            self._is_broken = True
            error.messages = tuple(self._joined(messages))
            raise
        return self._joined(messages)

    def _behind_greeting(self, data: bytes) -> bytes:
        self._greeting_bytes += data
        if len(self._greeting_bytes) < GREETING_SIZE:
            return b""
        self.greeting = parse_greeting(self._greeting_bytes[:GREETING_SIZE])
        self.greeted = True
        return self._greeting_bytes[GREETING_SIZE:]

    @abstractmethod
    def _message(self, payload: bytes) -> Message:
        """The message of a whole frame. Raises ProtocolError."""

    def _joined(self, messages: list[Message]) -> list[Message]:
        return messages


class ServerDecoder(_Decoder):
    """Messages of clients and replicas. The server sends the greeting, so `greeted` is true from the start."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX, salt: bytes = b"") -> None:
        super().__init__(frame_bytes_max)
        self.greeted = True
        self._is_subscribed = False
        self._salt = salt
        """The salt in the greeting of this link."""

    def _message(self, payload: bytes) -> Message:
        if self._is_subscribed:
            header, body = halves(payload)
            if header.get(_TYPE, _OK) == _OK:
                return _acknowledgement(header, body)
        request = request_of(payload)
        if type(request) is Subscribe:
            self._is_subscribed = True
        elif type(request) is Auth:
            return replace(request, salt=self._salt)
        elif type(request) is Checked and type(request.request) is Auth:
            return replace(request, request=replace(request.request, salt=self._salt))
        return request


class ApplierDecoder(_Decoder):
    """Messages of a master to a replica that asks for a ballot, joins or subscribes."""

    def _message(self, payload: bytes) -> Message:
        header, body = halves(payload)
        message_type = _unsigned(header, _TYPE)
        if message_type >= _ERROR:
            return _reply(message_type, header, body)
        if message_type == _OK:
            return _ok(header, body) if body else _heartbeat(header, body)
        if message_type == _RAFT:
            return _raft_state(header, body)
        if message_type == _JOIN_META:
            return JoinMeta(_unsigned(header, _SYNC))
        if message_type == _JOIN_SNAPSHOT:
            return JoinSnapshot(_unsigned(header, _SYNC))
        return Rows((row_of(header, body),))

    def _joined(self, messages: list[Message]) -> list[Message]:
        return list(_with_neighbours_joined(messages))


class ClientDecoder(_Decoder):
    """A server's answers to a client."""

    def _message(self, payload: bytes) -> Message:
        header, body = halves(payload)
        return _reply(_unsigned(header, _TYPE), header, body)


def _reply(reply_type: int, header: Map, body: Map) -> Answer | Refusal:
    sync, schema_version = _unsigned(header, _SYNC), _unsigned(header, _SCHEMA_VERSION)
    data, text = body.get(_DATA, []), body.get(_ERROR_24, "")
    if type(data) is not list or type(text) is not str:
        raise MalformedFrame(f"expected an array of data or an error's text, got {shown(body)}")
    if reply_type == _OK:
        return Answer(sync, tuple(data), schema_version, _DATA in body)
    if reply_type & _ERROR:
        return Refusal(sync, reply_type ^ _ERROR, text, schema_version)
    raise MalformedFrame(f"expected an answer or an error, got a message of type {reply_type}")


def _ok(header: Map, body: Map) -> Message:
    """An OK, by its body: 2.6 and later name the cluster only in the answer to a SUBSCRIBE."""
    sync = _unsigned(header, _SYNC)
    if _BALLOT in body:
        return _ballot(sync, body[_BALLOT])
    if _CLUSTER_UUID in body:
        cluster_uuid = body[_CLUSTER_UUID]
        if type(cluster_uuid) is not str:
            raise MalformedFrame(f"expected the answer to a SUBSCRIBE, got {shown(header)} {shown(body)}")
        sender = _unsigned(header, _REPLICA_ID)
        return Subscribed(sync, cluster_uuid, _vclock(body), sender, features_of(body))
    if _VCLOCK in body:
        return Stage(sync, _vclock(body))
    return _heartbeat(header, body)


def _ballot(sync: int, ballot: object) -> Ballot:
    """A ballot. Key 4 means `loading` in 2.6, and read-only in later versions."""
    if isinstance(ballot, dict):
        is_read_only, vclock = ballot.get(1), ballot.get(2)
        gc_vclock, is_loading = ballot.get(3, {}), ballot.get(4, False)
        flags = isinstance(is_read_only, bool) and isinstance(is_loading, bool)
        if flags and is_vclock(vclock) and is_vclock(gc_vclock):
            vclocks = packed_vclock(vclock), packed_vclock(gc_vclock)
            return Ballot(sync, bool(is_read_only), *vclocks, bool(is_loading))
    raise MalformedFrame(f"expected a ballot, got {shown(ballot)}")


def _acknowledgement(header: Map, body: Map) -> Ack | Heartbeat:
    """Before 2.11 an acknowledgement has no term: it reads as 0."""
    if _VCLOCK not in body:
        return _heartbeat(header, body)
    return Ack(_vclock(body), _unsigned(body, _TERM), _unsigned(body, _VCLOCK_SYNC))


def _raft_state(header: Map, body: Map) -> RaftState:
    is_leader_seen = body.get(5, False)
    if type(is_leader_seen) is not bool:
        raise MalformedFrame(f"expected whether a leader is seen, got {shown(is_leader_seen)}")
    vclock = body.get(3)
    if vclock is not None and not is_vclock(vclock):
        raise MalformedFrame(f"expected a candidate's vclock, got {shown(vclock)}")
    return RaftState(
        _unsigned(header, _REPLICA_ID),
        _unsigned(body, 0),
        _unsigned(body, 1),
        _unsigned(body, 2),
        _unsigned(body, 4),
        is_leader_seen,
        None if vclock is None else packed_vclock(vclock),
    )


def _heartbeat(header: Map, body: Map) -> Heartbeat:
    timestamp = header.get(_TIMESTAMP, 0.0)
    if type(timestamp) is not float:
        raise MalformedFrame(f"expected a double as the timestamp of a heartbeat, got {shown(timestamp)}")
    return Heartbeat(_unsigned(header, _REPLICA_ID), timestamp, _unsigned(body, _VCLOCK_SYNC))


def _vclock(body: Map) -> dict[int, int]:
    vclock = body.get(_VCLOCK)
    if not is_vclock(vclock):
        raise MalformedFrame(f"expected a map from replica id to lsn, got {shown(vclock)}")
    return packed_vclock(vclock)


def _unsigned(fields: Map, key: int) -> int:
    value = fields.get(key, 0)
    if type(value) is not int or value < 0:
        raise MalformedFrame(f"expected an unsigned integer under key {key}, got {shown(value)}")
    return value


def _with_neighbours_joined(messages: Iterable[Message]) -> Iterator[Message]:
    run: list[Rows] = []
    for message in messages:
        if type(message) is Rows:
            run.append(message)
            continue
        if run:
            yield _one(run)
            run = []
        yield message
    if run:
        yield _one(run)


def _one(run: list[Rows]) -> Rows:
    return run[0] if len(run) == 1 else Rows(tuple([row for rows in run for row in rows.rows]))


class _Frames:
    """Cuts a stream into the payloads of its frames."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._wanted = 1

    def split(self, data: bytes) -> Iterator[bytes]:
        """The payloads that `data` completes."""
        if self._kept:
            self._kept += data
            if len(self._kept) < self._wanted:
                return
            data = bytes(self._kept)
            self._kept.clear()
        start = 0
        while start < len(data):
            begin, end = self._bounds(data, start)
            if end > len(data):
                self._kept += data[start:]
                self._wanted = end - start
                return
            yield data[begin:end]
            start = end

    def _bounds(self, data: bytes, start: int) -> tuple[int, int]:
        """The bounds of a frame's payload. If its length is cut off, the end is the least possible one."""
        first = data[start]
        width = _LENGTH_BYTES[first]
        begin = start + 1 + width
        if begin > len(data):
            return begin, begin
        if first == 0xCE:
            length: int = _UINT32.unpack_from(data, start + 1)[0]
        elif width >= 0:
            length = int.from_bytes(data[start + 1 : begin], "big") if width else first
        else:
            raise MalformedFrame(f"expected the length of a frame, got the byte 0x{first:02x}")
        if length > self._bytes_max:
            raise FrameTooLong(f"expected a frame of at most {self._bytes_max} bytes, got one of {length}")
        return begin, begin + length


_UINT32 = Struct(">I")
# How many bytes follow the first byte of a msgpack integer; -1: it is none, or a negative one.
_LENGTH_BYTES = [0] * 0x80 + [-1] * 0x80
_LENGTH_BYTES[0xCC:0xD0] = [1, 2, 4, 8]
