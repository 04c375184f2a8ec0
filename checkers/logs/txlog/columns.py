"""The logs of all masters as columns: arrays of numbers, and objects for the few records of splits and recoveries.

A transaction in a queue, `[ts, id, origin]`, is a number (`Columns.ts` …, by this number); equal transactions have
equal numbers. Its id is a number, too, with its text in `Columns.names`. Masters are numbers of `Columns.peers`, which
is sorted by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple

import numpy

from checkers.compiled import load, stays_plain
from checkers.logs.txlog import kernels
from checkers.logs.txlog.records import Chosen, Life, Log, Rare, Recovered, Ref, Split

Array = Any  # numpy's

FEW = 500_000
"""Records with fewer entries are judged by the plain kernels, in 3 s at most: compiling takes a minute, once."""
HASH_BYTES = 8


class Rows(NamedTuple):
    """The records of a master, in order.

    | kind | number | other | name | listed, from `first[row]` to `first[row + 1]` |
    |---|---|---|---|---|
    | MADE | counter | | transaction | |
    | HEARD | counter | counter of the poster, or -1 | poster | transactions |
    | ACQUIRED | | | | ids |
    | ADDED | index | bound | posters and absent: a row of `Columns.groups` | transactions |
    | CAUGHT_UP | index | | | transactions |
    | EXECUTED | index | | id | |
    | SPLIT | | how many are missing | which: a row of `Columns.missing_of` | |
    | RECOVERED | common | how many of the listed are synchronised | its number among these records | … and the queue |
    | RESTORED | index | | | |
    """

    kind: Array
    number: Array
    other: Array
    name: Array
    first: Array
    listed: Array

    def of_kind(self, *kinds: int) -> Array:
        """The rows of these kinds, in order."""
        wanted = numpy.zeros(kernels.KINDS, dtype=bool)
        wanted[list(kinds)] = True
        return numpy.flatnonzero(wanted[self.kind])


class Names:
    """Texts by number: UTF-8 from `first[number]` to `first[number + 1]` of `data`."""

    def __init__(self, first: Array, data: Array) -> None:
        self.first, self.data = first, data

    @classmethod
    def of(cls, texts: Iterable[str]) -> Names:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        first = numpy.zeros(len(encoded) + 1, dtype=numpy.int64)
        numpy.cumsum([len(part) for part in encoded], out=first[1:])
        return cls(first, numpy.frombuffer(b"".join(encoded) or b"\0", dtype=numpy.uint8))

    def __len__(self) -> int:
        return len(self.first) - 1

    def __getitem__(self, number: int) -> str:
        return bytes(self.data[self.first[number] : self.first[number + 1]]).decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogColumns:
    """The log of one master. `rare` has the objects in order, `over` epoch and counter of each recovery.

    digest   int64, by execution: equal for equal hashes
    hashes   the hash of each digest; None: a digest is the hash itself, of HASH_BYTES
    steps    by transaction that it made, in order: what it does
    """

    master: str
    damage: str
    rows: Rows
    rare: Sequence[Rare]
    over: Array
    over_last: Array
    digest: Array
    hashes: Sequence[bytes] | None
    steps: Sequence[Any]

    def hash(self, execution: int) -> bytes:
        return hash_of(int(self.digest[execution]), self.hashes)

    @property
    def recoveries(self) -> list[Recovered]:
        return [record for record in self.rare if isinstance(record, Recovered)]

    def strategy_before(self, place: int) -> str:
        chosen = [
            record.strategy
            for record in self.rare
            if isinstance(record, Life | Chosen) and record.place < place
        ]
        return chosen[-1] if chosen else ""

    def left_out_by(self, place: int) -> Sequence[str]:
        """The masters that the split at this place left out; 0: none."""
        splits = (split for split in self.rare if isinstance(split, Split) and split.place == place)
        return next((split.missing for split in splits), ())


def hash_of(digest: int, hashes: Sequence[bytes] | None) -> bytes:
    return digest.to_bytes(HASH_BYTES, "big", signed=True) if hashes is None else hashes[digest]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """All logs, by master. `groups`: posters and absent masters of rounds; `missing`: masters that splits left out."""

    names: Names
    ts: Array
    id: Array
    origin: Array
    peers: tuple[str, ...]
    groups: Sequence[tuple[Sequence[str], Sequence[str]]]
    missing: Sequence[Sequence[str]]
    logs: Mapping[str, LogColumns]
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Id → number, where the columns were made of objects."""

    @cached_property
    def kernels(self) -> Any:
        entries = sum(len(log.rows.kind) + len(log.rows.listed) for log in self.logs.values())
        plain: ModuleType = kernels
        return plain if stays_plain(kernels, entries, FEW) else load(kernels)

    @cached_property
    def order(self) -> Array:
        """By transaction its place in the order of (ts, id)."""
        order = numpy.zeros(len(self.ts), dtype=numpy.int32)
        by_key = numpy.argsort(self.ts, kind="stable").astype(numpy.int32)
        self.kernels.places_by_key(self.ts, self.id, self.names.first, self.names.data, by_key, order)
        return order

    @cached_property
    def peer(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.peers)}

    @cached_property
    def flags(self) -> Array:
        """By group and master: 1 for a poster, 2 for an absent one, 3 for both."""
        flags = numpy.zeros((len(self.groups), len(self.peers)), dtype=numpy.int64)
        for number, (posters, absent) in enumerate(self.groups):
            for bit, masters in ((1, posters), (2, absent)):
                for master in masters:
                    flags[number, self.peer[master]] |= bit
        return flags

    @cached_property
    def posters(self) -> Array:
        """By group the posters, as they stand in the record; -1 behind the last."""
        most = max((len(posters) for posters, _ in self.groups), default=0)
        numbers = numpy.full((len(self.groups), most), -1, dtype=numpy.int64)
        for number, (posters, _) in enumerate(self.groups):
            numbers[number, : len(posters)] = [self.peer[poster] for poster in posters]
        return numbers

    @cached_property
    def missing_of(self) -> Array:
        left_out = numpy.zeros((len(self.missing), len(self.peers)), dtype=numpy.bool_)
        for number, masters in enumerate(self.missing):
            left_out[number, [self.peer[master] for master in masters]] = True
        return left_out

    def ref(self, number: int) -> Ref:
        return Ref(
            int(self.ts[number]), self.names[int(self.id[number])], self.peers[int(self.origin[number])]
        )


class _Numbers(dict[Any, int]):
    """A number for each different value, in the order in which they came."""

    def of(self, value: Any) -> int:
        return self.setdefault(value, len(self))


def columns_of(logs: Mapping[str, Log], masters: Iterable[str] = (), ids: Iterable[str] = ()) -> Columns:
    """Of logs as objects. `masters`, `ids`: further ones that get a number."""
    names, refs, groups, missing, hashes = (_Numbers() for _ in range(5))
    peers = sorted({*masters, *logs, *chain.from_iterable(map(_peers, logs.values()))})
    peer = {name: number for number, name in enumerate(peers)}
    made = {name: _log(log, peer, names, refs, groups, missing, hashes) for name, log in logs.items()}
    for name in ids:
        names.of(name)
    return Columns(
        names=Names.of(names), ts=_int64s([ref.ts for ref in refs]), id=_int32s([names.of(ref.id) for ref in refs]),
        origin=_int32s([peer[ref.origin] for ref in refs]), peers=tuple(peers), groups=[*groups],
        missing=[*missing], logs=made, numbers=names,
    )  # fmt: skip


def _peers(log: Log) -> Iterable[str]:
    for row in log.rows:
        if row.kind == kernels.ACQUIRED:
            continue
        for ref in (*row.refs, *row.queue):
            yield ref.origin
        if row.kind == kernels.HEARD:
            yield row.what
        elif row.kind == kernels.ADDED:
            yield from chain(*row.what)
        elif row.kind == kernels.SPLIT:
            yield from row.more.missing
        elif row.kind == kernels.RECOVERED:
            yield from row.more.last


def _log(
    log: Log, peer: Mapping[str, int], names: _Numbers, refs: _Numbers, groups: _Numbers, missing: _Numbers,
    hashes: _Numbers,
) -> LogColumns:  # fmt: skip
    name: list[int] = []
    listed: list[int] = []
    ends = [0]
    recoveries: list[Recovered] = []
    for row in log.rows:
        match row.kind:
            case kernels.MADE:
                names.of(row.what.id)
                name.append(refs.of(row.what))
            case kernels.HEARD:
                name.append(peer[row.what])
            case kernels.ADDED:
                name.append(groups.of(row.what))
            case kernels.EXECUTED:
                name.append(names.of(row.what))
            case kernels.SPLIT:
                name.append(missing.of(row.more.missing))
            case kernels.RECOVERED:
                name.append(len(recoveries))
                recoveries.append(row.more)
            case _:
                name.append(0)
        if row.kind == kernels.ACQUIRED:
            listed += map(names.of, row.refs)
        else:
            for ref in (*row.refs, *row.queue):
                names.of(ref.id)
                listed.append(refs.of(ref))
        ends.append(len(listed))
    return LogColumns(
        master=log.master,
        damage=log.damage,
        rows=Rows(
            kind=numpy.array([row.kind for row in log.rows], dtype=numpy.int8),
            number=_int64s([row.number for row in log.rows]),
            other=_int64s([row.other for row in log.rows]),
            name=_int32s(name),
            first=_int64s(ends),
            listed=_int32s(listed),
        ),
        rare=[row.more for row in log.rows if isinstance(row.more, Rare)],
        over=over_of(recoveries),
        over_last=last_of(recoveries, peer),
        digest=_int64s([hashes.of(row.more) for row in log.rows if row.kind == kernels.EXECUTED]),
        hashes=_Texts(hashes),
        steps=[row.more for row in log.rows if row.kind == kernels.MADE],
    )


class _Texts(Sequence[bytes]):
    """The hashes by number. `numbers` may still grow."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers
        self._known: list[bytes] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: Any) -> Any:
        if len(self._known) < len(self._numbers):
            self._known = [*self._numbers]
        return self._known[number]


def over_of(recoveries: Sequence[Recovered]) -> Array:
    return _int64s([[recovery.epoch, recovery.counter] for recovery in recoveries]).reshape(-1, 2)


def last_of(recoveries: Sequence[Recovered], peer: Mapping[str, int]) -> Array:
    last = numpy.zeros((len(recoveries), len(peer)), dtype=numpy.int64)
    for number, recovery in enumerate(recoveries):
        for name, counter in recovery.last.items():
            last[number, peer[name]] = counter
    return last


def _int64s(values: Sequence[Any]) -> Array:
    return numpy.array(values, dtype=numpy.int64)


def _int32s(values: Sequence[int]) -> Array:
    return numpy.array(values, dtype=numpy.int32)
