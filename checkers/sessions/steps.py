"""The reads and writes of every process on one key, in its own order.

An operation becomes a step if it surely took effect: it was answered ok, or it is a write of unknown outcome and
a read showed its value. The process never learnt of such a write, so its later operations need not come after it. An
unanswered compare-and-set of a value with itself is no step, because no read could show that it took effect.
Refused operations are not steps; a refused compare-and-set does not count as a read of the value.

A key is judged only if no value was written to it twice, nor the first one again: then a read says which write it
observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy

from checkers.history.columns import Columns
from checkers.history.history import History, by_key
from checkers.history.line_kernels import ABSENT, FAIL
from checkers.history.operation import Operation, leaves, same_both
from checkers.history.value_order import are_writes
from checkers.history.value_rows import numbered
from checkers.history.values import Value, identity

Array = Any  # numpy's
Reads = Callable[[str | None, str | None], bool]


class Step(NamedTuple):
    """`read` and `wrote` are tuples of no or one value; a compare-and-set has both."""

    operation: Operation
    read: tuple[Value, ...]
    wrote: tuple[Value, ...]

    @property
    def sure(self) -> bool:
        """The process knows that it happened."""
        return self.operation.type == "ok"


@dataclass(slots=True)
class Key:
    """One key: the steps of each process, the writer of each value, and reads of values that cannot have been there."""

    key: str | None
    start: Value = None
    """Its value before the first write; None: nothing."""
    sessions: dict[int, list[Step]] = field(default_factory=dict)
    writers: dict[Value, Operation] = field(default_factory=dict)
    failed: dict[Value, Operation] = field(default_factory=dict)
    impossible: list[Operation] = field(default_factory=list)
    observed: int = 0
    repeated: str = ""
    """Why a read does not say which write it observed."""


def all_but_dirty(role: str | None, mode: str | None) -> bool:
    """The reads that are judged by default, wherever they were served."""
    return mode != "dirty"


def keys_of(history: History, reads: Reads) -> list[Key]:
    """Every key that register operations are about. Raises ModelError for a cas without its two values."""
    chosen = history.select(f=("read", "write", "cas"))
    start = history.start
    return [
        _key(Key(key, identity(start.of(key))), operations, reads)
        for key, operations in by_key(chosen).items()
    ]


def _key(key: Key, operations: Sequence[Operation], reads: Reads) -> Key:
    for operation in operations:  # all writers first: a read may stand before the write that it shows
        if operation.f != "read":
            _note_writer(key, operation)
    shown = _with_replaced(set(_shown(operations, reads)), operations)
    for operation in operations:
        step = _step(operation, shown, reads)
        if step is None:
            continue
        key.observed += len(step.read)
        if any(value != key.start and value not in key.writers for value in step.read):
            key.impossible.append(operation)
        else:
            key.sessions.setdefault(operation.process, []).append(step)
    return key


def repeated_keys(columns: Columns) -> Array:
    """The codes of the keys with `Key.repeated`, by columns: values and starts must be numbers, or nothing."""
    may_write = are_writes(columns) & (columns.type != FAIL)
    may_write &= (columns.f != columns.code("cas")) | (columns.old != columns.new)
    places = numpy.flatnonzero(may_write)
    number, keys = numbered(columns.key[places], columns.new[places])
    to_nothing = columns.key[places[columns.new[places] == ABSENT]]
    return numpy.unique(
        numpy.concatenate((keys[numpy.bincount(number, minlength=len(keys)) > 1], to_nothing))
    )


def written(operation: Operation) -> Value:
    """The value that a write or cas would leave."""
    return identity(leaves(operation))


def _note_writer(key: Key, operation: Operation) -> None:
    value = written(operation)
    if operation.f == "cas" and same_both(operation)[0] == value:
        return
    if operation.type == "fail":
        key.failed.setdefault(value, operation)
    elif value in key.writers:
        key.repeated = "a value was written twice"
    elif value == key.start:
        key.repeated = key.repeated or "the value from before the first write was written"
    else:
        key.writers[value] = operation


def _shown(operations: Iterable[Operation], reads: Reads) -> Iterable[Value]:
    """Values that an operation surely observed."""
    for operation in operations:
        if operation.type != "ok":
            continue
        if operation.f == "cas":
            yield same_both(operation)[0]
        elif operation.f == "read" and reads(operation.role, operation.mode):
            yield identity(operation.value)


def _with_replaced(shown: set[Value], operations: Iterable[Operation]) -> set[Value]:
    """And the values that compare-and-sets of unknown outcome replaced, if a read showed the new value."""
    replaced = {
        new: old
        for old, new in (
            same_both(operation)
            for operation in operations
            if operation.f == "cas" and operation.type == "info"
        )
        if old != new
    }
    left = [value for value in replaced if value in shown]
    while left:
        old = replaced[left.pop()]
        if old not in shown and old in replaced:
            left.append(old)
        shown.add(old)
    return shown


def _step(operation: Operation, shown: set[Value], reads: Reads) -> Step | None:
    if operation.f == "read":
        if operation.type != "ok" or not reads(operation.role, operation.mode):
            return None
        return Step(operation, (identity(operation.value),), ())
    new = written(operation)
    old = (same_both(operation)[0],) if operation.f == "cas" else ()
    if operation.type == "fail" or (operation.type == "info" and (new not in shown or new in old)):
        return None
    return Step(operation, old, () if new in old else (new,))
