"""Whether the rows of a log are whole transactions, as Tarantool checks when it recovers (`wal_stream` in `box.cc`).

The rows of a transaction are consecutive, the last one ends it, and the first one, or the first one that is not local,
has its number. Four things are damage:

- the log is over, and a transaction has no end
- a row of another transaction, or a CONFIRM, ROLLBACK, PROMOTE, DEMOTE or RAFT, stands inside a transaction
- a transaction begins with a later row than its first one
- a row is missing inside a transaction

A block is written as a whole with whole transactions, so a crash leaves none of this: it tears a block, and the
checksum shows that (`nodes.iproto.xlog.is_torn`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from nodes.iproto.messages import Type
from nodes.iproto.xlog import Meta, Xlog

_LOCAL_GROUP = 1
_ALONE = frozenset(
    {each.value for each in (Type.RAFT, Type.PROMOTE, Type.DEMOTE, Type.CONFIRM, Type.ROLLBACK)}
)
_NUMBERED_SINCE = (2, 11, 1)
"""In older versions, a replica whose triggers wrote local rows gave the master's rows around them the number of its own
transaction (Tarantool's commit "wal: fix transaction boundaries for replicated transactions")."""


class Numbered(Protocol):
    """A row, or a part of one, with the fields of `nodes.iproto.messages.Row`."""

    @property
    def type(self) -> int: ...
    @property
    def replica_id(self) -> int: ...
    @property
    def lsn(self) -> int: ...
    @property
    def tsn(self) -> int: ...
    @property
    def is_commit(self) -> bool: ...
    @property
    def group_id(self) -> int: ...


N = TypeVar("N", bound=Numbered)


@dataclass(frozen=True, slots=True)
class Flaw:
    """`good`: the number of rows before the transaction that is not whole."""

    good: int
    sentence: str


def flaw_in(log: Xlog[N]) -> Flaw | None:
    """The flaw in the transactions of a log; None if there is none, or the file is a snapshot."""
    if log.meta is None or log.meta.kind != "XLOG":
        return None
    return flaw_of(log.rows, log.meta)


def flaw_of(rows: Sequence[Numbered], meta: Meta) -> Flaw | None:
    """The flaw in the transactions of the rows behind a header."""
    before = dict(meta.vclock)
    begin = 0
    for place, row in enumerate(rows):
        why = _why_not_next(rows, begin, place)
        if why is None and row.is_commit:
            why = _why_not_whole(rows[begin : place + 1], before, begin, meta)
        if why is not None:
            return Flaw(begin, why)
        if row.is_commit:
            for ended in rows[begin : place + 1]:
                before[ended.replica_id] = ended.lsn
            begin = place + 1
    if begin < len(rows):
        return Flaw(
            begin, f"{_name(rows[begin], begin)} has no end, and no row stands behind row {len(rows)}"
        )
    return None


def _why_not_next(rows: Sequence[Numbered], begin: int, place: int) -> str | None:
    """Why a row cannot follow the previous rows of its transaction; None if it can."""
    if begin == place:
        return None
    row, first = rows[place], rows[begin]
    if row.tsn != first.tsn or row.type in _ALONE or first.type in _ALONE:
        return f"{_name(first, begin)} has no end before row {place + 1}, which is not of it"
    for back in range(place - 1, begin - 1, -1):
        last = rows[back]
        if last.replica_id == row.replica_id:
            if row.lsn == last.lsn + 1:
                break
            return (
                f"{_name(first, begin)} lacks rows: lsn {row.lsn} of replica {row.replica_id} stands behind lsn "
                f"{last.lsn}"
            )
    return None


def _why_not_whole(rows: Sequence[Numbered], before: Mapping[int, int], begin: int, meta: Meta) -> str | None:
    """Why a transaction, which has its end, lacks its first rows; None if it has them. `before`: the last lsns."""
    first = rows[0]
    if first.tsn == first.lsn:
        return None
    head = next((row for row in rows if row.group_id != _LOCAL_GROUP), first)
    follows = head.lsn == before.get(head.replica_id, 0) + 1
    if first.tsn == head.lsn or (follows and meta.version < _NUMBERED_SINCE):
        return None
    return f"{_name(first, begin)} lacks its first row, and begins with lsn {head.lsn} of replica {head.replica_id}"


def _name(row: Numbered, place: int) -> str:
    return f"the transaction {row.replica_id}:{row.tsn} from row {place + 1} on"
