"""The rows of xlog and snap files as the records that `checkers.logs.wal` audits: how one log is read.

From Tarantool 2.10 on a row's flags say whether it is synchronous; before, the options of its space do, which stand in
the log and the snapshot as rows of `_space`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

import msgspec

from checkers.logs.wal.effects import RowLine
from checkers.logs.wal.record import ORIGINS_END, Kind, Record, Snapshot
from nodes.iproto import xlog
from nodes.iproto.errors import MalformedFrame, XlogError
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import is_vclock, pack
from nodes.iproto.recurring import USERS_FROM, Recurring
from nodes.iproto.rows import rows_of
from nodes.iproto.transactions import Flaw, flaw_in
from nodes.kernel.vclock import covers, signature, text

Tuples = Mapping[tuple[int, object], tuple[object, ...]]
"""By space and first part of the key."""
SPACES = 280
"""The system space `_space`."""
INDEXES = 288
MEMBERS = 320
"""The system space `_cluster`."""
TRUNCATIONS = 330
DEFINING = frozenset({SPACES, INDEXES, MEMBERS, TRUNCATIONS})
FLAGS_SINCE = (2, 10)
LOCAL_GROUP = 1
NUMBERS_END = 1 << 63
NAME_DIGITS = 20
"""Of the names of files, which are the sums of their vclocks."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[-.\w]+)?")
INSERT = Type.INSERT.value
SPACE_ID, TUPLE = Key.SPACE_ID.value, Key.TUPLE.value

_KINDS: Mapping[int, Kind] = {
    Type.INSERT.value: "write",
    Type.REPLACE.value: "write",
    4: "write",  # UPDATE
    Type.DELETE.value: "write",
    9: "write",  # UPSERT
    Type.NOP.value: "nop",
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
    Type.RAFT.value: "vote",
}


class LogReader:
    def __init__(self, shared: Shared | None = None) -> None:
        self._shared = Shared() if shared is None else shared
        self.records: list[Record] = []
        self.begins: Mapping[int, int] | None = None
        self.vclock: dict[int, int] = {}
        self.snapshot: Mapping[int, int] = {}
        """Of the newest one."""
        self.damage: list[str] = []
        self.unread: list[str] = []
        """A sentence for each snapshot that is damaged."""
        self.headers: dict[str, xlog.Meta] = {}
        """By name, of the files that could be read."""
        self.has_flags = True
        """The flags of all rows say which are synchronous."""
        self.synchronous_spaces: set[int] = set()
        self.snapshots: list[Snapshot] = []
        self.instance = ""
        self.members: dict[int, str] = {}
        self._learnt: list[Row] = []
        """The definitions in the snapshot that was learnt last."""
        self._not_comparable: set[int] = set()
        """Spaces that are local, have a key other than the first field alone, or were emptied at once."""

    def learn(self, name: str, read: Callable[[], bytes]) -> None:
        """Which spaces of a snapshot are synchronous, up to where it holds all, and what."""
        try:
            found = xlog.decode(read(), self._shared.snapshots)
        except (XlogError, OSError) as error:
            self.unread.append(f"{name}: {error}")
            return
        defining = [row for row in found.rows if row.body.get(SPACE_ID) in DEFINING]
        if len(defining) != len(self._learnt) or not all(map(is_, defining, self._learnt)):
            for row in defining:
                self.take_definition(row)
            self._learnt = defining
        if found.meta is not None and _is_beyond(found.meta.vclock):
            self.unread.append(f"{name}: its vclock {text(found.meta.vclock)} names what no store counts to")
            return
        if found.meta is None or found.damage is not None or not found.finished:
            self.unread.append(f"{name}: {found.damage or 'there is no end marker'}")
            return
        self.headers[name] = found.meta
        self.instance = found.meta.instance_uuid
        self.snapshot = found.meta.vclock
        if any(found.meta.vclock.values()):
            tuples = self._tuples(found.rows, read)
            state = _state_in(found.rows)
            self.snapshots.append(Snapshot(place=name, vclock=found.meta.vclock, tuples=tuples, **state))

    def _tuples(self, rows: Sequence[Row], read: Callable[[], bytes]) -> Tuples:
        """The users' tuples in a snapshot with these rows; `read` gives its bytes."""
        found = (each for row in rows if (each := data_of(row)) is not None)
        return {(space, _first(values)): values for space, values in found}

    def read(self, name: str, read: Callable[[], bytes], *, is_last: bool) -> None:
        data = read()
        try:
            found = self._decoded(data)
        except XlogError as error:
            self.damage.append(f"{name}: {error}")
            return
        meta = found.meta
        if meta is None:
            if not is_last:
                self.damage.append(f"{name}: {found.damage}")
            return
        if _is_beyond(meta.vclock):
            self.damage.append(f"{name}: its vclock {text(meta.vclock)} names what no store counts to")
            return
        if self.begins is None or self._is_behind_a_gap(meta.vclock):
            self.begins, self.vclock = meta.vclock, dict(meta.vclock)
            self._forget()
        elif not covers(self.vclock, meta.vclock):
            before, after = text(self.vclock), text(meta.vclock)
            self.damage.append(f"{name}: begins at {after}, but the log before it ends at {before}")
        # The torn end of a file is what a kill leaves: it was never acknowledged, and the next file does not count it.
        if found.damage is not None and not xlog.is_torn(data, found):
            self.damage.append(f"{name}: {found.damage}, which no crash leaves")
        flaw = self._flaw_in(found)
        if flaw is not None:
            self.damage.append(f"{name}: {flaw.sentence}")
            found = replace(found, rows=found.rows[: flaw.good])
        self.headers[name] = meta
        self.instance = meta.instance_uuid
        has_flags = meta.version >= FLAGS_SINCE
        self.has_flags = self.has_flags and has_flags
        self._take(name, found, read, has_flags=has_flags)

    def _flaw_in(self, found: xlog.Xlog[Read]) -> Flaw | None:
        return flaw_in(found)

    def _decoded(self, data: bytes) -> xlog.Xlog[Read]:
        return xlog.decode(data, self._shared.blocks)

    def _forget(self) -> None:
        """What was read before the file that was decoded last."""
        self.records.clear()

    def _take(
        self, name: str, found: xlog.Xlog[Read], again: Callable[[], bytes], *, has_flags: bool
    ) -> None:
        """`again` gives the bytes of the file once more."""
        for number, read in enumerate(found.rows, start=1):
            self._pass(read)
            if read.record is not None:
                record = read.record = _placed(read.record, name, number)
                self.records.append(record if has_flags else self._by_spaces(record))

    def _pass(self, read: Read) -> None:
        self.vclock[read.replica_id] = max(read.lsn, self.vclock.get(read.replica_id, 0))
        if read.definition is not None:
            self.take_definition(read.definition)

    def taken(self) -> Sequence[Record]:
        """All records."""
        return tuple(self.records)

    def _is_behind_a_gap(self, vclock: Mapping[int, int]) -> bool:
        """A log is gone and its rows stand in the snapshot: those before it could not be removed, and count no more."""
        return not covers(self.vclock, vclock) and covers(self.snapshot, vclock)

    def comparable(self) -> tuple[Snapshot, ...]:
        """With the spaces that rows alone do not tell about."""
        left_out = frozenset(self._not_comparable)
        return tuple(replace(each, left_out=left_out) for each in self.snapshots)

    def take_definition(self, row: Row) -> None:
        """Learn the definition of a space, an index or a member from a row, if it has one."""
        space_id, values = row.body.get(SPACE_ID), row.body.get(TUPLE)
        if space_id not in DEFINING:
            return
        if space_id == MEMBERS:
            self._take_member(values, row.body.get(Key.KEY.value))
            return
        match values:
            case (int(space), 0, _, _, _, parts) if space_id == INDEXES and not _is_first_field(parts):
                self._not_comparable.add(space)
            case (int(space), *_) if space_id == TRUNCATIONS:
                self._not_comparable.add(space)
            case (int(space), _, _, _, _, {"group_id": 1} | {"temporary": True}, *_) if space_id == SPACES:
                self._not_comparable.add(space)
        if space_id != SPACES:
            return
        match values:
            case (int(id), _, _, _, _, {"is_sync": is_sync}, *_):
                (self.synchronous_spaces.add if is_sync else self.synchronous_spaces.discard)(id)
            case (int(id), *_):
                self.synchronous_spaces.discard(id)

    def _take_member(self, values: object, key: object) -> None:
        match values, key:
            case (int(id), str(uuid), *_), _:
                self.members[id] = uuid
            case None, (int(id), *_):
                self.members.pop(id, None)

    def _by_spaces(self, record: Record) -> Record:
        """The record by the options of its space: rows of its version have no flags."""
        is_synchronous = record.kind == "write" and record.space in self.synchronous_spaces
        return msgspec.structs.replace(record, is_synchronous=is_synchronous)


def contradictions(headers: Mapping[str, xlog.Meta], end: Mapping[int, int]) -> dict[str, str]:
    """By file, what in its header its name or the other files of the node deny. No checksum covers a header.

    `end`: what the log comes to.
    """
    instances = Counter(meta.instance_uuid for meta in headers.values())
    logs = {meta.instance_uuid for meta in headers.values() if meta.kind == "XLOG"}
    instance = max(instances, key=lambda each: (instances[each], each in logs), default="")
    vclocks = {signature(meta.vclock): meta.vclock for meta in headers.values() if meta.kind == "XLOG"}
    vclocks.setdefault(signature(end), end)
    is_told = any(map(_names_a_version, headers.values()))
    found: dict[str, str] = {}
    for name, meta in headers.items():
        stem, _, _ = name.partition(".")
        total = signature(meta.vclock)
        if len(stem) == NAME_DIGITS and stem.isdigit() and int(stem) != total:
            found[name] = f"its vclock is {text(meta.vclock)}, which its name denies"
        elif meta.kind == "SNAP" and _unlike(vclocks.get(total, meta.vclock), meta.vclock):
            found[name] = f"its vclock is {text(meta.vclock)}, and the log comes to {text(vclocks[total])}"
        elif meta.instance_uuid != instance:
            found[name] = f"written by {meta.instance_uuid}, and the other files by {instance}"
        elif is_told and not _names_a_version(meta):
            found[name] = f"its header names no version but {meta.server_version!r}"
    return found


def _names_a_version(meta: xlog.Meta) -> bool:
    return _VERSION.fullmatch(meta.server_version) is not None


def _unlike(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Two vclocks with different components that are not 0."""
    return not (covers(one, other) and covers(other, one))


def _is_told_of(type_: int, body: dict[int, object]) -> bool:
    """Of the rows of a snapshot: all but those of system spaces that tell nothing here, which are most."""
    space_id = body.get(SPACE_ID)
    is_of_user = isinstance(space_id, int) and space_id >= USERS_FROM
    return is_of_user or _is_no_data(type_, body)


def _is_no_data(type_: int, body: dict[int, object]) -> bool:
    return type_ != INSERT or body.get(SPACE_ID) in DEFINING


def _is_first_field(parts: object) -> bool:
    """Of an index: its only part is the first field."""
    match parts:
        case [{"field": 0}] | [[0, *_]]:
            return True
    return False


def data_of(row: Row) -> tuple[int, tuple[object, ...]] | None:
    """Space and tuple of a row of a snapshot, if it is of a user."""
    space, values = row.body.get(SPACE_ID), row.body.get(TUPLE)
    if isinstance(space, int) and space >= USERS_FROM and isinstance(values, tuple) and values:
        return space, values
    return None


def _kind_of(row: Row) -> Kind | None:
    """None if it is neither about data nor the queue."""
    kind = _KINDS.get(row.type)
    is_local = row.group_id == LOCAL_GROUP or row.replica_id == 0
    return None if is_local and kind != "vote" else kind


def _is_synchronous(row: Row, kind: Kind, synchronous_spaces: Set[int] | None) -> bool:
    """`synchronous_spaces` None: the row's flags say what waits."""
    if synchronous_spaces is None:
        return row.wait_ack
    return kind == "write" and row.body.get(SPACE_ID, 0) in synchronous_spaces


@dataclass(slots=True)
class Read:
    """A row: what numbers it, itself if it defines something, its record if it is about data or the queue."""

    type: int
    replica_id: int
    lsn: int
    tsn: int
    is_commit: bool
    group_id: int
    definition: Row | None
    record: Record | None


class Shared:
    """What the logs of all nodes have in common: their blocks, and how their snapshots begin."""

    def __init__(self) -> None:
        self.snapshots: xlog.Unpacks[Row] = Recurring(_is_told_of)
        self._blocks: dict[bytes, tuple[Read, ...]] = {}

    def reader(self) -> LogReader:
        """Reads the log of the next node."""
        return LogReader(self)

    def blocks(self, payload: bytes) -> tuple[Read, ...]:
        """The rows of a block. Most blocks are in the log of every node, and are read once. Raises MalformedFrame."""
        known = self._blocks.get(payload)
        if known is None:
            known = self._blocks[payload] = read_block(payload)
        return known


def read_block(payload: bytes) -> tuple[Read, ...]:
    """The rows of a block. Raises MalformedFrame."""
    return tuple(map(_read_row, rows_of(payload)))


def records_of(name: str, data: bytes) -> list[Record]:
    """The records of one xlog file of a version that has flags. Raises XlogError."""
    rows = enumerate(xlog.decode(data, read_block).rows, start=1)
    return [_placed(read.record, name, number) for number, read in rows if read.record is not None]


def _read_row(row: Row) -> Read:
    definition = row if row.body.get(SPACE_ID) in DEFINING else None
    numbers = row.type, row.replica_id, row.lsn, row.tsn, row.is_commit, row.group_id
    return Read(*numbers, definition, _record_of(row))


def _placed(record: Record, file: str, number: int) -> Record:
    """The record where it stands: the same one in logs of which the files are alike."""
    if record.row == number and record.file == file:
        return record
    return msgspec.structs.replace(record, file=file, row=number)


def _record_of(row: Row) -> Record | None:
    kind = _kind_of(row)
    if kind is None:
        return None
    values = row.body.get(TUPLE, ())
    by_operations = row.type in (Type.UPDATE, Type.UPSERT)
    decision, space = _decision(kind, row), _number(row.body.get(SPACE_ID, 0))
    _refuse_numbers(row, space, decision)
    return Record(
        kind=kind,
        origin=row.replica_id,
        lsn=row.lsn,
        file="",
        first=row.tsn,
        ends=row.is_commit,
        is_synchronous=row.wait_ack,
        body=pack(dict(row.body)),
        space=space,
        tuple=values if isinstance(values, tuple) and kind == "write" and not by_operations else (),
        time_ns=int(row.timestamp * 1e9),
        key=_first(row.body.get(Key.KEY.value) or values),
        is_whole=not by_operations,
        **decision,
    )


def _is_beyond(vclock: Mapping[int, int]) -> bool:
    return any(origin >= ORIGINS_END or lsn >= NUMBERS_END for origin, lsn in vclock.items())


def _refuse_numbers(row: Row, space: int, decision: Mapping[str, Any]) -> None:
    """Raises MalformedFrame of numbers that no store counts to, and rules have no place for."""
    replicas = (row.replica_id, decision.get("owner", 0), decision.get("vote", 0))
    numbers = (row.lsn, abs(row.tsn), space, decision.get("until", 0), decision.get("term", 0))
    if max(replicas) >= ORIGINS_END:
        raise MalformedFrame(f"expected a replica below {ORIGINS_END}, got {max(replicas)}")
    if max(numbers) >= NUMBERS_END:
        raise MalformedFrame(f"expected numbers below {NUMBERS_END}, got {max(numbers)}")
    if not abs(row.timestamp * 1e9) < NUMBERS_END:
        raise MalformedFrame(f"expected the time of a row in seconds since 1970, got {row.timestamp}")


def _line_of(row: Row, synchronous_spaces: Set[int] | None) -> RowLine | None:
    """The same without its content."""
    kind = _kind_of(row)
    if kind is None:
        return None
    waits = _is_synchronous(row, kind, synchronous_spaces)
    told = _decision(kind, row)
    return RowLine(
        kind, row.replica_id, row.lsn, row.tsn, row.is_commit, waits, **told, member=_member_of(row)
    )


@dataclass(frozen=True, slots=True)
class Block:
    """The content of some bytes of a log or of a snapshot. `begins`: the vclock of a snapshot, with the rest of it."""

    rows: tuple[RowLine, ...] = ()
    begins: Mapping[int, int] | None = None
    term: int = 0
    vote: int = 0
    owner: int = 0
    queue_term: int = 0
    confirmed: Mapping[int, int] = field(default_factory=dict)
    members: tuple[int, ...] = ()


class BlockReader:
    """Reads blocks of logs, and whole files, as they were written: one version of nodes at a time."""

    def __init__(self) -> None:
        self._reader = LogReader()
        self._snapshots = Recurring(_is_no_data)
        self._has_flags = True

    def read(self, data: bytes) -> Block:
        """`data`: blocks, with the header of their file or without; or a snapshot. Raises XlogError."""
        if not data.startswith((b"XLOG", b"SNAP")):
            return self._block(xlog.rows_in(data))
        found = xlog.decode(data, self._snapshots if data.startswith(b"SNAP") else rows_of)
        assert found.meta is not None and found.damage is None, found.damage
        if found.meta.kind == "XLOG":
            self._has_flags = found.meta.version >= FLAGS_SINCE
            return self._block(found.rows)
        for row in found.rows:
            self._reader.take_definition(row)
        begins = {origin: lsn for origin, lsn in found.meta.vclock.items() if origin}
        members = tuple(sorted(member for row in found.rows if (member := _member_of(row))))
        return Block(begins=begins, members=members, **_state_in(found.rows))

    def _block(self, rows: Sequence[Row]) -> Block:
        for row in rows:
            self._reader.take_definition(row)
        spaces = None if self._has_flags else self._reader.synchronous_spaces
        lines = (_line_of(row, spaces) for row in rows)
        return Block(tuple(line for line in lines if line is not None))


def _state_in(rows: Sequence[Row]) -> dict[str, Any]:
    """The state of the election and of the queue in a snapshot, as fields of `Block`."""
    state: dict[str, Any] = {}
    for row in rows:
        if row.type == Type.RAFT:
            state |= {"term": _number(row.body.get(0)), "vote": _number(row.body.get(1))}
        elif row.type == Type.PROMOTE:
            owner, lsn, term = (
                _number(row.body.get(key.value)) for key in (Key.REPLICA_ID, Key.LSN, Key.TERM)
            )
            told = row.body.get(Key.VCLOCK.value)
            confirmed = dict(told) if is_vclock(told) else {}
            if owner:
                confirmed[owner] = lsn
            state |= {"owner": owner, "queue_term": term, "confirmed": confirmed}
    return state


def _member_of(row: Row) -> int:
    """The replica that a row makes a member; below 0: one that it removes; 0: it is about none."""
    match row.body.get(SPACE_ID), row.body.get(TUPLE), row.body.get(Key.KEY.value):
        case 320, (int(id), *_), _:
            return id
        case 320, _, (int(id), *_):
            return -id
    return 0


def _decision(kind: Kind, row: Row) -> dict[str, Any]:
    body = row.body
    match kind:
        case "confirm" | "rollback":
            return {
                "owner": _number(body.get(Key.REPLICA_ID.value)),
                "until": _number(body.get(Key.LSN.value)),
            }
        case "promote" | "demote":
            return {
                "owner": _number(body.get(Key.REPLICA_ID.value)),
                "until": _number(body.get(Key.LSN.value)),
                "term": _number(body.get(Key.TERM.value)),
                "waits": row.wait_ack if row.wait_sync else None,
            }
        case "vote":
            return {"term": _number(body.get(0, 0)), "vote": _number(body.get(1, 0))}
    return {}


def _first(values: object) -> object:
    """The first field, if it can be a key."""
    first = values[0] if isinstance(values, tuple) and values else None
    return first if isinstance(first, str | int | float | bytes) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def rows_as_json(data: bytes) -> list[dict[str, object]]:
    """The good rows of an xlog or snap file, with the names of what they hold; none if it is damaged."""
    try:
        found = xlog.decode(data)
    except XlogError:
        return []
    flaw = flaw_in(found)
    return [_as_json(row) for row in (found.rows if flaw is None else found.rows[: flaw.good])]


def _as_json(row: Row) -> dict[str, object]:
    known = {kind.value: kind.name for kind in Type}
    flags = [name for name in ("is_commit", "wait_sync", "wait_ack") if getattr(row, name)]
    keys = {key.value: key.name.lower() for key in Key}
    named = row.type not in (Type.RAFT, Type.NOP)
    body = {(keys.get(key, key) if named else key): value for key, value in row.body.items()}
    return {
        "type": known.get(row.type, row.type),
        "replica_id": row.replica_id,
        "lsn": row.lsn,
        "timestamp": row.timestamp,
        "transaction": row.tsn,
        "flags": flags,
        "body": body,
    }
