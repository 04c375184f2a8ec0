"""Whether a difference between two nights could be chance: the exact test of Fisher, stratified by cell.

A cell fails at its own rate, and the mix of cells differs from night to night, so the cells are not added up. Within a
cell all runs of both nights are equal if nothing has changed: which of them show the anomaly is then a draw without
replacement. The test fixes, for each cell, the runs of each night and the number of runs with the anomaly, and sums the
probabilities of all draws that are at least as uneven as the real one (Cox 1970, "Analysis of Binary Data", 5.2).
Integers only: no approximation, also for four runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Count:
    """Of `runs` runs, `hits` showed it."""

    hits: int = 0
    runs: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.hits + other.hits, self.runs + other.runs)

    def __str__(self) -> str:
        return f"{self.hits:,} of {self.runs:,}"


Stratum = tuple[Count, Count]
"""One cell: the earlier night, the later one."""


def chances(strata: Iterable[Stratum]) -> tuple[Fraction, Fraction]:
    """The probabilities that the later night shows so many hits or more, and so many or fewer, if nothing has changed;
    1 without runs.
    """
    ways, place = [1], 0  # ways[x]: the draws that give x hits more than the least to the later night
    for before, after in strata:
        hits = before.hits + after.hits
        least, most = max(hits - before.runs, 0), min(hits, after.runs)
        ways = _convolved(
            ways,
            [math.comb(after.runs, x) * math.comb(before.runs, hits - x) for x in range(least, most + 1)],
        )
        place += after.hits - least
    return Fraction(sum(ways[place:]), sum(ways)), Fraction(sum(ways[: place + 1]), sum(ways))


def _convolved(ways: Sequence[int], other: Sequence[int]) -> list[int]:
    product = [0] * (len(ways) + len(other) - 1)
    for place, factor in enumerate(ways):
        for further, count in enumerate(other):
            product[place + further] += factor * count
    return product
