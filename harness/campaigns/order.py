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
    found: dict[str, Covered] = {}
    for ended in campaigns:
        of_this: dict[str, Covered] = {}
        for each in ended:
            before = of_this.get(each.cell, Covered())
            of_this[each.cell] = Covered(
                max(before.at, each.at),
                before.failed or each.outcome in FAILED,
                max(before.seconds, each.seconds),
            )
        found |= of_this
    return found


def tasks(cells: Sequence[str], seeds: Sequence[int], known: dict[str, Covered]) -> list[Task]:
    """All runs in their order."""
    ordered = sorted(range(len(cells)), key=lambda place: _urgency(known.get(cells[place], Covered()), place))
    return [Task(cells[place], seed) for seed in seeds for place in ordered]


def _urgency(found: Covered, place: int) -> tuple[bool, str, int]:
    """Failed first; then never covered (""), then the longest ago."""
    return (not found.failed, found.at, place)
