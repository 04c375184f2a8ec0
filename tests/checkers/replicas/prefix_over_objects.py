"""`checkers.replicas.prefix` over objects, read by read: the slow, obvious twin of the rule over columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history.history import History, by_key
from checkers.history.members import answered_by
from checkers.history.operation import Operation, both
from checkers.history.value_kernels import NEVER
from checkers.history.value_order import written_words as told_write
from checkers.history.values import Value, identity, value_words
from checkers.replicas import prefix
from checkers.replicas.prefix import _witness, answer
from checkers.verdict import Witness
from tests.checkers.history.value_order import ValueOrder

Orders = dict[str | None, ValueOrder]


def judged(history: History) -> tuple[list[Witness], prefix._Counts]:
    """The witnesses, and the counts of all reads."""
    confirmed = [each for each in history.select(f="read", outcome="ok") if each.mode in prefix.MODES]
    replica_reads = [operation for operation in confirmed if operation.role == "replica"]
    if not replica_reads:
        return [], prefix._Counts()
    orders = _orders(history, confirmed)
    witnesses: list[Witness] = []
    for read in replica_reads:
        witness = impossible_value(read, orders[read.key])
        if witness is not None:
            witnesses.append(witness)
    witnesses.extend(_early_sets(history, orders))
    for reads in _at_one_node(history, confirmed).values():
        witnesses.extend(_going_back(reads, orders[reads[0].key]))
    for reads in _of_each_node(history, confirmed):
        witnesses.extend(_behind(reads, orders))
    stale_ms = [stale for read in replica_reads if (stale := _stale_ms(read, orders[read.key])) > 0]
    return witnesses, prefix._Counts(len(replica_reads), len(stale_ms), max(stale_ms, default=0.0))


def _orders(history: History, confirmed: Sequence[Operation]) -> Orders:
    for each in history.select(f=("cas",)):
        both(each)
    writes = by_key(history.select(f=("write", "cas")))
    reads = by_key(confirmed)
    return {
        key: ValueOrder.of(writes.get(key, ()), reads.get(key, ()), start=identity(history.start.of(key)))
        for key in {**writes, **reads}
    }


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
    return _witness(rule, read, [*named, read], f"{answer(read)}, {why}", ())


def _early_sets(history: History, orders: Orders) -> Iterator[Witness]:
    """Compare-and-sets that saw a value from the future."""
    found = [(writer.operation, order) for order in orders.values() for writer in order.early]
    for cas, order in sorted(found, key=lambda pair: pair[0].invoke_index if pair[0] else -1):
        assert cas is not None
        writers = [writer.operation for writer in order.writers[identity(both(cas)[0])]]
        named = [operation for operation in writers if operation is not None][:1]
        why = f"{answer(cas)}, before that can have been written"
        yield _witness("compare-from-the-future", cas, [*named, cas], why, ())


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
        if self.by is not None and order.latest(value) < self.earliest and identity(self.by.value) != value:
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
    written = told_write(missed)
    summary = (
        f"{answer(read)}, although the node had shown {value_words(shown.value)} under key {shown.key} before, "
        f"which was written after {written} had replaced it"
    )
    first = f"{written[:1].upper()}{written[1:]} under key {read.key} was confirmed"
    why = f"{first} before any client asked to write {value_words(shown.value)} under {shown.key}."
    return _witness("went-back", read, [missed, shown, read], summary, (why,))


def _went_back(read: Operation, newer: Operation, order: ValueOrder) -> Witness:
    old, new = identity(read.value), identity(newer.value)
    writers = [writer.operation for value in (old, new) for writer in order.writers[value]]
    named = [operation for operation in writers if operation is not None][:4]
    ago = (read.invoke_ns - (newer.complete_ns or 0)) / 1e6
    before_it = f"{ago:.1f} ms before it began the node had shown {value_words(newer.value)}, which is newer"
    summary = f"{answer(read)}, although {before_it}"
    return _witness(
        "went-back", read, [*named, newer, read], summary, (_why_newer(read.value, newer.value, order),)
    )


def _why_newer(old: Any, new: Any, order: ValueOrder) -> str:
    name, next_ = value_words(old), value_words(new)
    if identity(old) in order.replaced_by(identity(new)):
        return f"{next_} was made from {name} by compare-and-set, and no other operation can have written {name}."
    return f"Every write of {name} was over before any write of {next_} can have taken effect."


def _stale_ms(read: Operation, order: ValueOrder) -> float:
    """For how long, at least, the value had been replaced when the read was asked; 0 if it need not have been."""
    value = identity(read.value)
    if value not in order.writers:
        return 0.0
    overwritten_ns = order.overwritten_ns(value)
    return 0.0 if overwritten_ns is None else max(0.0, (read.invoke_ns - overwritten_ns) / 1e6)
