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


def chance_of_more(strata: Iterable[Stratum]) -> Fraction:
    """The probability that the later night shows so many hits or more if nothing has changed; 1 without runs."""
    ways = [1]  # ways[x]: the draws that give x hits to the later night
    hits = 0
    for before, after in strata:
        ways = _convolved(ways, _ways(before, after))
        hits += after.hits
    return Fraction(sum(ways[hits:]), sum(ways))


def chance_of_fewer(strata: Iterable[Stratum]) -> Fraction:
    """The probability of so many hits or fewer on the later night if nothing has changed."""
    return chance_of_more((after, before) for before, after in strata)


def _ways(before: Count, after: Count) -> list[int]:
    hits = before.hits + after.hits
    return [
        math.comb(after.runs, x) * math.comb(before.runs, hits - x) for x in range(min(hits, after.runs) + 1)
    ]


def _convolved(ways: Sequence[int], other: Sequence[int]) -> list[int]:
    product = [0] * (len(ways) + len(other) - 1)
    for place, factor in enumerate(ways):
        for further, count in enumerate(other):
            product[place + further] += factor * count
    return product
