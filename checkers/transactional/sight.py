"""What a read surely knew of: the reads of other transactions' versions, each with the steps before it.

The models below parallel snapshot isolation differ in that alone (see `anomalies`): which transactions a read saw, so
that it shows no version older than theirs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.compiled import load
from checkers.transactional import sight_kernels
from checkers.transactional.append import Analysis
from checkers.transactional.columns import OK, PREDICATE_READ, WRITE, Columns, Int32s, Int64s, Workload
from checkers.transactional.graph import PROCESS, WR, Graph, Time

NO_WRITER = -1
OWN = -2
BLOCK = 4096
"""So many transactions are looked for in the pasts of all at once, each a bit."""
CLOCKS_MAX = 400_000_000
"""The most numbers in vector clocks: 1.6 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A read of a version that `writer` made (NO_WRITER: the initial one).

    `sources`: the writers of what its transaction had read of others until then, itself included; `wrote`: the keys
    that the transaction had written until then.
    """

    reader: int
    key: int
    writer: int
    by_predicate: bool
    sources: tuple[int, ...]
    wrote: tuple[int, ...]


def reads_of_others(columns: Columns, known: Analysis, workload: Workload) -> Iterator[Read]:
    """All reads of ok transactions but those that show an own write; also those that repeat an earlier one."""
    first, outcome, f = columns.first.tolist(), columns.outcome.tolist(), columns.f.tolist()
    key, version, length = columns.key.tolist(), known.version.tolist(), columns.length.tolist()
    made = numpy.where(known.source >= 0, known.owner[known.source], NO_WRITER).tolist()
    for txn in range(len(outcome)):
        if outcome[txn] != OK:
            continue
        shown: dict[int, int] = {}
        sources: dict[int, None] = {}
        wrote: dict[int, None] = {}
        for micro in range(first[txn], first[txn + 1]):
            on = key[micro]
            if f[micro] == WRITE:
                wrote[on] = None
                if workload == "rw-register":
                    shown[on] = OWN
                continue
            writer = made[micro] if version[micro] >= 0 else shown.get(on, OWN)
            shown[on] = writer
            if writer == OWN or length[micro] < 0:
                continue
            if writer not in (NO_WRITER, txn):
                sources[writer] = None
            yield Read(
                reader=txn,
                key=on,
                writer=writer,
                by_predicate=f[micro] == PREDICATE_READ,
                sources=tuple(sources),
                wrote=tuple(wrote),
            )


def shows_own_writes(columns: Columns, workload: Workload) -> bool:
    """Whether every read behind own writes of its key shows them: the value, or all appends at the end."""
    first, f, key = columns.first.tolist(), columns.f.tolist(), columns.key.tolist()
    value, length, elements = columns.value.tolist(), columns.length.tolist(), columns.elements
    for txn in numpy.flatnonzero(columns.outcome == OK).tolist():
        own: dict[int, list[int]] = {}
        for micro in range(first[txn], first[txn + 1]):
            if f[micro] == WRITE:
                own.setdefault(key[micro], []).append(value[micro])
            elif key[micro] in own and length[micro] >= 0:
                mine = own[key[micro]]
                if workload == "rw-register":
                    if value[micro] != mine[-1]:
                        return False
                elif elements[value[micro] : value[micro] + length[micro]][-len(mine) :].tolist() != mine:
                    return False
    return True


def keys_written(columns: Columns, known: Analysis) -> dict[int, dict[int, None]]:
    """By transaction that took place, the keys that it wrote."""
    keys: dict[int, dict[int, None]] = {}
    writes = numpy.flatnonzero((columns.f == WRITE) & (known.committed[known.owner] == 1))
    for owner, key in zip(known.owner[writes].tolist(), columns.key[writes].tolist(), strict=True):
        keys.setdefault(owner, {})[key] = None
    return keys


def writers_of(written: Mapping[int, Iterable[int]]) -> dict[int, list[int]]:
    """By key, its writers."""
    writers: dict[int, list[int]] = {}
    for txn, keys in written.items():
        for key in keys:
            writers.setdefault(key, []).append(txn)
    return writers


class Over:
    """The writers of each key that were over before a transaction began: in its session (order 1), or anywhere (2)."""

    def __init__(self, written: Mapping[int, Iterable[int]], time: Time, order: int) -> None:
        self.order = order
        self.invoke, self.ends, self.process = time.invoke.tolist(), time.ends.tolist(), time.process.tolist()
        self.writers: dict[tuple[int, int], list[int]] = {}
        if order:
            for txn in sorted(written, key=self.ends.__getitem__):
                for key in written[txn]:
                    self.writers.setdefault((key, self._group(txn)), []).append(txn)

    def _group(self, txn: int) -> int:
        return int(self.process[txn]) if self.order == 1 else 0

    def before(self, reader: int, key: int) -> Iterator[int]:
        """The last of the key's writers: those that were over before one of these began come before that one anyway."""
        writers = self.writers.get((key, self._group(reader)), ())
        begun = self.invoke[reader]
        latest = -1
        # Not those that end as it begins: they are concurrent.
        for place in range(bisect_left(writers, begun, key=self.ends.__getitem__) - 1, -1, -1):
            txn = writers[place]
            if self.ends[txn] < latest:
                return
            latest = max(latest, self.invoke[txn])
            yield txn


Pairs = tuple[Int32s, Int32s]
"""The first of each saw nothing of the second's: a transaction saw the first and read the second's version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """Causal consistency: reads, writers of keys, and who surely saw whom.

    `reader`, `key`, `writer` int32[…]: the reads (writer NO_WRITER: of the initial version). `author`, `wrote`
    int32[…]: transactions with the keys that they wrote. `graph`: its wr and its steps in time say who saw whom at
    first hand. `ranked` int32[…]: the transactions in an order of these edges.
    """

    reader: Int32s
    key: Int32s
    writer: Int32s
    author: Int32s
    wrote: Int32s
    graph: Graph
    ranked: Int32s
    time: Time

    def newer(self, graph_kernels: Any, order: int) -> Pairs:
        """(one, other): a transaction knew of `one`, a writer of a key, and read the version of `other` (or NO_WRITER).

        It knew of those that it read of, of those before it by steps in time, and of all that these knew of. Left out
        where `other` knew of `one` itself.
        """
        chosen = (self.graph.kind == WR) | (self.graph.kind == PROCESS)
        target = self.graph.target[chosen]
        offsets, place = graph_kernels.rows(numpy.ascontiguousarray(target), len(self.graph))
        source = numpy.ascontiguousarray(self.graph.source[chosen][place])
        chains = _Chains.of(self.time) if order == 1 else None
        if chains is None or len(self.graph) * chains.count > CLOCKS_MAX:
            return self._by_bits(offsets, source)
        return self._by_clocks(offsets, source, chains)

    def _by_clocks(self, offsets: Int64s, source: Int32s, chains: _Chains) -> Pairs:
        kernels = load(sight_kernels, len(self.graph) * chains.count)
        seen = kernels.clocks(self.ranked, offsets, source, chains.session, chains.place, chains.count)
        order = numpy.lexsort((chains.place[self.author], chains.session[self.author], self.wrote))
        author, key = self.author[order], self.wrote[order]
        session = chains.session[author]
        new = numpy.ones(len(author), numpy.bool_)
        new[1:] = (key[1:] != key[:-1]) | (session[1:] != session[:-1])
        group = numpy.append(numpy.flatnonzero(new), len(author)).astype(numpy.int64)
        keys = int(max(self.key.max(initial=-1), key.max(initial=-1))) + 1
        begin = numpy.searchsorted(key[group[:-1]], numpy.arange(keys + 1)).astype(numpy.int64)
        room = 4 * len(self.reader) + 1024
        while True:
            ones, others, whole = kernels.newer(
                *(self.reader, self.key, self.writer, seen, begin, group, session[group[:-1]], author),
                *(chains.place, room),
            )
            if whole:
                return ones, others
            room *= 4

    def _by_bits(self, offsets: Int64s, source: Int32s) -> Pairs:
        """Without sessions that are chains: the pasts are sets of bits, of BLOCK transactions at once."""
        count, bounds, before = len(self.graph), offsets.tolist(), source.tolist()
        looks = list(zip(self.reader.tolist(), self.key.tolist(), self.writer.tolist(), strict=True))
        ranked = self.ranked.tolist()
        authors: dict[int, list[tuple[int, int]]] = {}
        for txn, key in zip(self.author.tolist(), self.wrote.tolist(), strict=True):
            authors.setdefault(txn // BLOCK, []).append((txn % BLOCK, key))
        found: list[tuple[int, int]] = []
        for block, those in authors.items():
            masks: dict[int, int] = {}
            for bit, key in those:
                masks[key] = masks.get(key, 0) | 1 << bit
            past = [0] * count
            low = block * BLOCK
            for txn in ranked:
                known = 0
                for edge in range(bounds[txn], bounds[txn + 1]):
                    one = before[edge]
                    known |= past[one] | (1 << (one - low) if low <= one < low + BLOCK else 0)
                past[txn] = known
            for reader, key, writer in looks:
                ones = masks.get(key, 0) & past[reader]
                if ones and writer != NO_WRITER:
                    own = 1 << (writer - low) if low <= writer < low + BLOCK else 0
                    ones &= ~(past[writer] | own)
                while ones:
                    bit = ones & -ones
                    found.append((low + bit.bit_length() - 1, writer))
                    ones ^= bit
        pairs = numpy.array(found, numpy.int32).reshape(-1, 2)
        return numpy.ascontiguousarray(pairs[:, 0]), numpy.ascontiguousarray(pairs[:, 1])


@dataclass(frozen=True, slots=True)
class _Chains:
    """The session of each transaction, 0 … count-1, and its place there; -1 for those that take no part."""

    session: Int32s
    place: Int32s
    count: int

    @classmethod
    def of(cls, time: Time) -> _Chains | None:
        """None if a session's transactions overlap, as sessions by node may."""
        members = numpy.flatnonzero(time.taking_part)
        _, number = numpy.unique(time.process[members], return_inverse=True)
        order = numpy.lexsort((time.invoke[members], number))
        ranked, of = members[order], number[order]
        follows = of[1:] == of[:-1]
        # Not >: what begins as another ends did not see it.
        if (time.ends[ranked[:-1]][follows] >= time.invoke[ranked[1:]][follows]).any():
            return None
        first = numpy.append(0, numpy.flatnonzero(~follows) + 1)
        session = numpy.full(len(time.process), -1, numpy.int32)
        place = session.copy()
        session[ranked] = of
        place[ranked] = numpy.arange(len(ranked)) - first[of] if len(ranked) else 0
        return cls(session, place, int(of.max(initial=-1)) + 1)
