"""The meaning of one row of an xlog or snap file, ours or Tarantool's: a record, a line, a definition, a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from enum import IntEnum
from typing import Any, Final

from checkers.logs.wal.effects import RowLine
from checkers.logs.wal.record import ORIGINS_END, Kind, Record
from nodes.iproto import vinyl, xlog
from nodes.iproto.errors import MalformedFrame, XlogError
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import in_json, is_vclock, pack
from nodes.iproto.recurring import USERS_FROM
from nodes.iproto.transactions import flaw_in


class SystemSpace(IntEnum):
    SPACES = 280
    INDEXES = 288
    CLUSTER = 320
    TRUNCATIONS = 330


DEFINING: Final = frozenset(SystemSpace)
LOCAL_GROUP: Final = 1
NUMBERS_END: Final = 1 << 63
SPACE_ID, TUPLE = Key.SPACE_ID.value, Key.TUPLE.value
_INSERT, _UPDATE, _CLUSTER = Type.INSERT.value, Type.UPDATE.value, SystemSpace.CLUSTER.value

_KINDS: Mapping[int, Kind] = {
    Type.INSERT.value: "write",
    Type.REPLACE.value: "write",
    Type.UPDATE.value: "write",
    Type.DELETE.value: "write",
    Type.UPSERT.value: "write",
    Type.NOP.value: "nop",
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
    Type.RAFT.value: "vote",
}


class Definitions:
    """Spaces, indexes and members that the rows of a log and its snapshot define."""

    def __init__(self) -> None:
        self.members: dict[int, str] = {}
        """By replica id: the UUID."""
        self.synchronous_spaces: set[int] = set()
        self.not_comparable: set[int] = set()
        """Spaces that are local, have a key other than the first field alone, or were emptied at once."""

    def take_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.take(row)

    def take(self, row: Row) -> None:
        """Learn from a row, if it defines something."""
        if not is_defining(row.body):
            return
        values = row.body.get(TUPLE)
        match row.body[SPACE_ID], values:
            case SystemSpace.CLUSTER, _:
                self._take_member(row)
            case SystemSpace.SPACES, (int(space), _, _, _, _, {"group_id": 1} | {"temporary": True}, *_):
                self.not_comparable.add(space)
                self._take_space(space, values)
            case SystemSpace.SPACES, (int(space), *_):
                self._take_space(space, values)
            case SystemSpace.INDEXES, (int(space), 0, _, _, _, parts) if not _is_first_field(parts):
                self.not_comparable.add(space)
            case SystemSpace.TRUNCATIONS, (int(space), *_):
                self.not_comparable.add(space)

    def _take_space(self, space: int, values: object) -> None:
        match values:
            case (_, _, _, _, _, {"is_sync": is_sync}, *_) if is_sync:
                self.synchronous_spaces.add(space)
            case _:
                self.synchronous_spaces.discard(space)

    def _take_member(self, row: Row) -> None:
        number = member_of(row)
        if number < 0:
            self.members.pop(-number, None)
        match row.body.get(TUPLE):
            case (_, str(uuid), *_) if number > 0:
                self.members[number] = uuid


def is_defining(body: Mapping[int, object]) -> bool:
    """The row is about a space that defines something. In a row without data the number may be anything."""
    space_id = body.get(SPACE_ID)
    return isinstance(space_id, int) and space_id in DEFINING


def is_needed(type_: int, body: dict[int, object]) -> bool:
    """The row of a snapshot is read. Most rows of system spaces are not."""
    space_id = body.get(SPACE_ID)
    is_of_user = isinstance(space_id, int) and space_id >= USERS_FROM
    return is_of_user or is_no_data(type_, body)


def is_no_data(type_: int, body: dict[int, object]) -> bool:
    # Where that is no number: then the row is read, and found to be damaged.
    return type_ != _INSERT or is_defining(body) or not isinstance(body.get(SPACE_ID), int)


def _is_first_field(parts: object) -> bool:
    """The only part of the index is the first field."""
    match parts:
        case [{"field": 0}] | [[0, *_]]:
            return True
    return False


def member_of(row: Row) -> int:
    """The replica that a row makes a member; -id if it removes that member; 0 if it is about no member."""
    if row.body.get(SPACE_ID) != _CLUSTER or row.type == _UPDATE:  # an update holds operations, no tuple
        return 0
    match row.body.get(TUPLE), row.body.get(Key.KEY.value):
        case (int(id), *_), _:
            return id
        case None, (int(id), *_):
            return -id
    return 0


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


def record_of(row: Row) -> Record | None:
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
        key=first_field(row.body.get(Key.KEY.value) or values),
        is_whole=not by_operations,
        **decision,
    )


def is_beyond(vclock: Mapping[int, int]) -> bool:
    return any(origin >= ORIGINS_END or lsn >= NUMBERS_END for origin, lsn in vclock.items())


def _refuse_numbers(row: Row, space: int, decision: Mapping[str, Any]) -> None:
    """Raises MalformedFrame for numbers that no store counts to, because rules have no place for them."""
    replicas = (row.replica_id, decision.get("owner", 0), decision.get("vote", 0))
    numbers = (row.lsn, abs(row.tsn), space, decision.get("until", 0), decision.get("term", 0))
    if max(replicas) >= ORIGINS_END:
        raise MalformedFrame(f"expected a replica below {ORIGINS_END}, got {max(replicas)}")
    if max(numbers) >= NUMBERS_END:
        raise MalformedFrame(f"expected numbers below {NUMBERS_END}, got {max(numbers)}")
    if not abs(row.timestamp * 1e9) < NUMBERS_END:
        raise MalformedFrame(f"expected the time of a row in seconds since 1970, got {row.timestamp}")


def line_of(row: Row, synchronous_spaces: Set[int] | None) -> RowLine | None:
    """The row without its content; None if it is neither about data nor the queue."""
    kind = _kind_of(row)
    if kind is None:
        return None
    waits = _is_synchronous(row, kind, synchronous_spaces)
    decision = _decision(kind, row)
    return RowLine(
        kind, row.replica_id, row.lsn, row.tsn, row.is_commit, waits, **decision, member=member_of(row)
    )


def state_in(rows: Sequence[Row]) -> dict[str, Any]:
    """The state of the election and of the queue in a snapshot, as fields of `Block`."""
    state: dict[str, Any] = {}
    for row in rows:
        if row.type == Type.RAFT:
            state |= {"term": _number(row.body.get(0)), "vote": _number(row.body.get(1))}
        elif row.type == Type.PROMOTE:
            owner, lsn, term = (
                _number(row.body.get(key.value)) for key in (Key.REPLICA_ID, Key.LSN, Key.TERM)
            )
            vclock = row.body.get(Key.VCLOCK.value)
            confirmed = dict(vclock) if is_vclock(vclock) else {}
            if owner:
                confirmed[owner] = lsn
            state |= {"owner": owner, "queue_term": term, "confirmed": confirmed}
    return state


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


def first_field(values: object) -> object:
    """The first field, if it can be a key."""
    first = values[0] if isinstance(values, tuple) and values else None
    return first if isinstance(first, str | int | float | bytes) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def rows_as_json(data: bytes) -> list[dict[str, object]]:
    """The good rows of an xlog or snap file, or of one of vinyl's, with the names of what they hold; else none."""
    try:
        if vinyl.is_vinyl(data):
            return [vinyl.as_json(pair) for pair in vinyl.decode(data).rows]
        log = xlog.decode(data)
    except XlogError:
        return []
    flaw = flaw_in(log)
    return [_as_json(row) for row in (log.rows if flaw is None else log.rows[: flaw.good])]


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
        "timestamp": in_json(row.timestamp),
        "transaction": row.tsn,
        "flags": flags,
        "body": in_json(body),
    }
