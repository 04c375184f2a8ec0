"""Many small registers at once: two compiled passes over some thousand calls, in place of a search for each.

A record of a million operations on fifty thousand keys would spend its time between the searches. Here the calls of
many registers stand behind each other in one set of columns. A register that is too large for that (more calls at once
than a word has bits, more steps than a few) is left undecided, and `forward` searches it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.compiled import load
from checkers.limits import look
from checkers.linearizable import layout_kernels, search_kernels
from checkers.linearizable.calls import Registers
from checkers.linearizable.columns import Columns, dense, is_dense, top
from checkers.linearizable.search import Limits
from checkers.linearizable.search_kernels import NEVER, NO, OVERWRITE, REFUSE, YES

Array = Any  # numpy's, of int64
CALLS_MAX = 1_000  # of one register; longer ones are worth a search of their own
CHUNK = 50_000  # calls in one pass
ROWS = 2_048
NODES = 1 << 15
STEPS = 50_000  # of the search of one register; all registers of a chunk together take well under a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """Calls on many registers, one behind the other: register r has those from bounds[r] to bounds[r + 1], in order of
    invocation, with ranks and values that count from 0 within it; it has values[r] values. All int64.
    """

    calls: Columns
    bounds: Array
    values: Array

    def __len__(self) -> int:
        return len(self.values)


def joined(registers: Sequence[Columns]) -> Many:
    """Columns of several registers as one."""
    ranked = [columns if is_dense(columns) else dense(columns) for columns in registers]
    values = numpy.array([columns.values for columns in ranked], dtype=numpy.int64)
    names = ("invoke", "complete", "kind", "old", "new")
    flat = {name: numpy.concatenate([getattr(columns, name) for columns in ranked]) for name in names}
    bounds = numpy.zeros(len(ranked) + 1, dtype=numpy.int64)
    numpy.cumsum([len(columns) for columns in ranked], out=bounds[1:])
    return Many(
        calls=Columns(**flat, values=int(values.max(initial=1))), bounds=bounds, values=values
    )  # fmt: skip


def regrouped(registers: Registers, order: Array, bounds: Array) -> Many:
    """The calls at `order`, of registers that begin at `bounds` in it, none of more than CALLS_MAX calls."""
    key = numpy.repeat(numpy.arange(len(bounds) - 1), numpy.diff(bounds))
    invoke, complete = registers.invoke[order], registers.complete[order]
    first = invoke.min(initial=NEVER)
    columns = Columns(
        invoke=invoke - first, complete=numpy.where(complete < NEVER, complete - first, NEVER),
        kind=registers.kind[order], old=registers.old[order], new=registers.new[order], values=0,
    )  # fmt: skip
    if not is_dense(columns):
        columns = dense(columns)
    at = numpy.full(top(columns) + 1, -1, dtype=numpy.int64)
    values = numpy.empty(len(bounds) - 1, dtype=numpy.int64)
    table = numpy.full((8 * CALLS_MAX, 3), -1, dtype=numpy.int64)
    begun = numpy.zeros(len(values), dtype=numpy.int64)
    load(layout_kernels).regroup(
        key, columns.invoke, columns.complete, columns.old, columns.new, at, begun, bounds, table, values
    )
    columns.old[columns.kind == OVERWRITE] = -1
    columns.new[columns.kind <= REFUSE] = -1
    return Many(calls=columns, bounds=bounds, values=values)


def decide(many: Many, limits: Limits) -> Array:
    """Of each register: 1 if an order exists, 0 if none does, -1 if undecided; and the most configurations at once.

    Shape (registers, 2). Raises OutOfTime.
    """
    answers = numpy.full((len(many), 2), -1, dtype=numpy.int64)
    for first, end in _chunks(many.bounds):
        look()
        answers[first:end] = _chunk(many, first, end, limits.configurations)
    return answers


def _chunks(bounds: Array) -> Iterable[tuple[int, int]]:
    """Runs of registers of about CHUNK calls."""
    first, registers = 0, len(bounds) - 1
    while first < registers:
        end = int(numpy.searchsorted(bounds, bounds[first] + CHUNK, side="right")) - 1
        end = min(max(end, first + 1), registers)
        yield first, end
        first = end


def _chunk(many: Many, first: int, end: int, configurations: int) -> Array:
    begins, ends = int(many.bounds[first]), int(many.bounds[end])
    bounds = many.bounds[first : end + 1] - begins
    values = many.values[first:end]
    calls = many.calls
    own = [column[begins:ends] for column in (calls.invoke, calls.complete, calls.kind, calls.old, calls.new)]
    count, most = ends - begins, int(numpy.diff(bounds).max(initial=0))
    ranks = 1 + max(int(own[0].max(initial=0)), int(own[1][own[1] < NEVER].max(initial=0)))
    places = int(values.max(initial=0)) + 1
    asked, last, at, ending, free, pairs = (
        numpy.empty(size, dtype=numpy.int64)
        for size in (places, places, ranks, ranks, most + 1, (2 * most + 2, 3))
    )
    ops = numpy.empty((count, search_kernels.OPS), dtype=numpy.int64)
    klass = numpy.empty((int(values.sum()) + len(values) + count, 5), dtype=numpy.int64)
    events, crashed = numpy.empty(3 * count, dtype=numpy.int64), numpy.empty(count, dtype=numpy.int64)
    sizes = numpy.empty((len(values), layout_kernels.SIZES), dtype=numpy.int64)
    load(layout_kernels).lay_out_many(
        bounds, values, *own, asked, last, pairs, at, ending, free, ops, klass, events, crashed, sizes
    )
    results = numpy.zeros((len(values), 3), dtype=numpy.int64)
    klass_at = numpy.append(sizes[:, layout_kernels.KLASS_AT], len(klass))
    _search(bounds, klass_at, sizes, events, ops, klass, crashed, configurations, results)
    answers = numpy.where(results[:, 0] == YES, 1, numpy.where(results[:, 0] == NO, 0, -1))
    return numpy.stack((answers, results[:, 2]), axis=1)


def _search(
    bounds: Array, klass_at: Array, sizes: Array, events: Array, ops: Array, klass: Array, crashed: Array,
    configurations: int, results: Array,
) -> None:  # fmt: skip
    """Search all registers; each uses the same working arrays again."""
    kernels = load(search_kernels)
    bits = search_kernels.BITS
    rows = numpy.empty((3, ROWS, search_kernels.MASKS + 2), dtype=numpy.int64)
    heads = numpy.full((2, 2 * ROWS, 2), -1, dtype=numpy.int64)
    nodes, misses = (numpy.empty(shape, dtype=numpy.int64) for shape in ((NODES, 3), (1, 2)))
    regs, masks = numpy.zeros(search_kernels.REGS, dtype=numpy.int64), numpy.zeros((2, 1), dtype=numpy.int64)
    pending, by_bit = (numpy.zeros(shape, dtype=numpy.int64) for shape in ((3, CALLS_MAX + 1), bits + 1))
    table = numpy.full((1, 3), -1, dtype=numpy.int64)
    kernels.advance_many(
        bounds, klass_at, sizes, events, ops, klass, crashed, regs, pending, masks, by_bit, rows, heads, nodes, table,
        misses, STEPS, configurations, results,
    )  # fmt: skip
