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
    """Columns of several registers as one. Raises ValueError if one has more than CALLS_MAX calls."""
    if (longest := max(map(len, registers), default=0)) > CALLS_MAX:
        # Compiled code does not see the end of an array.
        raise ValueError(f"expected at most {CALLS_MAX:,} calls of a register, got {longest:,}")
    ranked = [columns if is_dense(columns) else dense(columns) for columns in registers]
    values = numpy.array([columns.values for columns in ranked], dtype=numpy.int64)
    names = ("invoke", "complete", "kind", "old", "new")
    flat = {name: numpy.concatenate([getattr(columns, name) for columns in ranked]) for name in names}
    bounds = numpy.zeros(len(ranked) + 1, dtype=numpy.int64)
    numpy.cumsum([len(columns) for columns in ranked], out=bounds[1:])
    calls = Columns(**flat, values=int(values.max(initial=1)))
    return Many(calls=calls, bounds=bounds, values=values)


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
    # Two values a call at most, so it stays at most a quarter full: entries of other registers count as free.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Laid:
    """Calls of many registers as `search_kernels` reads them. Register r has the calls from bounds[r] to bounds[r + 1],
    events from three times its bound, and classes of crashed calls from klass_at[r]. All int64.
    """

    bounds: Array
    klass_at: Array
    sizes: Array
    """A row a register, see `layout_kernels.SIZES`."""
    events: Array
    ops: Array
    klass: Array
    crashed: Array


def _chunk(many: Many, first: int, end: int, configurations: int) -> Array:
    """The answers of `decide` for the registers from `first` to `end`."""
    results = _searched(_laid(many, first, end), configurations)
    answers = numpy.where(results[:, 0] == YES, 1, numpy.where(results[:, 0] == NO, 0, -1))
    return numpy.stack((answers, results[:, 2]), axis=1)


def _laid(many: Many, first: int, end: int) -> _Laid:
    begins, ends = int(many.bounds[first]), int(many.bounds[end])
    bounds, values = many.bounds[first : end + 1] - begins, many.values[first:end]
    calls = many.calls
    own = [column[begins:ends] for column in (calls.invoke, calls.complete, calls.kind, calls.old, calls.new)]
    invoke, complete = own[:2]
    registers, count = len(values), ends - begins
    klass = _empty(int(values.sum()) + registers + count, 5)
    laid = _Laid(
        bounds=bounds,
        klass_at=_empty(registers + 1),
        sizes=_empty(registers, layout_kernels.SIZES),
        events=_empty(3 * count),
        ops=_empty(count, search_kernels.OPS),
        klass=klass,
        crashed=_empty(count),
    )
    # Working space for the largest register, which all others use again.
    places, most = int(values.max(initial=0)) + 1, int(numpy.diff(bounds).max(initial=0))
    ranks = 1 + max(int(invoke.max(initial=0)), int(complete[complete < NEVER].max(initial=0)))
    asked, last, pairs = _empty(places), _empty(places), _empty(2 * most + 2, 3)
    at, ending, free = _empty(ranks), _empty(ranks), _empty(most + 1)
    load(layout_kernels).lay_out_many(
        bounds, values, *own, asked, last, pairs, at, ending, free,
        laid.ops, laid.klass, laid.events, laid.crashed, laid.sizes,
    )  # fmt: skip
    laid.klass_at[:-1], laid.klass_at[-1] = laid.sizes[:, layout_kernels.KLASS_AT], len(klass)
    return laid


def _searched(laid: _Laid, configurations: int) -> Array:
    """Of each register: the answer, the call that fails, the most configurations. All share working space."""
    bits = search_kernels.BITS
    rows = _empty(3, ROWS, search_kernels.MASKS + 2)
    heads = numpy.full((2, 2 * ROWS, 2), -1, dtype=numpy.int64)
    nodes, misses = _empty(NODES, 3), _empty(1, 2)
    regs, masks = numpy.zeros(search_kernels.REGS, dtype=numpy.int64), numpy.zeros((2, 1), dtype=numpy.int64)
    pending, by_bit = (numpy.zeros(shape, dtype=numpy.int64) for shape in ((3, CALLS_MAX + 1), bits + 1))
    table = numpy.full((1, 3), -1, dtype=numpy.int64)
    results = numpy.zeros((len(laid.sizes), 3), dtype=numpy.int64)
    search = search_kernels.Search(
        regs, laid.events, laid.ops, laid.klass, pending, masks, by_bit, rows, heads, nodes, table, misses
    )
    load(search_kernels).advance_many(
        laid.bounds, laid.klass_at, laid.sizes, laid.crashed, search, STEPS, configurations, results
    )
    return results


def _empty(*shape: int) -> Array:
    return numpy.empty(shape, dtype=numpy.int64)
