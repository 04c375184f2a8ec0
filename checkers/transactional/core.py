"""A few transactions of a history without an order that have no order themselves: few enough for a person to read.

A part of a history is an execution of what is left of one. So if the whole is possible, its parts are, as long as no
read in the part shows a write from outside it: with a transaction go all transactions that read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy

from checkers.transactional.append import Analysis
from checkers.transactional.columns import OK, WRITE, Columns, Workload

TRANSACTIONS_MAX = 500
TRIES = 100


def smallest(
    columns: Columns, workload: Workload, known: Analysis, is_refuted: Callable[[Columns], bool]
) -> list[int]:
    """Numbers of transactions that are refuted by themselves. Without any one of them the rest is possible,
    unless there were too many to try.
    """
    current = numpy.flatnonzero(known.committed == 1).tolist()
    if len(current) > TRANSACTIONS_MAX:
        return current
    sources = _sources(columns, workload)
    tries, size = TRIES, max(1, len(current) // 2)
    while tries > 0:
        place, smaller = 0, False
        while place < len(current) and tries > 0:
            gone = set(current[place : place + size])
            rest = _closed(current, gone, sources)
            tries -= 1
            if rest and is_refuted(part_of(columns, rest)):
                current, smaller = rest, True
            else:
                place += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return current


def _closed(current: Sequence[int], gone: set[int], sources: Sequence[set[int]]) -> list[int]:
    """The remaining transactions, without those that read of one that is gone."""
    while True:
        more = {txn for txn in current if txn not in gone and sources[txn] & gone}
        if not more:
            return [txn for txn in current if txn not in gone]
        gone = gone | more


def _sources(columns: Columns, workload: Workload) -> list[set[int]]:
    """By transaction, the transactions whose writes it read."""
    writer = {
        (key, value): columns.owner(micro)
        for micro, (f, key, value) in enumerate(
            zip(columns.f.tolist(), columns.key.tolist(), columns.value.tolist(), strict=True)
        )
        if f == WRITE
    }
    sources: list[set[int]] = [set() for _ in range(len(columns))]
    for txn in numpy.flatnonzero(columns.outcome == OK).tolist():
        for micro in range(int(columns.first[txn]), int(columns.first[txn + 1])):
            key, value, length = (
                int(columns.key[micro]),
                int(columns.value[micro]),
                int(columns.length[micro]),
            )
            if columns.f[micro] == WRITE or length < 0:
                continue
            values = columns.elements[value : value + length].tolist() if workload == "append" else [value]
            sources[txn].update(writer[key, shown] for shown in values if (key, shown) in writer)
        sources[txn].discard(txn)
    return sources


def part_of(columns: Columns, chosen: Sequence[int]) -> Columns:
    """The columns of these transactions alone."""
    txns = numpy.array(sorted(chosen), numpy.int64)
    sizes = numpy.diff(columns.first)[txns]
    micros = numpy.concatenate(
        [numpy.arange(columns.first[txn], columns.first[txn + 1]) for txn in txns.tolist()]
        or [numpy.zeros(0, numpy.int64)]
    )
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
