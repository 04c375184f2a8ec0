"""A row of the timeline for each process, with as few rows as overlapping processes need.

A worker goes on as a new process after an unknown outcome, so a run has many more processes than workers. A process
takes the row that was freed last, which as a rule is that of the same worker.
"""

from __future__ import annotations

import heapq

import numpy
from numpy.typing import NDArray

from harness.pages.run_columns import RunColumns, parts

ROWS_MAX = 400
"""With more rows than this, processes share rows, because no screen has more lines."""


def process_rows(columns: RunColumns) -> tuple[NDArray[numpy.int32], tuple[str, ...]]:
    """(the row of each operation, the first process of each row, as "3" or, with others after it, "3 …"); rows by these
    processes."""
    if not len(columns):
        return numpy.empty(0, dtype=numpy.int32), ()
    processes = numpy.unique(columns.process)
    process_of = numpy.empty(len(columns), dtype=numpy.int32)
    first = numpy.full(len(processes), numpy.iinfo(numpy.int64).max)
    last = numpy.full(len(processes), -1)
    for part in parts(len(columns)):
        process_of[part] = numpy.searchsorted(processes, columns.process[part])
        numpy.minimum.at(first, process_of[part], columns.index[part])
        numpy.maximum.at(last, process_of[part], numpy.maximum(columns.complete[part], columns.index[part]))
    rows = numpy.zeros(len(processes), dtype=numpy.int64)
    names: list[int] = []
    running: list[tuple[int, int]] = []
    free: list[int] = []
    for number in numpy.argsort(first, kind="stable").tolist():
        while running and running[0][0] < first[number]:
            free.append(heapq.heappop(running)[1])
        if not free:
            free.append(len(names))
            names.append(int(processes[number]))
        rows[number] = free.pop()
        heapq.heappush(running, (int(last[number]), int(rows[number])))
    order = numpy.argsort(numpy.array(names), kind="stable")
    place = numpy.empty_like(order)
    place[order] = numpy.arange(len(order))
    row_of = place[rows] % ROWS_MAX
    counts = numpy.bincount(row_of).tolist()
    first_ones = [names[number] for number in order[:ROWS_MAX].tolist()]
    return row_of.astype(numpy.int32)[process_of], tuple(
        f"{name} …" if count > 1 else str(name) for name, count in zip(first_ones, counts, strict=True)
    )
