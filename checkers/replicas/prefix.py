"""Reads at a replica: each node shows a monotone prefix of the confirmed order.

Stale reads are allowed, without bound, and reported. Not allowed are:

- a value that no client wrote, that only failed writes wrote, or that no client had asked to write yet; the last not
  of a compare-and-set either, wherever it was answered: without a place for it there is no confirmed order
- going back: a read invoked after another had completed at the same node returns a value that surely was replaced
  before the other's value was written. A restart of the node is not an excuse: what it showed was confirmed. Nor is
  a different key: there is one confirmed order, and a node that has shown a value has all confirmed before it.

Judged are the confirmed reads that a server answered as a replica. The order of values comes from the history
alone (`checkers.history.value_order`), so only certain violations are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.compiled import load
from checkers.history import value_kernels, value_order
from checkers.history.columns import TYPES, grouped
from checkers.history.history import History
from checkers.history.line_kernels import OK
from checkers.history.members import answered_by, servers
from checkers.history.operation import Operation, both
from checkers.history.value_order import ValueOrders
from checkers.history.value_rows import Numbers
from checkers.history.values import many, value_words
from checkers.verdict import Result, Verdict, Witness, concluded, witness

NAME = "prefix"
MODEL = "monotone-prefix"
MODES = ("read-confirmed", None)
"""The modes of reads that show confirmed values and have no stronger rule of their own."""
Array = Any  # numpy's
Reads = Callable[[str | None, str | None], bool]
"""Of a read's role and mode."""


def check(history: History, *, stronger: Reads = lambda role, mode: False) -> Verdict:
    """Whether every replica only went forward, and showed nothing that was not written.

    `stronger`: the reads that another check judges by a stronger promise.

    `details["findings"]` holds a sentence on stale reads, if there were any; `stale_ms_max` how stale at least; `asked`
    how many confirmed reads were asked of nodes that answered as a replica, or never as the owner. It is 0 if such
    nodes did answer, named no role, and a stronger promise judges all of these answers.
    """
    witnesses, counts = _judged(history)
    return _verdict(witnesses, counts, _unanswered(history, stronger))


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many confirmed reads replicas answered, how many of them were stale, and for how long at least."""

    reads: int = 0
    stale_reads: int = 0
    stale_ms_max: float = 0.0


def _judged(history: History) -> tuple[list[Witness], _Counts]:
    columns, numbers = history.columns, Numbers(history)
    confirmed = numpy.flatnonzero(value_order.are_reads(columns, MODES) & (columns.type == OK))
    is_judged = columns.role[confirmed] == columns.code("replica")
    if not is_judged.any():
        return [], _Counts()
    writes = numpy.flatnonzero(value_order.are_writes(columns))
    numbers.compared(writes)
    orders = ValueOrders.of(numbers, writes, confirmed, start=history.start)
    judged, value = confirmed[is_judged], orders.read[is_judged]
    stale_ns = columns.invoke_ns[judged] - orders.overwritten_ns[value]
    counts = _Counts(len(judged), int((stale_ns > 0).sum()), max(0, int(stale_ns.max())) / 1e6)
    explained = _Explained(history, orders)
    # Also NEVER, which a value without a possible writer has.
    is_impossible = orders.earliest[value] >= columns.complete[judged]
    at, shown = (
        numpy.concatenate(both)
        for both in zip((judged[is_impossible], value[is_impossible]), orders.early, strict=True)
    )
    witnesses = [explained.impossible(*pair) for pair in zip(at.tolist(), shown.tolist(), strict=True)]
    return [*witnesses, *_gone_back(history, confirmed, is_judged, explained)], counts


def _gone_back(
    history: History, confirmed: Array, is_judged: Array, explained: _Explained
) -> Iterator[Witness]:
    """First the reads that go back by a value of the same key, by node and key; then those by another key, by node."""
    columns, orders = history.columns, explained.orders
    server = servers(history, columns, confirmed)
    known = numpy.flatnonzero((server >= 0) & (columns.node[confirmed] > 0))
    names, server = numpy.unique(server[known], return_inverse=True)
    at, key = confirmed[known], columns.key[confirmed[known]].astype(numpy.int64)
    asked, bounds = grouped(server, len(names))
    ended = numpy.argsort(columns.complete[at])
    ended = ended[grouped(server[ended], len(names))[0]]
    values, words = len(orders.latest), len(columns.words)
    newer, ahead, superseded = (numpy.full(size, -1) for size in (len(at), len(at), values))
    load(value_kernels, len(at)).went_back(
        bounds, asked, ended, columns.invoke[at], columns.complete[at], key, orders.read[known], is_judged[known],
        orders.earliest, orders.latest, orders.overtaken, orders.replaced, *numpy.empty((2, words), dtype=numpy.int64),
        superseded, numpy.empty(values, dtype=numpy.int64), newer, ahead,
    )  # fmt: skip
    _, first, group = numpy.unique(server * words + key, return_index=True, return_inverse=True)
    rows = numpy.flatnonzero(newer >= 0)
    for row in rows[numpy.lexsort((rows, first[group[rows]]))].tolist():
        yield explained.went_back(int(at[row]), int(at[newer[row]]))
    rows = numpy.flatnonzero(ahead >= 0)
    by_name = {
        row: answered_by(history, read) for row, read in zip(rows.tolist(), history.at(at[rows]), strict=True)
    }
    for row in sorted(by_name, key=lambda row: (by_name[row], row)):
        yield explained.was_behind(int(at[row]), int(at[ahead[row]]))


def _unanswered(history: History, stronger: Reads) -> int:
    """How many confirmed reads were not answered, of those asked of nodes that never were known as the owner.

    0 if such nodes did answer, named no role, and a stronger promise judges all of these answers.
    """
    elsewhere, names_replicas = _elsewhere(history)
    answered = [(role, mode) for how, role, mode in elsewhere if how == "ok"]
    if answered and not names_replicas and all(stronger(role, mode) for role, mode in answered):
        return 0
    return sum(many for (how, _, _), many in elsewhere.items() if how != "ok")


def _elsewhere(history: History) -> tuple[Counter[tuple[str, str | None, str | None]], bool]:
    """Of the confirmed reads asked of nodes that never were known as the owner: how many ended how, in which role and
    mode. And whether any answer names a replica."""
    columns, owner = history.columns, history.header.owner
    words = columns.words
    of_owner = numpy.unique(columns.node[columns.role == columns.code("owner")]).tolist()
    owners = [*of_owner, *(code for code, word in enumerate(words) if word in (owner, None))]
    is_elsewhere = value_order.are_reads(columns, MODES) & ~numpy.isin(columns.node, owners)
    places = numpy.flatnonzero(is_elsewhere)
    rows = numpy.stack(
        [column[places].astype(numpy.int64) for column in (columns.type, columns.role, columns.mode)]
    )
    classes, counts = numpy.unique(rows, axis=1, return_counts=True)
    outcomes = Counter(
        {
            (TYPES[how], words[role], words[mode]): many
            for (how, role, mode), many in zip(classes.T.tolist(), counts.tolist(), strict=True)
        }
    )
    return outcomes, bool((columns.role == columns.code("replica")).any())


def answer(operation: Operation) -> str:
    """ "the read of key r3 at n2 by process 4 returned 7"; of a compare-and-set what it saw."""
    is_read = operation.f == "read"
    name, saw = ("read", "returned") if is_read else ("compare-and-set", "saw")
    value = value_words(operation.value if is_read else both(operation)[0])
    return (
        f"the {name} of key {operation.key} at {operation.node} by process {operation.process} {saw} {value}"
    )


def _witness(
    rule: str, read: Operation, named: Sequence[Operation], summary: str, explanation: tuple[str, ...]
) -> Witness:
    return witness(rule, summary, named, key=read.key, node=read.node, explanation=explanation)


@dataclass(frozen=True, slots=True)
class _Explained:
    """Witnesses of confirmed reads at places of the history."""

    history: History
    orders: ValueOrders

    def impossible(self, place: int, value: int) -> Witness:
        """An operation that saw a value that no node can have held."""
        (read,) = self._at([place])
        named = self._at(self.orders.writers_of(value)[:1])
        rule = "read-from-the-future" if read.f == "read" else "compare-from-the-future"
        why = "before that can have been written"
        if not named:
            named = self._at(self.orders.failed_of(value)[:1])
            rule, why = "read-of-failed-write", "although every write of it had surely failed"
        if not named:
            rule, why = "never-written", "which no client ever asked to write"
        return _witness(rule, read, [*named, read], f"{answer(read)}, {why}", ())

    def went_back(self, place: int, before: int) -> Witness:
        """The read at `before` had shown a newer value of the key."""
        read, newer = self._at([place, before])
        old, new = self._value_of(place), self._value_of(before)
        writers = [*self.orders.writers_of(old).tolist(), *self.orders.writers_of(new).tolist()]
        ago = (read.invoke_ns - (newer.complete_ns or 0)) / 1e6
        before_it = (
            f"{ago:.1f} ms before it began the node had shown {value_words(newer.value)}, which is newer"
        )
        summary = f"{answer(read)}, although {before_it}"
        name, next_ = value_words(read.value), value_words(newer.value)
        why = f"Every write of {name} was over before any write of {next_} can have taken effect."
        if self.orders.was_replaced_by(old, new):
            alone = f"no other operation can have written {name}"
            why = f"{next_} was made from {name} by compare-and-set, and {alone}."
        return _witness("went-back", read, [*self._at(writers[:4]), newer, read], summary, (why,))

    def was_behind(self, place: int, before: int) -> Witness:
        """The read at `before` had shown another key's value, newer than the replacement of this read's value."""
        overtaker = self.orders.overtaker(self._value_of(place))
        read, shown, missed = self._at([place, before, overtaker])
        written = value_order.written_words(missed)
        summary = (
            f"{answer(read)}, although the node had shown {value_words(shown.value)} under key {shown.key} before, "
            f"which was written after {written} had replaced it"
        )
        first = f"{written[:1].upper()}{written[1:]} under key {read.key} was confirmed"
        why = f"{first} before any client asked to write {value_words(shown.value)} under {shown.key}."
        return _witness("went-back", read, [missed, shown, read], summary, (why,))

    def _value_of(self, place: int) -> int:
        """The value of a read, as a place in the orders."""
        return int(self.orders.read[numpy.searchsorted(self.orders.reads, place)])

    def _at(self, places: Sequence[int] | Array) -> Sequence[Operation]:
        return self.history.at(numpy.asarray(places, dtype=numpy.int64))


def _verdict(witnesses: Sequence[Witness], counts: _Counts, unanswered: int) -> Verdict:
    reads, stale_ms_max = counts.reads, round(counts.stale_ms_max, 3)
    asked = reads + unanswered
    details: dict[str, Any] = {
        "replica_reads": reads,
        "asked": asked,
        "stale_reads": counts.stale_reads,
        "stale_ms_max": stale_ms_max,
        "violations": len(witnesses),
        "vacuous": reads == 0,
        "findings": [],
    }
    if counts.stale_reads:
        stale = f"{many(counts.stale_reads, 'stale read')} of {reads} at replicas"
        details["findings"] = [f"{stale}, the worst by at least {stale_ms_max:.1f} ms"]
    summary = f"reads at replicas ({reads}) never went back"
    if not reads:
        summary = f"nothing to judge: of {asked} reads asked of replicas none was answered"
    result: Result = "valid" if reads else "unknown"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)
