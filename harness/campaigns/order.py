"""The order of runs: recent failures, then cells without coverage for long, then the order of the matrix.

The first run of every cell comes before the second of any, so that a small budget still covers many cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.campaigns.journal import Ended, Task

FAILED = frozenset({"anomaly", "unknown", "inconclusive", "broken"})


@dataclass(frozen=True, slots=True)
class Covered:
    """The last coverage of a cell: when it last ran, and whether a run of that campaign failed."""

    at: str = ""
    failed: bool = False
    seconds: float = 0.0


def covered(campaigns: Iterable[Sequence[Ended]]) -> dict[str, Covered]:
    """cell → its last coverage. `campaigns`: the runs of each, oldest first; the last one with the cell counts."""
    last_coverage: dict[str, Covered] = {}
    for ended in campaigns:
        of_this: dict[str, Covered] = {}
        for run in ended:
            before = of_this.get(run.cell, Covered())
            of_this[run.cell] = Covered(
                max(before.at, run.at),
                before.failed or run.outcome in FAILED,
                max(before.seconds, run.seconds),
            )
        last_coverage |= of_this
    return last_coverage


def tasks(cells: Sequence[str], seeds: Sequence[int], known: dict[str, Covered]) -> list[Task]:
    """All runs in their order."""
    ordered = sorted(range(len(cells)), key=lambda place: _urgency(known.get(cells[place], Covered()), place))
    return [Task(cells[place], seed) for seed in seeds for place in ordered]


def _urgency(coverage: Covered, place: int) -> tuple[bool, str, int]:
    """Sorts cells: failed first, then never covered (""), then the longest ago."""
    return (not coverage.failed, coverage.at, place)
