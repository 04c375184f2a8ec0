"""The queues of a master, from its records alone: a walk through the log that stops where a check looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import Columns, LogColumns
from checkers.logs.txlog.kernels import NEVER

Array = Any  # numpy's


def room(log: LogColumns) -> int:
    """How many entries a synchronised queue of this log can have."""
    rows = log.rows
    appends = rows.of_kind(kernels.ADDED, kernels.CAUGHT_UP)
    recoveries = rows.of_kind(kernels.RECOVERED)
    return int((rows.first[appends + 1] - rows.first[appends]).sum() + rows.other[recoveries].sum())


def synchronised(columns: Columns, log: LogColumns) -> Array:
    """The synchronised queue behind all records."""
    synced = numpy.empty(room(log), dtype=numpy.int32)
    appends = log.rows.of_kind(kernels.ADDED, kernels.CAUGHT_UP, kernels.RECOVERED)
    return synced[: columns.kernels.synchronised(log.rows, appends, synced)]


class Queues:
    """The queues of one master behind the records that were applied.

    place   by id: how many entries the synchronised queue has up to its first occurrence; 0: it has it not
    queue   by id the incoming transaction; -1 for none
    next    the row that would be applied next; all of them were applied if it is `end`
    """

    def __init__(self, columns: Columns, log: LogColumns) -> None:
        self._columns, self._log = columns, log
        ids, entries = len(columns.names), room(log)
        self.next, self.end = 0, len(log.rows.kind)
        self.place = numpy.zeros(ids, dtype=numpy.int32)
        self.queue = numpy.full(ids, -1, dtype=numpy.int32)
        self._turn = numpy.zeros(ids, dtype=numpy.int32)
        self._synced, self._of_entry = (numpy.empty(entries, dtype=numpy.int32) for _ in range(2))
        self._state = numpy.zeros(2, dtype=numpy.int64)
        self._stops = {
            kind: [*map(int, log.rows.of_kind(kind))] for kind in (kernels.RECOVERED, kernels.RECOVERING)
        }

    def go_on(self, until: int) -> None:
        """Apply all records before a row."""
        log, columns = self._log, self._columns
        columns.kernels.replay(
            log.rows, columns.id, self.next, until, self._state, self._synced, self._of_entry, self.place, self.queue,
            self._turn,
        )  # fmt: skip
        self.next = until

    @property
    def synced(self) -> Array:
        """The synchronised queue: transactions in order. It changes with the next records."""
        return self._synced[: self._state[0]]

    @property
    def has(self) -> Array:
        """By id whether it is in one of the queues."""
        return (self.place > 0) | (self.queue >= 0)

    def names(self, which: Array) -> list[int]:
        """The ids of a mask: the synchronised ones in order, then the incoming ones in the order in which they came."""
        synced = numpy.flatnonzero(which & (self.place > 0))
        waits = numpy.flatnonzero(which & (self.queue >= 0))
        synced, waits = synced[numpy.argsort(self.place[synced])], waits[numpy.argsort(self._turn[waits])]
        return [*dict.fromkeys((*synced.tolist(), *waits.tolist()))]

    def next_of(self, kind: int) -> int:
        """The next row of this kind that is to be applied; `end` if there is none."""
        return next((row for row in self._stops[kind] if row >= self.next), self.end)


# ---- lengths of the synchronised queue


class OfLog(NamedTuple):
    """By epoch and length of the synchronised queue (`keys`, sorted): `ends`, the place of the record that ended it
    (NO_RECORD), and the counter until then."""

    keys: Array
    ends: Array
    counter: Array


@dataclass(frozen=True, slots=True)
class Bases:
    """By round and master, for each log: the record that ended the round's base there (0: the master never had it), and
    the counter until then (-1)."""

    ends: Mapping[str, Array]
    counter: Mapping[str, Array]


def bases_of(columns: Columns) -> Bases:
    """The queues of the posters of all rounds, as their own records say; those of a damaged log say nothing."""
    logs = columns.logs
    lengths_of = {master: _lengths(columns, log) for master, log in logs.items()}
    epochs = numpy.unique(numpy.concatenate([[0], *(log.over[:, 0] for log in logs.values())]))
    longest = 1 + max((int(lengths[1].max()) for lengths in lengths_of.values()), default=0)
    assert len(epochs) * longest < NEVER
    of_log = {master: _sorted(*lengths, epochs, longest) for master, lengths in lengths_of.items()}
    ends, counters = {}, {}
    for master, log in logs.items():
        rounds = log.rows.of_kind(kernels.ADDED)
        recoveries = log.rows.of_kind(kernels.RECOVERED)
        before = numpy.append(0, log.over[:, 0])[numpy.searchsorted(recoveries, rounds)]
        index = log.rows.number[rounds]
        wanted = numpy.where(index < longest, numpy.searchsorted(epochs, before) * longest + index, -1)
        groups = log.rows.name[rounds]
        ends[master] = numpy.zeros((len(rounds), len(columns.peers)), dtype=numpy.int32)
        counters[master] = numpy.full((len(rounds), len(columns.peers)), -1, dtype=numpy.int64)
        for poster, theirs in of_log.items():
            number = columns.peer[poster]
            if logs[poster].damage:
                continue
            if not (columns.flags[:, number] & 1).any() or not (columns.flags[groups, number] & 1).any():
                continue
            at = numpy.empty(len(rounds), dtype=numpy.int64)
            columns.kernels.last_places(theirs.keys, wanted, at)
            ends[master][:, number] = numpy.where(at >= 0, theirs.ends[at], 0)
            counters[master][:, number] = numpy.where(at >= 0, theirs.counter[at], -1)
    return Bases(ends, counters)


def _lengths(columns: Columns, log: LogColumns) -> tuple[Array, Array, Array, Array]:
    count = 1 + len(log.rows.of_kind(kernels.ADDED, kernels.CAUGHT_UP, kernels.RECOVERED))
    epoch, length, counter = (numpy.empty(count, dtype=numpy.int64) for _ in range(3))
    ends = numpy.empty(count, dtype=numpy.int32)
    columns.kernels.bases(log.rows, columns.ts, log.over, epoch, length, ends, counter)
    return epoch, length, ends, counter


def _sorted(epoch: Array, length: Array, ends: Array, counter: Array, epochs: Array, longest: int) -> OfLog:
    keys = numpy.searchsorted(epochs, epoch) * longest + length
    if (keys[1:] >= keys[:-1]).all():
        return OfLog(keys, ends, counter)
    by_key = numpy.argsort(keys, kind="stable")
    return OfLog(keys[by_key], ends[by_key], counter[by_key])
