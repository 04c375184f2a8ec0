"""The requests of clients, with their answers, as columns: transactions, and reads of one master's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from checkers.history.operation import Operation

Array = Any  # numpy's

OK, FAIL, INFO = range(3)
TYPES: Mapping[str, int] = {"ok": OK, "fail": FAIL, "info": INFO}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Operations with a transaction, and reads that were answered without one; in order of invocation.

    type         OK, FAIL or INFO
    transaction  number of the id; -1: a read of a master's own state
    node         number in `nodes`
    invoke, complete, invoke_ns, complete_ns   indexes of events, and times; -1 where nothing was recorded
    read         key and value of an operation, by its place here
    """

    nodes: Sequence[str | None]
    type: Array
    transaction: Array
    node: Array
    invoke: Array
    complete: Array
    invoke_ns: Array
    complete_ns: Array
    read: Callable[[int], tuple[str | None, Any]]

    def __len__(self) -> int:
        return len(self.type)

    @cached_property
    def with_one(self) -> Array:
        """The operations with a transaction."""
        return numpy.flatnonzero(self.transaction >= 0)

    @cached_property
    def first(self) -> Array:
        """The first operation of each transaction that was asked for."""
        return self._only(self.with_one[::-1])[::-1]

    @cached_property
    def last(self) -> Array:
        """The last operation of each transaction that was asked for."""
        return self._only(self.with_one)

    def _only(self, operations: Array) -> Array:
        """Of these operations the last one of each transaction."""
        names = self.transaction[operations]
        last = numpy.full(int(names.max(initial=-1)) + 1, -1, dtype=numpy.int64)
        last[names] = operations
        return operations[last[names] == operations]

    def events(self, operation: int) -> tuple[int, ...]:
        invoke, complete = int(self.invoke[operation]), int(self.complete[operation])
        return (invoke,) if complete < 0 else (invoke, complete)

    def on(self, node: str) -> Array:
        """The operations that were asked of this master."""
        numbers = [number for number, name in enumerate(self.nodes) if name == node]
        return numpy.isin(self.node, numbers)


def asked_of(operations: Iterable[Operation], number_of: Mapping[str, int]) -> Asked:
    """Of operations as objects."""
    kept = [
        operation
        for operation in operations
        if operation.transaction is not None or (operation.type == "ok" and operation.f == "read")
    ]
    nodes = {name: number for number, name in enumerate(dict.fromkeys(operation.node for operation in kept))}

    def read(place: int) -> tuple[str | None, Any]:
        return kept[place].key, kept[place].value

    def column(values: Iterable[int | None]) -> Array:
        return numpy.array([-1 if value is None else value for value in values], dtype=numpy.int64)

    return Asked(
        nodes=[*nodes],
        type=column(TYPES[operation.type] for operation in kept),
        transaction=column(
            None if operation.transaction is None else number_of[operation.transaction] for operation in kept
        ),
        node=column(nodes[operation.node] for operation in kept),
        invoke=column(operation.invoke_index for operation in kept),
        complete=column(operation.complete_index for operation in kept),
        invoke_ns=column(operation.invoke_ns for operation in kept),
        complete_ns=column(operation.complete_ns for operation in kept),
        read=read,
    )
