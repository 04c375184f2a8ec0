"""The search of a bisection: which of several commits is the first that shows an anomaly. Pure.

The anomaly shows at the last commit and not before the first one. A commit that cannot be judged is skipped, as `git
bisect skip` does; if skipped commits stand beside the first bad one, the answer is a range.

Clean runs do not prove that a commit is clean. If the anomaly shows in a share p of the runs, n clean runs miss it with
probability (1 - p)^n. p comes from the runs at the bad commit by Laplace's rule of succession, (hits + 1) / (runs + 2),
which never takes a small sample for certainty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Answer = Literal["shows", "clean", "skip"]


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The places `first` … `last` among which is the first commit that shows the anomaly; equal if it is known."""

    first: int
    last: int

    @property
    def is_exact(self) -> bool:
        return self.first == self.last


def first_that_shows(count: int, ask: Callable[[int], Answer]) -> CommitRange:
    """`ask` judges the commit at a place; that at place `count - 1` is known to show it, and is not asked."""
    assert count > 0
    clean, shows = -1, count - 1
    skipped: set[int] = set()
    while left := [place for place in range(clean + 1, shows) if place not in skipped]:
        middle = (clean + shows) / 2
        place = min(left, key=lambda candidate: abs(candidate - middle))
        match ask(place):
            case "shows":
                shows = place
            case "clean":
                clean = place
            case "skip":
                skipped.add(place)
    return CommitRange(clean + 1, shows)


def confidence(hits: int, runs: int, clean_runs: int) -> float:
    """The probability that an anomaly which showed in `hits` of `runs` runs shows in one of `clean_runs` others."""
    return 1.0 - (1.0 - (hits + 1) / (runs + 2)) ** clean_runs
