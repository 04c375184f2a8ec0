"""Registers on which every value is written once are decided by zones (Gibbons, Korach: Testing shared memories, 1997).

The write of a value and its reads are a *cluster*: no other write can stand between them. A cluster reaches from its
first return to its last invocation: its *zone*, which is forward if these come in that order, else backward. An order
exists exactly if every read's value was written before the read returned, no two forward zones overlap, and no backward
zone lies within a forward one. Put differently: no two clusters must each begin before the other ends, which is all
that the proof of a no has to show.

- The value before the first write is a cluster that began before everything.
- A crashed write never returns. If it is read, the first reader's return bounds its cluster; if not, it is left out.
  That holds because no call here observes that a value is *not* there: zones do not judge a refused compare-and-set,
  nor any other update.
- With ranks that are numbers of events, sorting is counting: all of it is linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from checkers.compiled import load
from checkers.linearizable import zone_kernels
from checkers.linearizable.columns import Columns, dense, is_dense, top
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE
from checkers.linearizable.zone_kernels import CONFLICT, FITS, FUTURE, NEVER_WRITTEN, WRITTEN_TWICE

Array = Any  # numpy's
REASONS = {CONFLICT: "conflict", NEVER_WRITTEN: "never-written", FUTURE: "future"}


@dataclass(frozen=True, slots=True)
class Zones:
    """The result of zones for a register: an order of calls, or the codes of values that contradict each other."""

    order: Array | None = None
    reason: str = ""
    values: tuple[int, ...] = ()


def apply_to(columns: Columns) -> bool:
    """Whether there are only reads and writes (that no value is written twice is found on the way)."""
    return bool(((columns.kind == OBSERVE) | (columns.kind == OVERWRITE)).all())


def decide(columns: Columns, *, with_order: bool = True) -> Zones | None:
    """The verdict of zones; None if some value is written twice. Calls must stand in order of invocation."""
    kernels = load(zone_kernels, len(columns))
    columns = columns if is_dense(columns) else dense(columns)
    first_return = numpy.full(columns.values, NEVER, dtype=numpy.int64)
    last_invoke, writer = (numpy.full(columns.values, -1, dtype=numpy.int64) for _ in range(2))
    calls = (columns.invoke, columns.complete, columns.kind, columns.old, columns.new)
    if kernels.clusters(*calls, first_return, last_invoke, writer) == WRITTEN_TWICE:
        return None
    at = numpy.full(top(columns) + 1, -1, dtype=numpy.int64)
    sequence = numpy.empty(columns.values + 1, dtype=numpy.int64)
    contents = numpy.zeros(3, dtype=numpy.int64)
    answer = kernels.sweep(columns.invoke, first_return, last_invoke, writer, at, sequence, contents)
    if answer != FITS:
        return Zones(reason=REASONS[answer], values=tuple(dict.fromkeys(contents[:2].tolist())))
    if not with_order:
        return Zones()
    start = numpy.zeros(columns.values, dtype=numpy.int64)
    order = numpy.empty(len(columns), dtype=numpy.int64)
    count = kernels.lay_out(*calls[1:4], writer, sequence, contents[2], start, order)
    return Zones(order=order[:count])


def members(columns: Columns, value: int) -> list[int]:
    """The calls that determine a cluster's zone: its write, its first return and its last invocation."""
    of_value = numpy.flatnonzero(
        (columns.new == value) | ((columns.old == value) & (columns.complete < NEVER))
    )
    if not len(of_value):
        return []
    writes = of_value[columns.kind[of_value] == OVERWRITE]
    # Any two zones conflict by these calls alone, so they are enough for a proof.
    first = of_value[columns.complete[of_value].argmin()]
    last = of_value[columns.invoke[of_value].argmax()]
    return sorted({*writes.tolist(), int(first), int(last)})
