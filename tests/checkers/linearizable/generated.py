"""Long histories of one register as columns: clients that are always busy, a true register, a linear amount of work."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

import numpy

from checkers.history import Event, Header, History
from checkers.linearizable.columns import NEVER, NOTHING, Columns
from checkers.linearizable.search_kernels import OBSERVE, OVERWRITE, REFUSE, UPDATE

Row = tuple[int, int, int]


def history_of(registers: Sequence[Columns]) -> History:
    """The calls of each as operations on a key of its number; they alternate. Each has a process of its own."""
    moments = sorted(
        (rank, key, place, ends)
        for key, columns in enumerate(registers)
        for place, both in enumerate(zip(columns.invoke.tolist(), columns.complete.tolist(), strict=True))
        for ends, rank in enumerate(both)
        if rank < NEVER
    )
    numbers = {
        each: process for process, each in enumerate(sorted({(key, place) for _, key, place, _ in moments}))
    }
    events = [
        _event(index, numbers[key, place], str(key), registers[key], place, bool(ends))
        for index, (_, key, place, ends) in enumerate(moments)
    ]
    return History.of(Header(), events)


def _event(index: int, process: int, key: str, columns: Columns, place: int, ends: bool) -> Event:
    """0 is what was there before: nothing."""
    kind, old, new = (int(column[place]) for column in (columns.kind, columns.old, columns.new))
    f = {OBSERVE: "read", OVERWRITE: "write"}.get(kind, "cas")
    value: object = {"read": (old or None) if ends else None, "write": new or None}.get(f)
    if f == "cas":
        value = [old or None, max(new, 0) or None]
    how = ("fail" if kind == REFUSE else "ok") if ends else "invoke"
    error = "mismatch" if how == "fail" else None
    return Event(
        index=index, time_ns=index, type=how, process=process, f=f, key=key, value=value, error=error
    )


def columns(
    operations: int,
    clients: int,
    *,
    seed: int = 1,
    values: int = 5,
    unique: bool = False,
    cas: bool = True,
    crashed: int = 0,
    stale: bool = False,
) -> Columns:
    """`values` different values, or (`unique`) each written once. Code 0 is what there was before.

    `crashed` calls never return; about a third of them never happened either. `stale`: one read near the end shows 0.
    """
    chance = random.Random(seed)
    times = spans(chance, operations, clients)
    points = sorted(
        (start + (end - start) * chance.random(), place) for place, (start, end) in enumerate(times)
    )
    lost = set(chance.sample(range(operations), crashed)) if crashed else set()
    rows: list[Row] = [(OBSERVE, 0, NOTHING)] * operations
    state, fresh = 0, values
    for _, place in points:
        fresh += 1
        new = fresh if unique else chance.randint(1, values)
        rows[place], after = _row(chance, state, new, cas, values, place in lost)
        state = state if place in lost and chance.random() < 0.33 else after
    if stale:
        late = next(place for _, place in points[operations * 9 // 10 :] if rows[place][0] == OBSERVE)
        rows[late] = (OBSERVE, 0, NOTHING)
    return _columns(times, rows, lost, fresh + 1)


def spans(chance: random.Random, operations: int, clients: int) -> list[tuple[float, float]]:
    spans = []
    free = [(0.0, client) for client in range(clients)]
    for _ in range(operations):
        at, client = heapq.heappop(free)
        start = at + 0.2 * chance.random()
        end = start + 0.2 + chance.random()
        spans.append((start, end))
        heapq.heappush(free, (end, client))
    return spans


def _row(chance: random.Random, state: int, new: int, cas: bool, values: int, lost: bool) -> tuple[Row, int]:
    kind = chance.random() * (3 if cas else 2)
    if kind < 1 and not lost:
        return (OBSERVE, state, NOTHING), state
    if kind < 2:
        return (OVERWRITE, NOTHING, new), new
    old = state if chance.random() < 0.5 else chance.randint(1, values)
    if old != state and not lost:
        return (REFUSE, old, NOTHING), state
    if old == new:
        return (OBSERVE, old, NOTHING), state
    return (UPDATE, old, new), new if old == state else state


def _columns(spans: list[tuple[float, float]], rows: list[Row], lost: set[int], values: int) -> Columns:
    moments = [(start, place, 0) for place, (start, _) in enumerate(spans)]
    moments += [(end, place, 1) for place, (_, end) in enumerate(spans) if place not in lost]
    table = numpy.full((len(rows), 5), NEVER, dtype=numpy.int64)
    table[:, 2:] = rows
    for rank, (_, place, ends) in enumerate(sorted(moments)):
        table[place, ends] = rank
    table = table[table[:, 0].argsort()]
    invoke, complete, kind, old, new = (numpy.ascontiguousarray(column) for column in table.T)
    return Columns(invoke=invoke, complete=complete, kind=kind, old=old, new=new, values=values + 1)
