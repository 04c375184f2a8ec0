"""A snapshot: all data of a node at one vclock, as a file and as the rows that a joining replica gets.

It never holds unconfirmed data. Behind the data stand the state of the election as a RAFT row and the state of the
queue as a PROMOTE row (protocol 2.6 has neither). The vclock in the PROMOTE row says up to where each owner's entries
are confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import is_
from struct import Struct

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import is_vclock, packed_vclock
from nodes.iproto.rows import packed_insert, packed_row
from nodes.kernel.errors import StartRefused
from nodes.qsync.bootstrap import Stored, stored
from nodes.qsync.filter import number
from nodes.qsync.system_spaces import SYSTEM_ID_MAX

BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class QueueState:
    """The owner of the queue, its term, and which of its entries are confirmed."""

    owner_id: int = 0
    term: int = 1
    confirmed_lsn: int = 0
    confirmed_of: Mapping[int, int] = field(default_factory=dict)
    """The confirmed lsn of every node that ever owned the queue: replica id → lsn."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    term: int = 1
    vote: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`vclock` is the position of the log that the data corresponds to, component 0 (local rows) included."""

    vclock: Mapping[int, int]
    tuples: Sequence[Stored]
    queue: QueueState = field(default_factory=QueueState)
    election: ElectionState = field(default_factory=ElectionState)


def queue_rows(snapshot: Snapshot) -> list[Row]:
    """Empty if the queue has never had an owner and there was no election yet."""
    rows = []
    if snapshot.election.term > 1 or snapshot.election.vote:
        body: dict[int, object] = {0: snapshot.election.term}
        if snapshot.election.vote:
            body[1] = snapshot.election.vote
        rows.append(Row(Type.RAFT.value, 0, 0, 0.0, 0, group_id=1, body=body))
    promote = promote_row(snapshot.queue)
    return rows if promote is None else [*rows, promote]


def promote_row(queue: QueueState) -> Row | None:
    """The state of the queue as Tarantool writes it; None if it has never had an owner."""
    if not queue.owner_id and queue.term <= 1:
        return None
    body = {
        Key.REPLICA_ID.value: queue.owner_id,
        Key.LSN.value: queue.confirmed_lsn,
        Key.TERM.value: queue.term,
        Key.VCLOCK.value: packed_vclock(queue.confirmed_of),
    }
    return Row(Type.PROMOTE.value, 0, 0, 0.0, 0, body=body)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The packed rows of system spaces without their timestamps: these rows stand first and seldom change."""

    pairs: Sequence[Stored]
    parts: Sequence[bytes]

    def at(self, timestamp: float) -> bytes:
        return _FLOAT.pack(timestamp).join(self.parts)


_BEGINNINGS: list[_Beginning] = []
"""The beginnings that nodes of this process wrote last, the newest first."""
_BEGINNINGS_MAX = 16
_FLOAT = Struct(">d")
_UNLIKELY = -5.486124068793689e303
"""A timestamp that no clock gives: its bytes occur nowhere else in a row."""


def _beginning_of(tuples: Sequence[Stored]) -> _Beginning | None:
    """The rows of system spaces that `tuples` begin with. Known are those of the same objects: comparing all values
    would take as long as packing them."""
    for known in _BEGINNINGS:
        if len(known.pairs) <= len(tuples) and all(map(is_, known.pairs, tuples)):
            return known
    pairs = list(takewhile(lambda pair: pair[0] <= SYSTEM_ID_MAX, tuples))
    mark = _FLOAT.pack(_UNLIKELY)
    parts = b"".join(packed_insert(pair, place, _UNLIKELY) for place, pair in enumerate(pairs)).split(mark)
    if not pairs or len(parts) != len(pairs) + 1:
        return None
    beginning = _Beginning(pairs, parts)
    _BEGINNINGS.insert(0, beginning)
    del _BEGINNINGS[_BEGINNINGS_MAX:]
    return beginning


def file_of(snapshot: Snapshot, instance_uuid: str, timestamp: float, version: str) -> bytes:
    """The bytes of a `.snap` file."""
    count, blocks = 0, []
    # Rows without a timestamp have no place for it.
    first = _beginning_of(snapshot.tuples) if timestamp else None
    if first is not None and len(first.pairs) <= BLOCK_ROWS:
        count, blocks = len(first.pairs), [[first.at(timestamp)]]
    rows = [
        packed_insert(pair, place, timestamp)
        for place, pair in enumerate(islice(snapshot.tuples, count, None), start=count)
    ]
    rows += [packed_row(row) for row in queue_rows(snapshot)]
    if blocks:
        blocks[0] += rows[: BLOCK_ROWS - count]
        rows = rows[BLOCK_ROWS - count :]
    blocks += [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]
    header = xlog.encode_header("SNAP", instance_uuid, snapshot.vclock, server_version=version)
    return header + b"".join(xlog.encode_packed(block) for block in blocks) + xlog.encode_eof()


def is_whole(data: bytes) -> bool:
    """True if a snapshot can be trusted: it was written to its end, and nothing is damaged."""
    try:
        _whole("", data)
    except StartRefused:
        return False
    return True


def meta(name: str, data: bytes) -> xlog.Meta:
    """The header of a file. Raises StartRefused."""
    header, blank_line, _ = data.partition(b"\n\n")
    try:
        found = xlog.decode(header + blank_line).meta
    except XlogError as error:
        raise StartRefused(f"{name}: {error}") from error
    if found is None:
        raise StartRefused(f"{name}: its header is cut off")
    return found


def read(name: str, data: bytes) -> Snapshot:
    """Raises StartRefused if the file is damaged or was not written to its end."""
    vclock, rows = _whole(name, data)
    return _snapshot(vclock, rows)


def _whole(name: str, data: bytes) -> tuple[Mapping[int, int], Sequence[Row]]:
    try:
        log = xlog.decode(data)
    except XlogError as error:
        raise StartRefused(f"{name}: {error}") from error
    if log.meta is None or log.damage is not None or not log.finished:
        raise StartRefused(f"{name}: {log.damage or 'there is no end marker'}")
    return log.meta.vclock, log.rows


def _snapshot(vclock: Mapping[int, int], rows: Sequence[Row]) -> Snapshot:
    queue, election = QueueState(), ElectionState()
    for row in rows:
        if row.type == Type.PROMOTE:
            queue = queue_state(row)
        elif row.type == Type.RAFT:
            election = ElectionState(term_in(row, 0), number(row, 1))
    return Snapshot(dict(vclock), tuple(_stored(rows)), queue, election)


def queue_state(row: Row) -> QueueState:
    """The state of the queue in the PROMOTE of a snapshot or of a JOIN."""
    confirmed_of = row.body.get(Key.VCLOCK.value, {})
    assert is_vclock(confirmed_of), row
    owner_id, lsn = number(row, Key.REPLICA_ID), number(row, Key.LSN)
    return QueueState(owner_id, term_in(row, Key.TERM), lsn, confirmed_of)


def term_in(row: Row, key: int) -> int:
    """At least 1: before its first PROMOTE, Tarantool's queue has term 0 or none in the row."""
    return max(1, number(row, key))


def _stored(rows: Sequence[Row]) -> Iterator[Stored]:
    for row in rows:
        if row.type == Type.INSERT:
            yield stored(row)
