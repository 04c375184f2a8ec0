"""The operations that stand on the page one by one, if the run has more than the page has room for.

The groups in their order: operations that a witness names; operations on the keys of witnesses; failed ones and those
of unknown outcome; those that ran near the beginning or the end of a fault; all others. A group that does not fit is
thinned out evenly. The first group may take all the room, and the last one all that is left. Each of the others takes
at most half of what is left, so that the next ones have a share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from harness.pages.run_columns import OK, RunColumns

NEAR_NS = 50_000_000
"""An operation that runs at most so far from a fault's beginning or end counts as near it."""

Rows = NDArray[numpy.int64]


@dataclass(frozen=True, slots=True)
class Share:
    """`kept` of the `there` operations of a group, which `words` describe."""

    words: str
    kept: int
    there: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of the columns by the time of their invocation, and how much of each group they are."""

    rows: Rows
    shares: tuple[Share, ...]
    left_out: int


def kept(
    columns: RunColumns, named: Collection[int], keys: Collection[str], edges_ns: Sequence[int], room: int
) -> Kept:
    """`named`: events that witnesses name. `edges_ns`: beginnings and ends of faults."""
    groups = (
        ("named by a witness", _named(columns, named)),
        ("on the keys of witnesses", columns.of_keys(keys)),
        ("failed or of unknown outcome", columns.outcome != OK),
        (f"within {NEAR_NS // 1_000_000} ms of a fault's beginning or end", _near(columns, edges_ns)),
        ("others", numpy.ones(len(columns), dtype=bool)),
    )
    free = numpy.ones(len(columns), dtype=bool)
    chosen: list[Rows] = []
    shares: list[Share] = []
    left = room
    for number, (words, belongs) in enumerate(groups):
        rows = numpy.flatnonzero(belongs & free)
        free &= ~belongs
        share = left if number in (0, len(groups) - 1) or len(columns) <= room else left // 2
        taken = _thinned(rows, share)
        left -= len(taken)
        chosen.append(taken)
        if len(rows):
            shares.append(Share(words, len(taken), len(rows)))
    rows = numpy.concatenate(chosen)
    rows = rows[numpy.lexsort((columns.index[rows], columns.start_ns[rows]))]
    return Kept(rows, tuple(shares), len(columns) - len(rows))


def _thinned(rows: Rows, room: int) -> Rows:
    """At most `room` rows, evenly spread."""
    if len(rows) <= room:
        return rows
    return rows[(numpy.arange(room) * len(rows)) // max(room, 1)]


def _named(columns: RunColumns, named: Collection[int]) -> NDArray[numpy.bool_]:
    events = numpy.array(sorted(named), dtype=numpy.int64)
    return numpy.isin(columns.index, events) | numpy.isin(columns.complete, events[events >= 0])


def _near(columns: RunColumns, edges_ns: Sequence[int]) -> NDArray[numpy.bool_]:
    """Whether an operation ran at any time within NEAR_NS of an edge; one without an end counts by its beginning."""
    edges = numpy.sort(numpy.array(edges_ns, dtype=numpy.int64))
    end_ns = numpy.where(columns.end_ns < 0, columns.start_ns, columns.end_ns)
    before = numpy.searchsorted(edges, columns.start_ns - NEAR_NS, side="left")
    return before < numpy.searchsorted(edges, end_ns + NEAR_NS, side="right")
