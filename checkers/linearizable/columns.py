"""Calls as columns: the arrays that the kernels read in place of objects.

A *rank* is the number of an event; only the order of ranks matters. A call that may take effect at any later time has
NEVER as its completion. Values are *codes*: small numbers, 0 for what there is before the first call. A register's call
is (kind, old, new): it is legal where `old` is the value (REFUSE: where it is not), and leaves `new`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from checkers.history.line_kernels import ABSENT
from checkers.linearizable.calls import Registers
from checkers.linearizable.models import State
from checkers.linearizable.search import Call
from checkers.linearizable.search_kernels import (
    NEVER,
    OBSERVE,
    OVERWRITE,
    REFUSE,
    UPDATE,
)

Array = Any  # numpy's
NOTHING = -1  # in `old` or `new`: there is none
DENSE = 16  # ranks up to so many times the number of calls are put in order by counting

KINDS = {"read": OBSERVE, "is": OBSERVE, "is-not": REFUSE, "write": OVERWRITE, "cas": UPDATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Calls on one object, in order of invocation: int64 arrays of one length."""

    invoke: Array
    complete: Array
    kind: Array
    old: Array
    new: Array
    values: int

    def __len__(self) -> int:
        return len(self.invoke)


def register_columns(calls: Sequence[Call], starts: Sequence[State]) -> tuple[Columns, dict[State, int]]:
    """A register's calls (in any order; columns keep it), and the code of each value. `starts` come first.

    Ranks may be tied.
    """
    codes: dict[State, int] = {}
    for state in starts:
        codes.setdefault(state, len(codes))
    table = numpy.empty((len(calls), 5), dtype=numpy.int64)
    for place, call in enumerate(calls):
        action = call.action
        kind = KINDS[action.word]
        first = codes.setdefault(action.values[0], len(codes))
        if kind == UPDATE:
            second = codes.setdefault(action.values[1], len(codes))
            old, new = first, second
        elif kind == OVERWRITE:
            old, new = NOTHING, first
        else:
            old, new = first, NOTHING
        table[place] = (call.invoke, NEVER if call.complete is None else call.complete, kind, old, new)
    invoke, complete, kinds, olds, news = (numpy.ascontiguousarray(column) for column in table.T)
    columns = Columns(
        invoke=invoke, complete=complete, kind=kinds, old=olds, new=news, values=max(1, len(codes))
    )
    return columns, codes


def is_dense(columns: Columns) -> bool:
    """Whether ranks are so close together that they can be put in order by counting."""
    return len(columns) == 0 or top(columns) <= DENSE * len(columns)


def top(columns: Columns) -> int:
    """The last rank."""
    last = int(columns.complete.max(initial=0))
    if last >= NEVER:
        last = int(columns.complete[columns.complete < NEVER].max(initial=0))
    return max(int(columns.invoke.max(initial=0)), last)


def dense(columns: Columns) -> Columns:
    """The same with ranks that count from 0, all different: of equal ones invocations come first."""
    live = numpy.flatnonzero(columns.complete < NEVER)
    count = len(columns)
    # Stable, with invocations in front: calls that share an event overlap.
    order = numpy.argsort(numpy.concatenate((columns.invoke, columns.complete[live])), kind="stable")
    ranks = numpy.empty(len(order), dtype=numpy.int64)
    ranks[order] = numpy.arange(len(order))
    complete = columns.complete.copy()
    complete[live] = ranks[count:]
    return replace(columns, invoke=ranks[:count], complete=complete)


def tied(columns: Columns) -> bool:
    """Whether some ranks are equal: of calls that one operation stands for, such as a drain."""
    live = columns.complete < NEVER
    ranks = numpy.concatenate((columns.invoke, columns.complete[live]))
    return len(numpy.unique(ranks)) < len(ranks)


def of_registers(registers: Registers) -> Columns:
    """The calls, all on one register."""
    kind = registers.kind
    codes, values = _codes(numpy.concatenate((registers.old, registers.new)))
    old, new = codes[: len(kind)], codes[len(kind) :]
    return Columns(
        invoke=registers.invoke, complete=registers.complete, kind=kind,
        old=numpy.where(kind == OVERWRITE, NOTHING, old), new=numpy.where(kind <= REFUSE, NOTHING, new), values=values,
    )  # fmt: skip


def _codes(values: Array) -> tuple[Array, int]:
    """Numbers for values, 0 for ABSENT, and how many there are."""
    present = values != ABSENT
    if not present.any():
        return numpy.zeros(len(values), dtype=numpy.int64), 1
    least, most = int(values[present].min()), int(values[present].max())
    if most - least <= 4 * len(values):
        return numpy.where(present, values - least + 1, 0), most - least + 2
    different, codes = numpy.unique(values, return_inverse=True)
    absent = int(different[0] != ABSENT)  # ABSENT is the least code
    return codes.astype(numpy.int64) + absent, len(different) + absent
