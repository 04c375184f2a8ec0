"""Calls as columns: what the kernels read in place of objects.

A *rank* is the number of an event; only the order of ranks matters. A call that may take effect at any later time has
NEVER as its completion. Values are *codes*: small numbers, 0 for what there is before the first call. A register's call
is (kind, old, new): it is legal where `old` is the value (REFUSE: where it is not), and leaves `new`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.linearizable.models import State
from checkers.linearizable.search import Call
from checkers.linearizable.search_kernels import (
    INVOKE,
    NEVER,
    OBSERVE,
    OVERWRITE,
    REFUSE,
    RETIRE,
    RETURN,
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
    """A register's calls (in any order; columns keep it), and the code of each value. `starts` come first."""
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


def in_order(rank: Array, event: Array) -> Array:
    """`event` by ascending rank; ranks are all different."""
    top = int(rank.max(initial=0)) + 1
    if top <= DENSE * len(rank):
        places = numpy.full(top, -1, dtype=numpy.int64)
        places[rank] = event
        return places[places >= 0]
    return event[numpy.argsort(rank)]


def events_of(columns: Columns, taken: Array) -> Array:
    """Invocations and returns of the calls numbered `taken`, in order of rank, as the kernels read them."""
    invoke, complete = columns.invoke[taken], columns.complete[taken]
    live = complete < NEVER
    rank = numpy.concatenate((invoke, complete[live]))
    event = numpy.concatenate(((taken << 2) | INVOKE, (taken[live] << 2) | RETURN))
    return in_order(rank, event)


def canonical(columns: Columns) -> Columns:
    """The same calls with all values that no call asks about being one: nobody can tell them apart."""
    asked = numpy.zeros(columns.values + 1, dtype=bool)
    asked[columns.old] = True  # NOTHING is the last place
    anonymous = columns.values
    new = numpy.where((columns.new >= 0) & ~asked[columns.new], anonymous, columns.new)
    return Columns(
        invoke=columns.invoke, complete=columns.complete, kind=columns.kind, old=columns.old, new=new,
        values=columns.values + 1,
    )  # fmt: skip


def last_asked(columns: Columns) -> Array:
    """By value: the rank from which on nobody can see it any more (-1: nobody can at all).

    A crashed update sees it for as long as anybody sees what it leaves.
    """
    last = numpy.full(columns.values, -1, dtype=numpy.int64)
    crashed = columns.complete >= NEVER
    sees = ((columns.kind == OBSERVE) | (columns.kind == UPDATE)) & ~crashed
    numpy.maximum.at(last, columns.old[sees], columns.complete[sees])
    _see_all_but_one(last, columns, (columns.kind == REFUSE) & ~crashed)
    links = numpy.unique(
        numpy.stack((columns.old, columns.new), axis=1)[crashed & (columns.kind == UPDATE)], axis=0
    )
    while len(links):
        before = last.copy()
        numpy.maximum.at(last, links[:, 0], last[links[:, 1]])
        if numpy.array_equal(before, last):
            break
    return last


def _see_all_but_one(last: Array, columns: Columns, refuses: Array) -> None:
    """A refused compare sees every value but its `old`."""
    if not refuses.any():
        return
    old, complete = columns.old[refuses], columns.complete[refuses]
    latest = numpy.full(columns.values, -1, dtype=numpy.int64)
    numpy.maximum.at(latest, old, complete)
    best = int(latest.argmax())
    second = int(numpy.delete(latest, best).max(initial=-1))
    others = numpy.full(columns.values, latest[best])
    others[best] = second
    numpy.maximum(last, others, out=last)


def with_retirements(events: Array, columns: Columns, taken: Array, last: Array) -> Array:
    """The events, and after the last at which anybody could see what a class of crashed calls leaves, its end."""
    crashed = taken[columns.complete[taken] >= NEVER]
    _, first = numpy.unique(columns.new[crashed] * 4 + columns.kind[crashed], return_index=True)
    ops: list[int] = []
    for op in crashed[first]:
        alike = crashed[
            (columns.new[crashed] == columns.new[op]) & (columns.kind[crashed] == columns.kind[op])
        ]
        _, each = numpy.unique(columns.old[alike], return_index=True)
        ops.extend(int(other) for other in alike[each] if last[columns.new[other]] < NEVER)
    if not ops:
        return events
    chosen = numpy.array(ops, dtype=numpy.int64)
    returned = (events & 3) == RETURN
    ranks = numpy.where(returned, columns.complete[events >> 2], columns.invoke[events >> 2])
    places = numpy.searchsorted(ranks, last[columns.new[chosen]], side="right")
    return numpy.insert(events, places, (chosen << 2) | RETIRE)
