"""Messages on a link, as typed values; `nodes.iproto.frames` turns them into bytes and back.

In the simulator these objects travel as they are (one seed in ten goes through the bytes); they are immutable,
and a tuple's fields are msgpack values: None, bool, int, float, str, bytes, tuple/list, dict.

A `Row` is both a frame of the replication stream and an entry of an xlog file. The rows of one transaction share
`tsn` (the lsn of its first row) and the last one has `is_commit`. A row with the types below:

| type | name | body |
|---|---|---|
| 2, 3, 5 | INSERT, REPLACE, DELETE | {0x10: space id, 0x21: tuple} or {0x10: space id, 0x11: index id, 0x20: key} |
| 4 | UPDATE (of real Tarantool; ours log REPLACE) | {0x10: space id, 0x20: key, 0x21: operations, 0x15: index base} |
| 9 | UPSERT (likewise) | {0x10: space id, 0x21: tuple, 0x28: operations, 0x15: index base} |
| 12 | NOP | {} |
| 30 | RAFT (kept by each node for itself: replica id 0) | {0: term, 1: vote} |
| 31, 32 | PROMOTE, DEMOTE | {0x02: old owner, 0x03: lsn, 0x53: term} |
| 40, 41 | CONFIRM, ROLLBACK | {0x02: owner, 0x03: lsn} |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""The form of a UUID in messages, tuples and files."""


class Type(IntEnum):
    """Request and row types (IPROTO_*)."""

    OK = 0
    SELECT = 1
    INSERT = 2
    REPLACE = 3
    UPDATE = 4
    DELETE = 5
    CALL_16 = 6
    AUTH = 7
    EVAL = 8
    UPSERT = 9
    CALL = 10
    EXECUTE = 11
    NOP = 12
    PREPARE = 13
    RAFT = 30
    PROMOTE = 31
    DEMOTE = 32
    CONFIRM = 40
    ROLLBACK = 41
    PING = 64
    JOIN = 65
    SUBSCRIBE = 66
    VOTE = 68
    FETCH_SNAPSHOT = 69
    REGISTER = 70
    JOIN_META = 71
    JOIN_SNAPSHOT = 72
    ERROR = 0x8000


class Key(IntEnum):
    """Header and body keys (IPROTO_*)."""

    REQUEST_TYPE = 0x00
    SYNC = 0x01
    REPLICA_ID = 0x02
    LSN = 0x03
    TIMESTAMP = 0x04
    SCHEMA_VERSION = 0x05
    SERVER_VERSION = 0x06
    GROUP_ID = 0x07
    TSN = 0x08
    FLAGS = 0x09
    SPACE_ID = 0x10
    INDEX_ID = 0x11
    LIMIT = 0x12
    OFFSET = 0x13
    ITERATOR = 0x14
    INDEX_BASE = 0x15
    KEY = 0x20
    TUPLE = 0x21
    FUNCTION_NAME = 0x22
    USER_NAME = 0x23
    INSTANCE_UUID = 0x24
    CLUSTER_UUID = 0x25
    VCLOCK = 0x26
    EXPRESSION = 0x27
    OPS = 0x28
    BALLOT = 0x29
    DATA = 0x30
    ERROR_24 = 0x31
    REPLICA_ANON = 0x50
    ERROR = 0x52
    TERM = 0x53
    FEATURES = 0x55
    VCLOCK_SYNC = 0x5A


@dataclass(frozen=True, slots=True)
class Row:
    type: int
    replica_id: int
    lsn: int
    timestamp: float
    tsn: int
    is_commit: bool = True
    wait_sync: bool = False
    wait_ack: bool = False
    group_id: int = 0
    body: Mapping[int, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that travel together, in order. Bytes carry single rows; a decoder joins neighbours again."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Select:
    sync: int
    space_id: int
    key: tuple[object, ...]
    index_id: int = 0
    limit: int = 0xFFFFFFFF
    offset: int = 0
    iterator: int = 0


@dataclass(frozen=True, slots=True)
class Insert:
    sync: int
    space_id: int
    tuple: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    sync: int
    space_id: int
    tuple: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    sync: int
    space_id: int
    key: tuple[object, ...]
    index_id: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """Fields in `operations` count from `index_base`; `nodes.qsync.updates` defines operations."""

    sync: int
    space_id: int
    key: tuple[object, ...]
    operations: tuple[object, ...]
    index_id: int = 0
    index_base: int = 0


@dataclass(frozen=True, slots=True)
class Upsert:
    """Insert the tuple, or do the operations on the existing one."""

    sync: int
    space_id: int
    fields: tuple[object, ...]
    operations: tuple[object, ...]
    index_base: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """`wraps` is the old form (CALL_16): every value that is returned becomes a tuple."""

    sync: int
    name: str
    arguments: tuple[object, ...]
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Eval:
    sync: int
    expression: str
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Execute:
    """SQL: a statement, or the other content of the body of EXECUTE and PREPARE."""

    sync: int
    prepares: bool
    body: Mapping[int, object]


@dataclass(frozen=True, slots=True)
class Auth:
    """`proof` is the mechanism and the scramble; the decoder puts in the `salt` of the link."""

    sync: int
    user: str
    proof: tuple[object, ...]
    salt: bytes = b""


@dataclass(frozen=True, slots=True)
class Checked:
    """A request to be served only under this schema version."""

    schema_version: int
    request: ClientRequest

    @property
    def sync(self) -> int:
        return self.request.sync


@dataclass(frozen=True, slots=True)
class Ping:
    sync: int


@dataclass(frozen=True, slots=True)
class Answer:
    """OK. `data` is the list under IPROTO_DATA (for CALL: the returned values); PING and AUTH have no such list."""

    sync: int
    data: tuple[object, ...] = ()
    schema_version: int = 1
    has_data: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error with Tarantool's code and message."""

    sync: int
    code: int
    message: str
    schema_version: int = 1


PROMOTE_MARK = 0x5153
"""Feature: the node reads in a PROMOTE's flags when it takes effect. Tarantool's own features count up from 0."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A replica asks for all rows beyond its vclock."""

    sync: int
    cluster_uuid: str
    instance_uuid: str
    replica_id: int
    vclock: Mapping[int, int]
    server_version: int = 0x030200
    is_anonymous: bool = False
    """An anonymous replica follows without being a member: it has no id and counts for no quorum."""
    features: tuple[int, ...] = ()
    """The features of the sender beyond its version; other servers ignore them."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The answer: rows follow. `replica_id` is that of the sender; 0 if it does not say."""

    sync: int
    cluster_uuid: str
    vclock: Mapping[int, int]
    replica_id: int = 0
    features: tuple[int, ...] = ()
    """As in `Subscribe`."""


@dataclass(frozen=True, slots=True)
class Vote:
    """A node that may want to join asks for a ballot."""

    sync: int


@dataclass(frozen=True, slots=True)
class Ballot:
    """The answer to `Vote`. `gc_vclock`: the beginning of the kept logs; `is_loading`: the node has no data yet."""

    sync: int
    is_read_only: bool
    vclock: Mapping[int, int]
    gc_vclock: Mapping[int, int]
    is_loading: bool


@dataclass(frozen=True, slots=True)
class Join:
    """A new replica asks for all data and for its id. An anonymous one (FETCH_SNAPSHOT) gets no id."""

    sync: int
    instance_uuid: str
    server_version: int = 0x030200
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Register:
    """An anonymous replica, which has data up to `vclock`, wants an id."""

    sync: int
    instance_uuid: str
    vclock: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Stage:
    """Begins or ends a part of the answer to a JOIN: the vclock of the data before or behind it."""

    sync: int
    vclock: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class JoinMeta:
    """Up to `JoinSnapshot`, the state of election and queue follows as RAFT and PROMOTE rows (since 2.11)."""

    sync: int


@dataclass(frozen=True, slots=True)
class JoinSnapshot:
    """The data of a JOIN follows."""

    sync: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A relay has no rows to send; with `sync` it asks for an acknowledgement that repeats the number."""

    replica_id: int
    timestamp: float
    sync: int = 0


@dataclass(frozen=True, slots=True)
class Ack:
    """The vclock and the term that a replica has on disk, read in one instant."""

    vclock: Mapping[int, int]
    term: int
    sync: int = 0


@dataclass(frozen=True, slots=True)
class RaftState:
    """A node's report of its election (a RAFT row on the wire that is in no log).

    `state` is 1 for a follower, 2 for a candidate, 3 for a leader. A candidate says its vclock; None: none came.
    """

    replica_id: int
    term: int
    vote: int
    state: int
    leader_id: int
    is_leader_seen: bool
    vclock: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A request of an unknown type or without a field that it needs: answer a Refusal of these three."""

    sync: int
    code: int
    message: str


ClientRequest = (
    Select | Insert | Replace | Update | Upsert | Delete | Call | Eval | Execute | Auth | Ping | Unknown
)
Request = ClientRequest | Checked | Subscribe | Vote | Join | Register
Response = Answer | Refusal
Message = (
    Request
    | Response
    | Rows
    | Subscribed
    | Ballot
    | Stage
    | JoinMeta
    | JoinSnapshot
    | Heartbeat
    | Ack
    | RaftState
)
