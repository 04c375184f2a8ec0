"""Logs that were read as arrays: rows of a text and a number, deletions, and decisions with their marks.

A store of registers writes millions of these rows. `Builder` takes each row once, however many logs have it. At
anything else it raises NotPlain: then the logs are read as records (`checkers.logs.wal.columns.of_logs`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, overload

import numpy

from checkers.compiled import load
from checkers.history.columns import VALUES_MAX
from checkers.history.line_kernels import ABSENT
from checkers.logs.wal import numbering_kernels, row_kernels
from checkers.logs.wal.cells import NO_CELL, USER_SPACES, Cells
from checkers.logs.wal.columns import DTYPES, KINDS, NO_KEY, UNTOLD, WRITE, Codes, Rows, numbered
from checkers.logs.wal.record import NotPlain, Place, Record, Snapshot, Tuple
from checkers.logs.wal.row_kernels import ENDS, ORIGINS_MAX, SYNCHRONOUS

Array = Any  # numpy's
LSN_END: Final = 1 << 27
"""A row takes a place for each lsn before its own, but only the places of existing rows take memory."""
KEY_BYTES_MAX: Final = 15
PACKED: Final = {**DTYPES, "head": numpy.int64, "tail": numpy.int64}
NUMBERS_END: Final = 1 << 31
"""Greater than every number of a space, a row or a term."""
Part = tuple[int, Callable[[], Sequence[Record]]]
"""How many records a file of a log has, and a function that makes their objects."""


class StoredRecords(Sequence[Record]):
    """The records of a log by their places in rows; objects are made of its parts when these are needed."""

    def __init__(self, builder: Builder, begin: int, end: int, parts: Sequence[Part]) -> None:
        self.at = builder.at[begin:end]
        self._builder = builder
        self._parts = parts
        self._made: Sequence[Record] | None = None

    @property
    def rows(self) -> Rows:
        """Of all logs together, which have been read."""
        return self._builder.rows

    @property
    def all(self) -> Sequence[Record]:
        """The objects, which are kept."""
        if self._made is None:
            self._made = self.some(range(len(self)))
        return self._made

    def some(self, places: Sequence[int]) -> list[Record]:
        """The objects at ascending places. The objects of one part are made at a time, and not kept."""
        records: list[Record] = []
        end = 0
        for count, make in self._parts:
            begin, end = end, end + count
            own = places[bisect_left(places, begin) : bisect_left(places, end)]
            if len(own):
                made = make()
                assert len(made) == count, (len(made), count)
                records += [made[place - begin] for place in own]
        return records

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.all)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        return self.all[place]


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of a text and a number, as arrays of one length: the space, the text (`packed`), and the number."""

    space: Array
    head: Array
    tail: Array
    value: Array

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, Tuple]]) -> Tuples:
        """Of spaces and tuples. Raises NotPlain."""
        rows = [(space, *_numbers(values)) for space, values in pairs]
        space, head, tail, value = numpy.array(rows, dtype=numpy.int64).reshape(-1, 4).T
        return cls(space, head, tail, value)

    @classmethod
    def joined(cls, parts: Sequence[Tuples]) -> Tuples:
        names = [field.name for field in fields(cls)]
        return cls(*(numpy.concatenate([getattr(part, name) for part in parts]) for name in names))

    def objects(self) -> dict[Place, Tuple]:
        columns = (column.tolist() for column in (self.space, self.head, self.tail, self.value))
        rows = (
            (space, unpacked(head, tail), value) for space, head, tail, value in zip(*columns, strict=True)
        )
        return {(space, key): (key, value) for space, key, value in rows}


class StoredTuples(Mapping[Place, Tuple]):
    """The tuples of a snapshot. `read` reads the file again: of hundreds of snapshots few are looked at at a time."""

    def __init__(self, read: Callable[[], Tuples]) -> None:
        self.read = read
        self._objects: dict[Place, Tuple] = {}

    def __getitem__(self, place: Place) -> Tuple:
        self._objects = self._objects or self.read().objects()
        return self._objects[place]

    def __iter__(self) -> Iterator[Place]:
        self._objects = self.read().objects()
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self.read().objects())


class Builder:
    """Takes the rows of one log after another. `held` is how many places are in `at`, of all logs together.

    `most`: the expected number of rows. Room that no row fills is never touched, and so takes no memory.
    """

    def __init__(self, most: int) -> None:
        self.columns = {name: numpy.empty(most, dtype=dtype) for name, dtype in PACKED.items()}
        self.at = numpy.empty(most, dtype=numpy.int32)
        self.seen = numpy.zeros((ORIGINS_MAX, 1 << 16), dtype=numpy.int32)
        """By origin and lsn: one more than the place of the row that was read first."""
        self.count = 0
        self.held = 0

    def grow(self) -> None:
        """Room for twice as many rows."""
        self.columns = {name: _longer(column) for name, column in self.columns.items()}
        self.at = _longer(self.at)

    def make_room(self, lsn: int) -> None:
        """For a row of this lsn. Raises NotPlain."""
        if lsn >= LSN_END:
            raise NotPlain
        before = self.seen
        if lsn >= before.shape[1]:
            try:
                self.seen = numpy.zeros((ORIGINS_MAX, 1 << lsn.bit_length()), dtype=numpy.int32)
            except MemoryError:  # the system refuses more than it has, whether it is touched or not
                raise NotPlain from None
            for origin in numpy.flatnonzero(before.any(axis=1)).tolist():
                self.seen[origin, : before.shape[1]] = before[origin]

    def put(self, record: Record) -> None:
        """The next row of the log that is being read. Raises NotPlain."""
        head, tail, value = _mark(record)
        waits = UNTOLD if record.waits is None else int(record.waits)
        if record.kind in ("promote", "demote") and waits == UNTOLD:
            raise NotPlain  # what it means is told by the rows behind it
        owner = record.vote if record.kind == "vote" else record.owner
        if not (0 <= record.origin < ORIGINS_MAX and 0 <= owner < ORIGINS_MAX):
            raise NotPlain
        if not all(
            0 <= number < NUMBERS_END
            for number in (record.space, record.lsn, record.first, record.until, record.term)
        ):
            raise NotPlain
        self.make_room(record.lsn)
        if self.held == len(self.at):  # so there is room for the row itself, too
            self.grow()
        numbers = {
            "kind": KINDS.index(record.kind),
            "bits": (ENDS if record.ends else 0) | (SYNCHRONOUS if record.is_synchronous else 0),
            "waits": waits,
            "origin": record.origin,
            "owner": owner,
            "space": record.space,
            "lsn": record.lsn,
            "first": record.first,
            "until": record.until,
            "term": record.term,
            "value": value,
            "body": load(row_kernels).hash_of(
                numpy.frombuffer(record.body, numpy.uint8), 0, len(record.body)
            ),
            "time": record.time_ns,
            "head": head,
            "tail": tail,
        }
        known = int(self.seen[record.origin, record.lsn]) - 1
        if known < 0 or any(self.columns[name][known] != number for name, number in numbers.items()):
            for name, number in numbers.items():
                self.columns[name][self.count] = number
            if known < 0:
                self.seen[record.origin, record.lsn] = self.count + 1
            known, self.count = self.count, self.count + 1
        self.at[self.held] = known
        self.held += 1

    @cached_property
    def rows(self) -> Rows:
        """All rows that were taken. No more can be."""
        columns = {name: column[: self.count] for name, column in self.columns.items()}
        self.columns = {}
        self.seen = numpy.empty((0, 0), dtype=numpy.int32)
        head, tail = columns.pop("head"), columns.pop("tail")
        key, keys = _keys(head, tail)
        origin = columns["origin"].astype(numpy.int64)
        is_id = numpy.where(columns["first"] != 0, columns["first"], columns["lsn"])
        transaction, transactions = numbered(origin, is_id)
        place, places = numbered(origin, columns["lsn"])
        return Rows(
            **columns, key=key, keys=keys, codes=Codes(), transaction=transaction, transactions=transactions,
            place=place, places=places, origins=ORIGINS_MAX, cells=lambda: PackedCells(self.rows),
        )  # fmt: skip


class PackedCells(Cells):
    """Of plain rows: their contents are numbers."""

    def __init__(self, rows: Rows) -> None:
        self._space, self._head, self._tail = (numpy.empty(0, dtype=numpy.int64) for _ in range(3))
        self._table = numpy.empty(0, dtype=numpy.int32)
        self._count = 0
        self.of_rows = numpy.full(len(rows.kind), NO_CELL, dtype=numpy.int32)
        self.contents = rows.value
        at = numpy.flatnonzero((rows.kind == WRITE) & (rows.space >= USER_SPACES))
        keys = numpy.array([packed(key) for key in rows.keys], dtype=numpy.int64).reshape(-1, 2)
        head, tail = (keys[:, column][rows.key[at]] for column in range(2))
        self.of_rows[at] = self._numbers(rows.space[at].astype(numpy.int64), head, tail)

    @property
    def count(self) -> int:
        return self._count

    def of(self, snapshot: Snapshot) -> tuple[Array, Array]:
        assert isinstance(snapshot.tuples, StoredTuples)
        tuples = snapshot.tuples.read()
        return self._numbers(tuples.space, tuples.head, tuples.tail), tuples.value

    def spaces(self) -> Array:
        return self._space[: self._count]

    def place(self, cell: int) -> Place:
        return int(self._space[cell]), self._key(cell)

    def content(self, cell: int, number: int) -> Tuple:
        return () if number == ABSENT else (self._key(cell), number)

    def _key(self, cell: int) -> str:
        return unpacked(int(self._head[cell]), int(self._tail[cell]))

    def _numbers(self, space: Array, head: Array, tail: Array) -> Array:
        self._make_room(len(space))
        return self._numbered(space, head, tail)

    def _numbered(self, space: Array, head: Array, tail: Array) -> Array:
        numbers = numpy.empty(len(space), dtype=numpy.int32)
        contiguous = (numpy.ascontiguousarray(column) for column in (space, head, tail))
        self._count = load(numbering_kernels).number_triples(
            *contiguous, self._table, self._space, self._head, self._tail, self._count, numbers
        )
        return numbers

    def _make_room(self, more: int) -> None:
        most = self._count + more
        if most <= len(self._space):
            return
        held = [column[: self._count] for column in (self._space, self._head, self._tail)]
        self._space, self._head, self._tail = (numpy.empty(2 * most, dtype=numpy.int64) for _ in held)
        self._table = numpy.full(1 << max(4, (4 * most).bit_length()), -1, dtype=numpy.int32)
        self._count = 0
        self._numbered(*held)


def _longer(column: Array) -> Array:
    return numpy.concatenate((column, numpy.empty(len(column) + 1, dtype=column.dtype)))


def packed(key: str) -> tuple[int, int] | None:
    """A key of at most KEY_BYTES_MAX bytes as two numbers, of which the second is never 0; None for a longer one."""
    data = key.encode("utf-8", "surrogateescape")
    if len(data) > KEY_BYTES_MAX:
        return None
    padded = data.ljust(KEY_BYTES_MAX, b"\0") + bytes([len(data) + 1])
    return (
        int.from_bytes(padded[:8], "big", signed=True),
        int.from_bytes(padded[8:], "big", signed=True),
    )


def _numbers(values: Sequence[object]) -> tuple[int, int, int]:
    """A text and a number as three numbers. Raises NotPlain."""
    match values:
        case (str(key), int(value)) if type(value) is int and abs(value) <= VALUES_MAX:
            packed_key = packed(key)
            if packed_key is not None:
                return *packed_key, value
    raise NotPlain


def unpacked(head: int, tail: int) -> str:
    data = head.to_bytes(8, "big", signed=True) + tail.to_bytes(8, "big", signed=True)
    return data[: data[-1] - 1].decode("utf-8", "surrogateescape")


def _keys(head: Array, tail: Array) -> tuple[Array, list[str]]:
    """The keys, and for each row its place among them, or NO_KEY."""
    key = numpy.full(len(head), NO_KEY, dtype=numpy.int32)
    places = numpy.flatnonzero(tail)
    if not len(places):
        return key, []
    numbers, count = numbered(head[places], tail[places])
    key[places] = numbers
    first = numpy.empty(count, dtype=numpy.int64)
    first[numbers[::-1]] = places[::-1]
    pairs = zip(head[first].tolist(), tail[first].tolist(), strict=True)
    return key, [unpacked(*pair) for pair in pairs]


def _mark(record: Record) -> tuple[int, int, int]:
    """The record's key as two numbers (0, 0: it has no mark), and its value. Raises NotPlain."""
    mark = record.mark
    is_users = record.kind == "write" and record.space >= USER_SPACES
    if mark is None:
        if is_users:
            raise NotPlain
        return 0, 0, ABSENT
    key, value = mark
    if (value is None) != (not record.tuple):
        raise NotPlain
    if value is not None and (type(value) is not int or abs(value) > VALUES_MAX):
        raise NotPlain
    if is_users and (record.key != key or record.tuple not in ((), (key, value))):
        raise NotPlain
    packed_key = packed(key)
    if packed_key is None:
        raise NotPlain
    return *packed_key, ABSENT if value is None else value
