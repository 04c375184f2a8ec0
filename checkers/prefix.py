"""Reads at a replica: each node shows a monotone prefix of the confirmed order.

Stale reads are allowed, without bound, and reported. Not allowed are:

- a value that no client wrote, that only failed writes wrote, or that no client had asked to write yet
- going back: a read invoked after another had completed at the same node returns a value that surely was replaced
  before the other's value was written. A restart of the node is not an excuse: what it showed was confirmed. Nor is
  a different key: there is one confirmed order, and a node that has shown a value has all confirmed before it.

Judged are the confirmed reads that a server answered as a replica. The order of values comes from the history
alone (`checkers.value_order`), so only certain violations are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from checkers import value_columns, value_kernels, value_order
from checkers.compiled import load
from checkers.history.columns import TYPES, Columns, grouped
from checkers.history.history import History, by_key
from checkers.history.line_kernels import OK
from checkers.history.members import answered_by, servers
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations
from checkers.value_columns import ValueOrders
from checkers.value_order import NEVER, ValueOrder
from checkers.values import Value, identity, value_words
from checkers.verdict import Result, Verdict, Witness, concluded

NAME = "prefix"
MODEL = "monotone-prefix"
MODES = ("read-confirmed", None)
"""The modes of reads that show confirmed values, and that no stronger rule is about."""
Array = Any  # numpy's
Orders = dict[str | None, ValueOrder]
Reads = Callable[[str | None, str | None], bool]
"""Of a read's role and mode."""


def check(history: History, *, stronger: Reads = lambda role, mode: False) -> Verdict:
    """Whether every replica only went forward, and showed nothing that was not written.

    `stronger`: the reads that another check judges by a stronger promise.

    `details["findings"]` holds a sentence on stale reads, if there were any; `stale_ms_max` how stale at least; `asked`
    how many confirmed reads were asked of nodes that answered as a replica, or never as the owner. It is 0 if such
    nodes did answer, named no role, and a stronger promise judges all of these answers.
    """
    decided = _of_columns(history)
    if decided is None:
        witnesses, told = _of_operations(history)
    else:
        told, keys = decided
        witnesses = _of_operations(history, keys)[0] if keys else []
    return _verdict(witnesses, told, _unanswered(history, stronger))


@dataclass(frozen=True, slots=True)
class _Told:
    """How many confirmed reads replicas answered, how many of them were stale, and for how long at least."""

    reads: int = 0
    stale_reads: int = 0
    stale_ms_max: float = 0.0


def _of_operations(
    history: History, keys: Container[str | None] | None = None
) -> tuple[list[Witness], _Told]:
    """The witnesses under these keys (None: all), and the counts of their reads."""
    answered = history.select(f="read", outcome="ok", keys=keys)
    confirmed = [operation for operation in answered if _confirmed(operation)]
    replica_reads = [operation for operation in confirmed if operation.role == "replica"]
    orders = _orders(history, confirmed, keys)
    witnesses: list[Witness] = []
    for read in replica_reads:
        witness = impossible_value(read, orders[read.key])
        if witness is not None:
            witnesses.append(witness)
    for reads in _at_one_node(history, confirmed).values():
        witnesses.extend(_going_back(reads, orders[reads[0].key]))
    for reads in _of_each_node(history, confirmed):
        witnesses.extend(_behind(reads, orders))
    stale_ms = [stale for read in replica_reads if (stale := _stale_ms(read, orders[read.key])) > 0]
    return witnesses, _Told(len(replica_reads), len(stale_ms), max(stale_ms, default=0.0))


def _of_columns(history: History) -> tuple[_Told, set[str | None]] | None:
    """The counts of all reads, and the keys with witnesses. None if the check takes more than columns."""
    operations = history.operations
    if not isinstance(operations, StoredOperations):
        return None
    columns = operations.columns
    confirmed = numpy.flatnonzero(value_columns.are_reads(columns, MODES) & (columns.type == OK))
    if value_columns.odd_keys(columns, confirmed).any():
        return None
    is_judged = columns.role[confirmed] == columns.code("replica")
    if not is_judged.any():
        return _Told(), set()
    orders = ValueOrders.of(columns, confirmed)
    judged, value = confirmed[is_judged], orders.read[is_judged]
    stale_ns = columns.invoke_ns[judged] - orders.overwritten_ns[value]
    told = _Told(len(judged), int((stale_ns > 0).sum()), max(0, int(stale_ns.max())) / 1e6)
    concerned = _keys_gone_back(history, columns, confirmed, is_judged, orders)
    concerned[columns.key[judged[orders.earliest[value] >= columns.complete[judged]]]] = True
    return told, {columns.words[code] for code in numpy.flatnonzero(concerned).tolist()}


def _keys_gone_back(
    history: History, columns: Columns, confirmed: Array, is_judged: Array, orders: ValueOrders
) -> Array:
    """By code, whether `_going_back` or `_behind` has a witness that concerns the key."""
    server = servers(history, columns, confirmed)
    known = numpy.flatnonzero((server >= 0) & (columns.node[confirmed] > 0))
    names, server = numpy.unique(server[known], return_inverse=True)
    at = confirmed[known]
    asked, bounds = grouped(server, len(names))
    ended = numpy.argsort(columns.complete[at])
    ended = ended[grouped(server[ended], len(names))[0]]
    concerned = numpy.zeros(len(columns.words), dtype=bool)
    load(value_kernels, len(at)).went_back(
        bounds, asked, ended, columns.invoke[at], columns.complete[at], columns.key[at].astype(numpy.int64),
        orders.read[known], is_judged[known], orders.earliest, orders.latest, orders.overtaken, orders.replaced,
        numpy.empty(len(concerned), dtype=numpy.int64), numpy.full(len(orders.latest), -1), concerned,
    )  # fmt: skip
    return concerned


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
    operations, owner = history.operations, history.header.owner
    if isinstance(operations, StoredOperations):
        return _elsewhere_of_columns(operations.columns, owner)
    owners = {each.node for each in operations if each.role == "owner"} | {owner, None}
    reads = (each for each in history.select(f="read") if _confirmed(each) and each.node not in owners)
    found = Counter((str(each.type), each.role, each.mode) for each in reads)
    return found, any(each.role == "replica" for each in operations)


def _elsewhere_of_columns(
    columns: Columns, owner: str | None
) -> tuple[Counter[tuple[str, str | None, str | None]], bool]:
    words = columns.words
    of_owner = numpy.unique(columns.node[columns.role == columns.code("owner")]).tolist()
    owners = [*of_owner, *(code for code, word in enumerate(words) if word in (owner, None))]
    is_elsewhere = value_columns.are_reads(columns, MODES) & ~numpy.isin(columns.node, owners)
    places = numpy.flatnonzero(is_elsewhere)
    rows = numpy.stack(
        [column[places].astype(numpy.int64) for column in (columns.type, columns.role, columns.mode)]
    )
    classes, counts = numpy.unique(rows, axis=1, return_counts=True)
    found = Counter(
        {
            (TYPES[how], words[role], words[mode]): many
            for (how, role, mode), many in zip(classes.T.tolist(), counts.tolist(), strict=True)
        }
    )
    return found, bool((columns.role == columns.code("replica")).any())


def _confirmed(read: Operation) -> bool:
    return read.mode in MODES


def _orders(history: History, confirmed: Sequence[Operation], keys: Container[str | None] | None) -> Orders:
    writes = by_key(history.select(f=("write", "cas"), keys=keys))
    reads = by_key(confirmed)
    return {key: ValueOrder.of(writes.get(key, ()), reads.get(key, ())) for key in {**writes, **reads}}


def _at_one_node(
    history: History, reads: Sequence[Operation]
) -> dict[tuple[str, str | None], list[Operation]]:
    groups: dict[tuple[str, str | None], list[Operation]] = {}
    for read in reads:
        if read.node is not None:
            groups.setdefault((answered_by(history, read), read.key), []).append(read)
    return groups


def _of_each_node(history: History, reads: Sequence[Operation]) -> list[list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for read in reads:
        if read.node is not None:
            groups.setdefault(answered_by(history, read), []).append(read)
    return [group for _, group in sorted(groups.items())]


def impossible_value(read: Operation, order: ValueOrder) -> Witness | None:
    """A witness if the value of `read` cannot have been there, wherever it was read."""
    value = identity(read.value)
    end = read.complete_index
    writers = order.writers.get(value, [])
    if end is None or any(writer.earliest < end for writer in writers):
        return None
    failed = order.failed.get(value, [])
    named = failed[:1]
    if writers:
        rule, why = "read-from-the-future", "before that can have been written"
        named = [writer.operation for writer in writers if writer.operation is not None][:1]
    elif failed:
        rule, why = "read-of-failed-write", "although every write of it had surely failed"
    else:
        rule, why = "never-written", "which no client ever asked to write"
    return _witness(rule, read, [*named, read], f"{told(read)}, {why}", ())


def told(read: Operation) -> str:
    """ "the read of key r3 at n2 by process 4 returned 7"."""
    return f"the read of key {read.key} at {read.node} by process {read.process} returned {value_words(read.value)}"


def _witness(
    rule: str, read: Operation, named: Sequence[Operation], summary: str, explanation: tuple[str, ...]
) -> Witness:
    return Witness(
        rule=rule,
        summary=summary,
        events=tuple(sorted({event for operation in named for event in operation.events})),
        key=read.key,
        node=read.node,
        start_ns=min(operation.invoke_ns for operation in named),
        end_ns=max(operation.complete_ns or operation.invoke_ns for operation in named),
        explanation=explanation,
    )


@dataclass(slots=True)
class _Shown:
    """The sure progress of a node: the newest value shown by a read, and all that compare-and-sets replaced."""

    earliest: int = -1
    by: Operation | None = None
    superseded: dict[Value, Operation] = field(default_factory=dict)

    def add(self, read: Operation, order: ValueOrder) -> None:
        value = identity(read.value)
        earliest = order.earliest(value)
        if value in order.writers and earliest > self.earliest:
            self.earliest, self.by = earliest, read
        for replaced in order.replaced_by(value):
            if replaced in self.superseded:
                break
            self.superseded[replaced] = read

    def older(self, read: Operation, order: ValueOrder) -> Operation | None:
        """The read before it that surely showed something newer."""
        value = identity(read.value)
        if value not in order.writers:
            return None
        if order.latest(value) < self.earliest:
            return self.by
        return self.superseded.get(value)


def _going_back(reads: Sequence[Operation], order: ValueOrder) -> Iterator[Witness]:
    """Walk the reads of one key at one node in event order."""
    shown = _Shown()
    ended = sorted(reads, key=lambda read: read.complete_index or 0)
    position = 0
    for read in reads:
        while position < len(ended) and ended[position].precedes(read):
            shown.add(ended[position], order)
            position += 1
        newer = shown.older(read, order) if read.role == "replica" else None
        if newer is not None:
            yield _went_back(read, newer, order)


def _behind(reads: Sequence[Operation], orders: Orders) -> Iterator[Witness]:
    """Walk all reads at one node in event order: a value shown under one key limits every later read of another key."""
    reached, by = -1, None
    ended = sorted(reads, key=lambda read: read.complete_index or 0)
    position = 0
    for read in reads:
        while position < len(ended) and ended[position].precedes(read):
            shown = ended[position]
            earliest = orders[shown.key].earliest(identity(shown.value))
            if reached < earliest < NEVER:
                reached, by = earliest, shown
            position += 1
        if read.role == "replica" and by is not None and by.key != read.key:
            missed = _missed(read, reached, orders[read.key])
            if missed is not None:
                yield _was_behind(read, by, missed)


def _missed(read: Operation, reached: int, order: ValueOrder) -> Operation | None:
    """A write that surely replaced what `read` returned, and surely took effect before the event `reached`."""
    value = identity(read.value)
    writer = order.overwritten_by(value) if value in order.writers else None
    return writer.operation if writer is not None and writer.latest < reached else None


def _was_behind(read: Operation, shown: Operation, missed: Operation) -> Witness:
    written = value_order.told(missed)
    summary = (
        f"{told(read)}, although the node had shown {shown.value} under key {shown.key} before, "
        f"which was written after {written} had replaced it"
    )
    first = f"{written[:1].upper()}{written[1:]} under key {read.key} was confirmed"
    why = f"{first} before any client asked to write {shown.value} under {shown.key}."
    return _witness("went-back", read, [missed, shown, read], summary, (why,))


def _went_back(read: Operation, newer: Operation, order: ValueOrder) -> Witness:
    old, new = identity(read.value), identity(newer.value)
    writers = [writer.operation for value in (old, new) for writer in order.writers[value]]
    named = [operation for operation in writers if operation is not None][:4]
    ago = (read.invoke_ns - (newer.complete_ns or 0)) / 1e6
    summary = f"{told(read)}, although {ago:.1f} ms before it began the node had shown {newer.value}, which is newer"
    return _witness("went-back", read, [*named, newer, read], summary, (_why_newer(old, new, order),))


def _why_newer(old: Value, new: Value, order: ValueOrder) -> str:
    name = "nothing" if old is None else old
    if old in order.replaced_by(new):
        return (
            f"{new} was made from {name} by compare-and-set, and no other operation can have written {name}."
        )
    return f"Every write of {name} was over before any write of {new} can have taken effect."


def _stale_ms(read: Operation, order: ValueOrder) -> float:
    """For how long, at least, the value had been replaced when the read was asked; 0 if it need not have been."""
    value = identity(read.value)
    if value not in order.writers:
        return 0.0
    overwritten_ns = order.overwritten_ns(value)
    return 0.0 if overwritten_ns is None else max(0.0, (read.invoke_ns - overwritten_ns) / 1e6)


def _verdict(witnesses: Sequence[Witness], told: _Told, unanswered: int) -> Verdict:
    reads, asked, stale_ms_max = told.reads, told.reads + unanswered, round(told.stale_ms_max, 3)
    details: dict[str, Any] = {
        "replica_reads": reads,
        "asked": asked,
        "stale_reads": told.stale_reads,
        "stale_ms_max": stale_ms_max,
        "violations": len(witnesses),
        "vacuous": reads == 0,
        "findings": [],
    }
    if told.stale_reads:
        details["findings"] = [
            f"{told.stale_reads} of {reads} reads at replicas were stale, the worst by at least {stale_ms_max:.1f} ms"
        ]
    summary = f"reads at replicas ({reads}) never went back"
    if not reads:
        summary = f"nothing to judge: of {asked} reads asked of replicas none was answered"
    result: Result = "valid" if reads else "unknown"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)
