"""The log of one node as columns, and where its snapshots do not hold what the logs come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy

from checkers.compiled import load
from checkers.history.line_kernels import ABSENT
from checkers.verdict import Witness
from checkers.wal import agreement, row_kernels
from checkers.wal.agreement import Place
from checkers.wal.columns import (
    ORIGINS_MAX,
    PROMOTE,
    USER_SPACES,
    VOTE,
    WRITE,
    Rows,
    StoredRecords,
    StoredTuples,
    Tuples,
    packed,
    unpacked,
)
from checkers.wal.record import NodeLog, Record, Snapshot
from checkers.wal.replay import Fate, Replayed
from checkers.wal.replay_kernels import COMMITTED, CONFIRMED, PENDING
from checkers.wal.row_kernels import SYNCHRONOUS

Array = Any  # numpy's
FATES: Final[tuple[Fate | None, ...]] = (None, "nop", "committed", "confirmed", "rolled back", "pending")
"""By their numbers in `replay_kernels`."""
UNKNOWN: Final = ABSENT + 1
"""In place of a value: whether it took effect is not known yet."""
Values = tuple[object, ...]
_AT_ONCE: Final = 1 << 14
"""Rows that are asked at once whether a snapshot has them."""


@dataclass(kw_only=True)
class Node:
    """The content of `Replayed`, as arrays: `fates` and `decided` (a row; -1: nothing did) by transaction."""

    log: NodeLog
    rows: Rows
    at: Array
    fates: Array
    decided: Array
    order: Array
    control: Replayed
    """Only the PROMOTEs, DEMOTEs and votes, as objects."""
    contradictions: list[int] = field(default_factory=list)
    """Places in `at`, as of `Replayed`."""

    @property
    def counts(self) -> Counter[Fate]:
        many = numpy.bincount(self.fates, minlength=len(FATES)).tolist()
        return Counter({fate: count for fate, count in zip(FATES, many, strict=True) if fate and count})

    def some(self, places: Sequence[int]) -> list[Record]:
        """The records at ascending places of the log, as objects."""
        records = self.log.records
        assert isinstance(records, StoredRecords)
        return records.some(places)

    @cached_property
    def end(self) -> Mapping[int, int]:
        """By origin the last lsn."""
        return dict(self.log.begins) | _last_lsns(self.rows, self.at, self.log.begins)


def held(nodes: Sequence[Node]) -> Array:
    """Which rows some log holds: files that a node began anew after do not count."""
    found = numpy.zeros(len(nodes[0].rows.kind) if nodes else 0, dtype=bool)
    for node in nodes:
        found[node.at] = True
    return found


def of_snapshots(nodes: Sequence[Node]) -> dict[str, list[Witness]]:
    """The witnesses of `agreement.snapshot_differs` and `agreement.snapshot_forgets`, by the names of the rules."""
    differ: list[Witness] = []
    forget: list[Witness] = []
    if any(node.log.snapshots for node in nodes):
        cells = _Cells(nodes[0].rows)
        logs = [_Followed(node, cells) for node in nodes]
        for log in logs:
            own: dict[str, Witness | None] = {}
            for snapshot in log.on_the_way():
                forget += log.forgotten(snapshot)
                own[snapshot.place] = log.difference(log, snapshot, log.state)
            for snapshot in log.node.log.snapshots:
                witness = own.get(snapshot.place)
                if witness is None and (snapshot.place not in own or snapshot is log.node.log.snapshots[-1]):
                    others = (log.compared(other, snapshot) for other in logs if other is not log)
                    witness = next(filter(None, others), None)
                differ += () if witness is None else (witness,)
    return {"snapshot-differs": differ, "snapshot-forgets": forget}


class _Cells:
    """A number for each space with a key: of all rows, and of tuples as they come."""

    def __init__(self, rows: Rows) -> None:
        self._space, self._head, self._tail = (numpy.empty(0, dtype=numpy.int64) for _ in range(3))
        self._table = numpy.empty(0, dtype=numpy.int32)
        self.count = 0
        self.of_rows = numpy.full(len(rows.kind), -1, dtype=numpy.int32)
        """-1: the row is none of a user's data."""
        at = numpy.flatnonzero((rows.kind == WRITE) & (rows.space >= USER_SPACES))
        keys = numpy.array([packed(key) for key in rows.keys], dtype=numpy.int64).reshape(-1, 2)
        head, tail = (keys[:, each][rows.key[at]] for each in range(2))
        self.of_rows[at] = self.numbers(rows.space[at].astype(numpy.int64), head, tail)

    def numbers(self, space: Array, head: Array, tail: Array) -> Array:
        self._make_room(len(space))
        return self._numbered(space, head, tail)

    def differing(self, state: Array, snapshot: Snapshot) -> dict[Place, tuple[Values, Values]]:
        """Where a snapshot has other values than the state (by cell: a value, ABSENT or UNKNOWN), and both of them."""
        tuples = tuples_of(snapshot)
        places = self.numbers(tuples.space, tuples.head, tuples.tail)
        there = numpy.full(self.count, ABSENT, dtype=numpy.int64)
        there[places] = tuples.value
        before = len(state)
        is_other = there != ABSENT
        is_other[:before] = (there[:before] != state) & (state != UNKNOWN)
        if snapshot.left_out:
            is_other &= ~numpy.isin(self._space[: self.count], list(snapshot.left_out))
        found: dict[Place, tuple[Values, Values]] = {}
        for cell in numpy.flatnonzero(is_other).tolist():
            key = unpacked(int(self._head[cell]), int(self._tail[cell]))
            come_to = int(state[cell]) if cell < before else ABSENT
            found[int(self._space[cell]), key] = _values(key, come_to), _values(key, int(there[cell]))
        return found

    def _numbered(self, space: Array, head: Array, tail: Array) -> Array:
        numbers = numpy.empty(len(space), dtype=numpy.int32)
        contiguous = (numpy.ascontiguousarray(column) for column in (space, head, tail))
        self.count = load(row_kernels).number_triples(
            *contiguous, self._table, self._space, self._head, self._tail, self.count, numbers
        )
        return numbers

    def _make_room(self, more: int) -> None:
        most = self.count + more
        if most <= len(self._space):
            return
        held = [column[: self.count] for column in (self._space, self._head, self._tail)]
        self._space, self._head, self._tail = (numpy.empty(2 * most, dtype=numpy.int64) for _ in held)
        self._table = numpy.full(1 << max(4, (4 * most).bit_length()), -1, dtype=numpy.int32)
        self.count = 0
        self._numbered(*held)


class _Followed:
    """A log, and what its rows come to from one snapshot to the next."""

    def __init__(self, node: Node, cells: _Cells) -> None:
        self.node = node
        self._cells = cells
        self._first = agreement.first_snapshot(node.log)
        self._can_be = agreement.can_be_followed(node.log, self._first)
        self._is_owned = self._first is not None and bool(self._first.owner)
        self.state = self._first_state() if self._can_be else numpy.empty(0, dtype=numpy.int64)
        self._vote: int | None = None
        """The place of the last one."""
        self.confirmed: dict[int, int] = {}
        """By origin: the last synchronous transaction that is confirmed, in a queue with an owner."""

    def on_the_way(self) -> Iterator[Snapshot]:
        """Each snapshot that the log has all rows of, when these have been taken."""
        if not self._can_be:
            return
        position = 0
        for snapshot in agreement.reached(self.node.log, self.node.end):
            begin, position = position, self._behind(position, snapshot.vclock)
            self._take(begin, position)
            yield snapshot

    def forgotten(self, snapshot: Snapshot) -> Iterator[Witness]:
        """As `agreement.forgotten`, of the rows up to the snapshot that came last."""
        vote = None if self._vote is None else self.node.rows.record(int(self.node.at[self._vote]))
        if self._vote is not None and any(agreement.forgotten(self.node.log, snapshot, vote, {})):
            vote = self.node.some([self._vote])[0]
        return agreement.forgotten(self.node.log, snapshot, vote, self.confirmed)

    def compared(self, other: _Followed, snapshot: Snapshot) -> Witness | None:
        """A snapshot of this log with what another one comes to, if that reaches so far."""
        state = other.state_at(snapshot.vclock)
        return None if state is None else self.difference(other, snapshot, state)

    def difference(self, other: _Followed, snapshot: Snapshot, state: Array) -> Witness | None:
        """A snapshot of this log, with the state that `other` has come to."""
        differing = self._cells.differing(state, snapshot)
        if not differing:
            return None
        found, tuples = ({place: values[each] for place, values in differing.items()} for each in range(2))
        return agreement.difference(self.node.log, replace(snapshot, tuples=tuples), other.node.log, found)

    def state_at(self, vclock: Mapping[int, int]) -> Array | None:
        """After all rows of the log up to `vclock`; None if the log does not reach from a known state up to there."""
        node = self.node
        if not self._can_be or not agreement.reaches(node.log, node.end, vclock):
            return None
        state = self._first_state()
        self._put(state, node.at[_is_until(node.rows, node.at, vclock)])
        return state

    def _first_state(self) -> Array:
        places, values = (numpy.empty(0, dtype=numpy.int64),) * 2
        if self._first is not None:
            tuples = tuples_of(self._first)
            places, values = self._cells.numbers(tuples.space, tuples.head, tuples.tail), tuples.value
        state = numpy.full(self._cells.count, ABSENT, dtype=numpy.int64)
        state[places] = values
        return state

    def _behind(self, begin: int, vclock: Mapping[int, int]) -> int:
        """The first place from `begin` on of a row that is not up to `vclock`."""
        at = self.node.at
        for part in range(begin, len(at), _AT_ONCE):
            is_until = _is_until(self.node.rows, at[part : part + _AT_ONCE], vclock)
            if not is_until.all():
                return part + int((~is_until).argmax())
        return len(at)

    def _take(self, begin: int, end: int) -> None:
        rows, at = self.node.rows, self.node.at[begin:end]
        self._put(self.state, at)
        kinds = rows.kind[at]
        votes, promotes = (numpy.flatnonzero(kinds == each) for each in (VOTE, PROMOTE))
        if len(votes):
            self._vote = begin + int(votes[-1])
        owned_from = 0 if self._is_owned else int(promotes[0]) if len(promotes) else len(at)
        self._is_owned = self._is_owned or bool(len(promotes))
        chosen = at[owned_from:]
        chosen = chosen[(rows.kind[chosen] == WRITE) & (rows.bits[chosen] & SYNCHRONOUS > 0)]
        chosen = chosen[self.node.fates[rows.transaction[chosen]] == CONFIRMED]
        self.confirmed |= _last_lsns(rows, chosen, self.confirmed)

    def _put(self, state: Array, at: Array) -> None:
        node, rows = self.node, self.node.rows
        fates = node.fates[rows.transaction[at]]
        places = self._cells.of_rows[at]
        is_put = (places >= 0) & ((fates == CONFIRMED) | (fates == COMMITTED) | (fates == PENDING))
        at, fates, places = at[is_put], fates[is_put], places[is_put]
        state[places] = numpy.where(
            fates == PENDING, UNKNOWN, rows.value[at]
        )  # of one place the last one stays


def _values(key: str, value: int) -> Values:
    return () if value == ABSENT else (key, value)


def tuples_of(snapshot: Snapshot) -> Tuples:
    assert isinstance(snapshot.tuples, StoredTuples)
    return snapshot.tuples.read()


def _is_until(rows: Rows, at: Array, vclock: Mapping[int, int]) -> Array:
    limits = numpy.zeros(ORIGINS_MAX, dtype=numpy.int64)
    for origin, lsn in vclock.items():
        limits[origin] = lsn
    return rows.lsn[at] <= limits[rows.origin[at]]


def _last_lsns(rows: Rows, at: Array, before: Mapping[int, int]) -> dict[int, int]:
    """By origin of some rows the greatest lsn, or that of before."""
    origins, lsns = rows.origin[at], rows.lsn[at]
    return {
        each: max(int(lsns[origins == each].max()), before.get(each, 0))
        for each in numpy.unique(origins).tolist()
    }
