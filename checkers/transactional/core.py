"""A few transactions of a history without an order that have no order themselves: few enough for a person to read.

A part of a history is an execution of what is left of one, if reads that show a write from outside the part are left
out: then they say nothing. So if the whole is possible, its parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy

from checkers.transactional.append import Analysis
from checkers.transactional.columns import FAIL, NIL, OK, WRITE, Columns, Workload

TRANSACTIONS_MAX = 500
TRIES = 300


def smallest(
    columns: Columns,
    workload: Workload,
    known: Analysis,
    is_refuted: Callable[[Columns], bool],
    hint: Collection[int] = (),
) -> list[int]:
    """Numbers of transactions that are refuted by themselves. Without any one of them the rest is possible,
    unless there were too many to try. `hint`: transactions that are refuted by themselves, if the search noted them.
    """
    sources = _sources(columns, workload)

    def is_enough(chosen: Sequence[int]) -> bool:
        return bool(chosen) and is_refuted(part_of(columns, chosen, sources))

    current = sorted(hint)
    # The search knew more than the part has: reads that show writes from outside the part are left out of it.
    if not is_enough(current):
        current = numpy.flatnonzero(known.committed == 1).tolist()
    if len(current) > TRANSACTIONS_MAX:
        return current
    tries, size = TRIES, 1 if len(current) == len(hint) else max(1, len(current) // 2)
    while tries > 0:
        place, smaller = 0, False
        while place < len(current) and tries > 0:
            rest = current[:place] + current[place + size :]
            tries -= 1
            if is_enough(rest):
                current, smaller = rest, True
            else:
                place += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return current


def _sources(columns: Columns, workload: Workload) -> list[set[int]]:
    """By micro-operation, the transactions that made the writes which it shows, or one of which it shows.

    A read of a register behind an own write of that value shows this write (see `candidates`).
    """
    last: dict[tuple[int, int], int] = {}
    writers: dict[tuple[int, int], set[int]] = {}
    for micro, (f, key, value) in enumerate(
        zip(columns.f.tolist(), columns.key.tolist(), columns.value.tolist(), strict=True)
    ):
        if f == WRITE:
            owner = columns.owner(micro)
            last[owner, key] = value
            writers.setdefault((key, value), set()).add(owner)
    possible: dict[tuple[int, int], Iterable[int]] = {}
    for (key, value), by in writers.items():
        happened = {
            owner
            for owner in by
            if columns.outcome[owner] != FAIL and (workload == "append" or last[owner, key] == value)
        }
        possible[key, value] = happened if happened or value == NIL else by
    sources: list[set[int]] = [set() for _ in range(len(columns.f))]
    for txn in numpy.flatnonzero(columns.outcome == OK).tolist():
        own: set[tuple[int, int]] = set()
        for micro in range(int(columns.first[txn]), int(columns.first[txn + 1])):
            key, value, length = (
                int(columns.key[micro]),
                int(columns.value[micro]),
                int(columns.length[micro]),
            )
            if columns.f[micro] == WRITE:
                own.add((key, value))
            if columns.f[micro] == WRITE or length < 0:
                continue
            if workload != "append" and (key, value) in own:
                sources[micro].add(txn)
                continue
            values = columns.elements[value : value + length].tolist() if workload == "append" else [value]
            sources[micro].update(*(possible.get((key, shown), ()) for shown in values))
    return sources


def part_of(columns: Columns, chosen: Sequence[int], sources: Sequence[set[int]]) -> Columns:
    """The columns of these transactions alone, without the micro-operations that show writes of others."""
    txns, there = numpy.array(sorted(chosen), numpy.int64), set(chosen)
    kept = [
        [
            micro
            for micro in range(int(columns.first[txn]), int(columns.first[txn + 1]))
            if sources[micro] <= there
        ]
        for txn in txns.tolist()
    ]
    sizes = [len(micros) for micros in kept]
    micros = numpy.array([micro for each in kept for micro in each], numpy.int64)
    return replace(
        columns,
        outcome=columns.outcome[txns],
        process=columns.process[txns],
        invoke=columns.invoke[txns],
        complete=columns.complete[txns],
        first=numpy.concatenate([[0], numpy.cumsum(sizes)]).astype(numpy.int64),
        f=columns.f[micros],
        key=columns.key[micros],
        value=columns.value[micros],
        length=columns.length[micros],
        rank=None if columns.rank is None else columns.rank[txns],
    )
