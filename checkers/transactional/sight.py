"""What a read surely knew of: the reads of other transactions' versions, each with the steps before it.

The models below parallel snapshot isolation differ in that alone (see `anomalies`): which transactions a read saw, so
that it shows no version older than theirs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy

from checkers.transactional.append import Analysis
from checkers.transactional.columns import OK, PREDICATE_READ, WRITE, Columns, Workload
from checkers.transactional.graph import PROCESS, WR, Graph, Time

NO_WRITER = -1
OWN = -2
BLOCK = 4096
"""So many transactions are looked for in the pasts of all at once, each a bit."""
Keys = Mapping[int, Sequence[int]]
"""By key, the transactions that took place and wrote it."""


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
        for place in range(bisect_left(writers, begun, key=self.ends.__getitem__) - 1, -1, -1):
            txn = writers[place]
            if self.ends[txn] < latest:
                return
            latest = max(latest, self.invoke[txn])
            yield txn


def seen_by_cause(
    reads: Sequence[Read], writers: Keys, graph: Graph, ranked: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """(one, other): a transaction knew of `one`, a writer of a key, and read the version of `other` (NO_WRITER: null).

    It knew of those that it read of, of those before it by `graph`'s steps in time, and of all that these knew of.
    `ranked`: the transactions in an order of these edges. Left out where `other` knew of `one` itself.
    """
    chosen = (graph.kind == WR) | (graph.kind == PROCESS)
    before: list[list[int]] = [[] for _ in range(len(graph))]
    for source, target in zip(graph.source[chosen].tolist(), graph.target[chosen].tolist(), strict=True):
        before[target].append(source)
    looks = dict.fromkeys((read.reader, read.key, read.writer) for read in reads)
    for block in range(0, len(graph), BLOCK):
        there = [0] * len(graph)
        for txn in range(block, min(block + BLOCK, len(graph))):
            there[txn] = 1 << (txn - block)
        masks = {
            key: sum(there[txn] for txn in those if there[txn])
            for key, those in writers.items()
            if any(there[txn] for txn in those)
        }
        past = [0] * len(graph)
        for txn in ranked:
            known = 0
            for source in before[txn]:
                known |= past[source] | there[source]
            past[txn] = known
        for reader, key, writer in looks:
            ones = masks.get(key, 0) & past[reader] & ~there[reader]
            if ones and writer != NO_WRITER:
                ones &= ~(past[writer] | there[writer])
            while ones:
                low = ones & -ones
                yield block + low.bit_length() - 1, writer
                ones ^= low
