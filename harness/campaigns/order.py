"""The order of runs: recent failures, then cells without coverage for long, then the order of the matrix.

The first run of every cell comes before the second of any, so that a small budget still covers many cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.campaigns.journal import Ended, Task


@dataclass(frozen=True, slots=True)
class Covered:
    """The last coverage of a cell: when it last ran, and whether a run of that campaign failed."""

    at: str = ""
    failed: bool = False
    seconds: float = 0.0


Coverage = defaultdict[str, Covered]
"""Cell → its last coverage."""


def covered(campaigns: Iterable[Sequence[Ended]]) -> Coverage:
    """`campaigns`: the runs of each, oldest first; the last one with the cell counts."""
    last_coverage: Coverage = defaultdict(Covered)
    for ended in campaigns:
        of_this: Coverage = defaultdict(Covered)
        for run in ended:
            before = of_this[run.cell]
            of_this[run.cell] = Covered(
                max(before.at, run.at),
                before.failed or run.outcome != "valid",
                max(before.seconds, run.seconds),
            )
        last_coverage |= of_this
    return last_coverage


def tasks(cells: Sequence[str], seeds: Sequence[int], known: Coverage) -> list[Task]:
    """All runs in their order: of failed cells, of those that were never covered (""), of those longest ago."""
    ordered = sorted(cells, key=lambda cell: (not known[cell].failed, known[cell].at))
    return [Task(cell, seed) for seed in seeds for cell in ordered]
