"""Coverage of a run: its operations by kind, the nodes that served its reads, the kinds of faults that took effect,
and the rare turns that came about.

A run without an anomaly is worth only what it covered, so these tables are on every page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from checkers.history.spans import united
from checkers.history.values import many
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import as_mapping, clipped
from harness.pages.material import Material
from harness.pages.run_columns import OK

ROWS = 40
NEVER = 4
"""Rare turns that never came about stand in a line, so there is room for so many times `ROWS`."""


@dataclass(frozen=True, slots=True)
class Covered:
    """Rows of texts and counts. `keys` is a sentence; `left_out` counts the rows beyond `ROWS`."""

    kinds: tuple[tuple[str, int, int, int], ...]
    """(kind of operation, ok, fail, info)."""
    reads: tuple[tuple[str, str, str, int], ...]
    """(node, role, read mode, answered reads)."""
    faults: tuple[tuple[str, int, int, int], ...]
    """(kind of fault, injected, took effect, operations that ended ok while one of the kind surely was in effect).

    The last number goes by the intervals of `ok_under_fault` of the evidence, so of one fault both are the same."""
    turns: tuple[tuple[str, int], ...]
    """(rare turn, how often); `turns_never` are those of its system that did not come about."""
    turns_never: tuple[str, ...]
    keys: str
    left_out: int


def covered(material: Material, bands: Sequence[FaultBand]) -> Covered:
    columns = material.columns
    names = sorted({f for f, _ in columns.kinds})
    ended = columns.kinds
    kinds = [(clipped(f, 40), ended[f, "ok"], ended[f, "fail"], ended[f, "info"]) for f in names]
    reads = [
        (clipped(node, 64), clipped(role, 40), clipped(mode, 40), count)
        for (node, role, mode), count in sorted(columns.reads.items())
    ]
    faults = _faults(material, bands)
    turns = [
        (clipped(name, 80), times)
        for name, times in as_mapping(as_mapping(material.verdict.get("evidence")).get("rare_turns")).items()
        if isinstance(times, int)
    ]
    occurred = [(name, times) for name, times in turns if times]
    left_out = sum(max(len(rows) - ROWS, 0) for rows in (kinds, reads, faults, occurred))
    return Covered(
        tuple(kinds[:ROWS]),
        tuple(reads[:ROWS]),
        tuple(faults[:ROWS]),
        tuple(occurred[:ROWS]),
        tuple(name for name, times in turns if not times)[: NEVER * ROWS],
        _keys(material),
        left_out,
    )


def _faults(material: Material, bands: Sequence[FaultBand]) -> list[tuple[str, int, int, int]]:
    injected = Counter(band.name for band in bands)
    in_effect = Counter(band.name for band in bands if band.took_effect)
    ends_ns = numpy.sort(material.load.end_ns[material.load.outcome == OK])
    return [
        (name, count, in_effect[name], _within(ends_ns, [band for band in bands if band.name == name]))
        for name, count in sorted(injected.items())
    ]


def _within(ends_ns: NDArray[numpy.int64], bands: Sequence[FaultBand]) -> int:
    """How many of these sorted times lie in an interval in which one surely was in effect, each counted once."""
    spans = united(band.sure for band in bands if band.sure)
    starts, ends = (numpy.array([span[side] for span in spans], dtype=numpy.int64) for side in (0, 1))
    before, until = numpy.searchsorted(ends_ns, starts), numpy.searchsorted(ends_ns, ends, side="right")
    return int((until - before).sum())


def _keys(material: Material) -> str:
    columns = material.columns
    on_keys = columns.key[(columns.key >= 0) & ~columns.final]
    if not len(on_keys):
        return ""
    counts = numpy.bincount(on_keys)
    counts = counts[counts > 0]
    if len(counts) == 1:
        return f"1 key, with {many(int(counts[0]), 'operation')}."
    return (
        f"{len(counts):,} keys, with {int(counts.min()):,} to {int(counts.max()):,} operations each "
        f"(median {int(numpy.median(counts)):,})."
    )
