"""The order in which the values of each key were written, as far as a history alone proves it: for all keys at once.

A value is known by its possible writers: the writes and compare-and-sets of it that did not surely fail. The value
before the first write (mostly None: nothing, which deletions write, too) has one more, before everything else. A write
that took effect did so at one moment, which lies

- between its invocation and its return (a write of unknown outcome has no return, so no end),
- before the end of any confirmed read of its value, if no other operation can have written that value,
- after the moment of the value that it replaced, if it is a compare-and-set that happened and no other operation can
  have written that value; and that moment lies before its own.

A value surely came before another if every possible moment of it lies before every possible one of the other. It is
never a guess. A compare-and-set that saw a value from the future is named (`early`), and says nothing of the order. A
check finds the operations that break it in these arrays, and the other operations of its witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.compiled import load
from checkers.history import value_kernels
from checkers.history.columns import Columns
from checkers.history.line_kernels import ABSENT, FAIL, OK, PAIR, PLAIN
from checkers.history.operation import Operation, both, leaves
from checkers.history.start import PLAIN_START, Start
from checkers.history.value_kernels import CIRCLE, NEVER
from checkers.history.value_rows import Key, Numbers, numbered
from checkers.history.values import value_words

Array = Any  # numpy's
CONFIRMED = ("read-confirmed", "linearizable", None)
"""The modes of reads that show confirmed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrders:
    """Arrays with a place for each value under each key; moments are indexes of events, as in a record.

    `earliest` and `latest` are NEVER for a value without a possible writer. `replaced` is the place of the value that a
    compare-and-set surely replaced by this one, -1 if that is not known. Of the writes that happened surely after all
    of a value, `overtaken` tells when the first was surely over, and `overwritten_ns` when the first was acknowledged
    (both NEVER if there is none).
    """

    read: Array
    """Of each confirmed read the place of the value that it showed."""
    held: Array
    """The places of the values that the caller asked for (`held` of `of`)."""
    earliest: Array
    latest: Array
    replaced: Array
    overtaken: Array
    overwritten_ns: Array
    writers: Writers
    failed: tuple[Array, Array]
    """The writes that surely failed: the places of the operations, and of the values that they would have written."""
    early: tuple[Array, Array]
    """The acknowledged compare-and-sets that saw a value before any write of it can have taken effect: the places of
    the operations, and of these values."""
    keys: Array
    """Of each value the number of its key."""
    reads: Array
    """The places of the confirmed reads, and the events that ended them."""
    ends: Array

    @classmethod
    def of(
        cls,
        numbers: Numbers,
        writes: Array,
        reads: Array,
        held: tuple[Array, Array] = ((), ()),
        start: Start = PLAIN_START,
    ) -> ValueOrders:
        """`writes`: the places of writes and compare-and-sets; `reads`: those of confirmed reads. `held`: numbers of
        keys, and of values under them. `start`: what was there before the first write.

        Raises ModelError of a compare-and-set without two values.
        """
        columns, writes = numbers.columns, numbers.changing(writes)
        is_failed = columns.type[writes] == FAIL
        at, failed = writes[~is_failed], writes[is_failed]
        sets = numpy.flatnonzero(columns.f[at] == columns.code("cas"))
        codes = numpy.arange(len(columns.words))  # every key has a value before the first write
        first = numpy.full(len(codes), ABSENT)
        if not start.is_plain:
            first = numpy.array([numbers.of_value(start.of(key)) for key in columns.words], dtype=numpy.int64)
        (nothing, written, old, read, lost, held_values), keys = _numbered_apart(
            (codes, first),
            numbers.rows(at, _written, names=("write",)).pairs,
            numbers.rows(at[sets], _replaced, names=(), pair="old").pairs,
            numbers.rows(reads, _shown, names=("read",)).pairs,
            numbers.rows(failed, _written, names=("write",)).pairs,
            (numpy.asarray(held[0], dtype=numpy.int64), numpy.asarray(held[1], dtype=numpy.int64)),
        )
        writers = Writers.of(columns, at, nothing, written)
        only = writers.only(len(keys))
        sets += len(codes)
        acknowledged = writers.latest[sets]
        source, order = writers.follow(sets, old, only)
        # After `follow`, which makes `earliest` later: a read that ended before that shows no writer.
        writers.see(only[read], columns.complete[reads])
        replaced = writers.bound(source, order, only)
        earliest, latest = numpy.full(len(keys), NEVER), numpy.full(len(keys), -1)
        numpy.minimum.at(earliest, writers.value, writers.earliest)
        numpy.maximum.at(latest, writers.value, writers.latest)
        is_early = (acknowledged <= earliest[old]) & (earliest[old] < NEVER)
        is_early |= (source[sets] == CIRCLE) & (acknowledged < NEVER)
        # -1 would say that it was over before everything.
        latest[earliest == NEVER] = NEVER
        overtaken, overwritten_ns = writers.behind(keys, latest)
        return cls(
            read=read,
            held=held_values,
            earliest=earliest,
            latest=latest,
            replaced=replaced,
            overtaken=overtaken,
            overwritten_ns=overwritten_ns,
            writers=writers,
            failed=(failed, lost),
            early=(writers.place[sets[is_early]], old[is_early]),
            keys=keys,
            reads=reads,
            ends=columns.complete[reads],
        )

    def writers_of(self, value: int) -> Array:
        """The places of the operations that may have written this value."""
        places = self.writers.place[self.writers.value == value]
        return places[places >= 0]

    def failed_of(self, value: int) -> Array:
        """The places of the operations that would have written it, and surely failed."""
        return self.failed[0][self.failed[1] == value]

    def reads_of(self, writer: int) -> Array:
        """The places of the confirmed reads that prove that this only writer of its value happened."""
        is_proof = (self.read == self.writers.value[writer]) & (self.ends > self.writers.earliest[writer])
        return self.reads[is_proof]

    def overtaker(self, value: int) -> int:
        """The place of the operation behind `overtaken`."""
        writers = self.writers
        is_later = writers.happened & (writers.earliest > self.latest[value])
        later = numpy.flatnonzero(is_later & (self.keys[writers.value] == self.keys[value]))
        later = later[numpy.lexsort((writers.place[later], writers.earliest[later]))]
        return int(writers.place[later[numpy.argmin(writers.latest[later])]])

    def was_replaced_by(self, old: int, new: int) -> bool:
        """Whether compare-and-sets surely replaced `old` on the way to `new`."""
        while (new := int(self.replaced[new])) >= 0:
            if new == old:
                return True
        return False

    @property
    def surely_replaced(self) -> Array:
        """The moment by which each value surely had been replaced for good, by any proof; NEVER: no proof."""
        moment = self.overtaken.copy()
        made = numpy.flatnonzero(self.replaced >= 0)
        numpy.minimum.at(moment, self.replaced[made], self.latest[made])
        return moment


def _written(operation: Operation) -> Iterator[tuple[Key, Any]]:
    yield operation.key, leaves(operation)


def _replaced(operation: Operation) -> Iterator[tuple[Key, Any]]:
    yield operation.key, both(operation)[0]


def _shown(read: Operation) -> Iterator[tuple[Key, Any]]:
    yield read.key, read.value


def are_writes(columns: Columns) -> Array:
    """Which operations are writes or compare-and-sets: an array of truths."""
    return (columns.f == columns.code("write")) | (columns.f == columns.code("cas"))


def are_reads(columns: Columns, modes: Iterable[str | None]) -> Array:
    """Which operations are reads in one of these modes: an array of truths."""
    is_in = numpy.isin(columns.mode, [columns.code(mode) for mode in modes if mode in columns.words])  # type: ignore[arg-type]  # None is a word
    return (columns.f == columns.code("read")) & is_in


def odd_keys(columns: Columns, reads: Array) -> Array:
    """By code, the keys with a write, a cas or one of these reads with a value that columns do not have."""
    expected = numpy.where(columns.f == columns.code("cas"), numpy.int8(PAIR), numpy.int8(PLAIN))
    is_odd = are_writes(columns) & (columns.kind != expected)
    is_odd[reads] = columns.kind[reads] != PLAIN
    is_odd_key = numpy.zeros(len(columns.words), dtype=bool)
    is_odd_key[columns.key[is_odd]] = True
    return is_odd_key


def _numbered_apart(*parts: tuple[Array, Array]) -> tuple[list[Array], Array]:
    """`numbered` of several (keys, values) together: the numbers of each part, and the key of each number."""
    number, keys = numbered(*(numpy.concatenate(side) for side in zip(*parts, strict=True)))
    ends = numpy.cumsum([len(key) for key, _ in parts])
    return numpy.split(number, ends[:-1]), keys


@dataclass(frozen=True, slots=True)
class Writers:
    """The possible writers of all values, first those that were there from the beginning.

    `place`: of the operation, -1 if there is none. `done_ns`: when they were acknowledged; NEVER if they were not.
    """

    place: Array
    value: Array
    earliest: Array
    latest: Array
    happened: Array
    done_ns: Array

    @classmethod
    def of(cls, columns: Columns, at: Array, nothing: Array, written: Array) -> Writers:
        """`at`: the places of those that are operations, and `written` the values that they write."""
        is_ok, first = columns.type[at] == OK, numpy.full(len(nothing), -1)
        return cls(
            numpy.concatenate((first, at)).astype(numpy.int32),
            numpy.concatenate((nothing, written)),
            numpy.concatenate((first, columns.invoke[at])),
            numpy.concatenate((first, numpy.where(is_ok, columns.complete[at], NEVER))),
            numpy.concatenate((first < 0, is_ok)),
            numpy.concatenate((first, numpy.where(is_ok, columns.complete_ns[at], NEVER))),
        )

    def only(self, values: int) -> Array:
        """Of each value its only possible writer; -1 if there are several, or none."""
        only = numpy.full(values, -1)
        only[self.value] = numpy.arange(len(self.value))
        only[numpy.bincount(self.value, minlength=values) > 1] = -1
        return only

    def see(self, writer: Array, complete: Array) -> None:
        """A read proves that the only possible writer of its value had happened by then."""
        # A read that was over before its writer was asked proves nothing of it: -1 indexes too, hence the first test.
        shows = (writer >= 0) & (self.earliest[writer] < complete)
        numpy.minimum.at(self.latest, writer[shows], complete[shows])
        self.happened[writer[shows]] = True

    def follow(self, sets: Array, old: Array, only: Array) -> tuple[Array, Array]:
        """Pass `earliest` along compare-and-sets. Returns of each writer the only possible writer of the value that it
        replaced, -1 if that is not known and CIRCLE if it is the writer itself in the end; and all in their order.

        `sets`: the writers that are compare-and-sets; `old`: the values that they replace.
        """
        source, order = numpy.full(len(self.value), -1), numpy.empty(len(self.value), dtype=numpy.int64)
        is_known = (only[old] >= 0) & (self.earliest[only[old]] < self.latest[sets])
        source[sets[is_known]] = only[old[is_known]]
        load(value_kernels, len(order)).follow(
            source, self.earliest, self.latest, numpy.full(len(order), -1), order
        )
        return source, order

    def bound(self, source: Array, order: Array, only: Array) -> Array:
        """Pass `latest` back along compare-and-sets that happened. Returns `ValueOrders.replaced`."""
        source = numpy.where(self.happened, source, -1)
        load(value_kernels, len(order)).bound(source, order, self.latest)
        sure = numpy.flatnonzero((source >= 0) & (only[self.value] >= 0))
        replaced = numpy.full(len(only), -1)
        replaced[self.value[sure]] = self.value[source[sure]]
        return replaced

    def behind(self, keys: Array, last: Array) -> tuple[Array, Array]:
        """Of each value the least `latest` and `done_ns` of the writers under its key that happened, and begin after
        `last`."""
        happened = numpy.flatnonzero(self.happened)
        key, earliest = keys[self.value[happened]].astype(numpy.int64), self.earliest[happened]
        span = int(earliest.max(initial=0)) + 3
        at = key * span + earliest + 1
        order = numpy.argsort(at)
        at, key, happened = at[order], key[order], happened[order]
        latest, done_ns = self.latest[happened], self.done_ns[happened]
        load(value_kernels, len(key)).least_from_here_on(key, latest, done_ns)
        beyond = keys.astype(numpy.int64) * span + numpy.minimum(last, span - 3) + 1
        place = numpy.searchsorted(at, beyond, "right")
        is_there = place < len(at)
        place[~is_there] = 0
        is_there &= key[place] == keys
        return numpy.where(is_there, latest[place], NEVER), numpy.where(is_there, done_ns[place], NEVER)


def written_words(writer: Operation) -> str:
    """The value that a write or compare-and-set leaves, for a sentence."""
    value = leaves(writer)
    return "a deletion" if value is None else value_words(value)
