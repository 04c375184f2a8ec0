"""Spans of time in order, so that a question about one moment does not look at all of them.

A run of a day has fifteen thousand faults and millions of operations: a scan of all faults an operation is hours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, Generic, TypeVar

from checkers.history.faults import FaultSpan, Span

T = TypeVar("T")
NEVER: Final = 1 << 62
"""When something ends that did not end."""


def united(spans: Iterable[Span]) -> list[Span]:
    """The same times as disjoint spans, in order; spans that touch become one."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def within(time_ns: int, spans: Sequence[Span]) -> bool:
    """Whether the moment lies in one of the spans, ends included. `spans`: as `united` gives them."""
    place = bisect_right(spans, (time_ns, NEVER))
    return place > 0 and time_ns <= spans[place - 1][1]


def are_within(times_ns: Any, spans: Sequence[Span]) -> Any:
    """`within` for many moments: an array of as many truths."""
    import numpy

    starts, ends = numpy.array(spans or [(NEVER, NEVER)], dtype=numpy.int64).T
    place = numpy.searchsorted(starts, times_ns, side="right") - 1
    return (place >= 0) & (times_ns <= ends[place])


class Spans(Generic[T]):
    """Things with a span each. They may overlap; of equal starts, the first one given is the first."""

    def __init__(self, timed: Iterable[tuple[Span, T]]) -> None:
        self._timed = sorted(timed, key=lambda entry: entry[0][0])
        self._starts = [start for (start, _), _ in self._timed]
        self._reach = list(accumulate((end for (_, end), _ in self._timed), max))
        """The latest end of all up to here."""

    @property
    def spans(self) -> list[Span]:
        """All of them, in the order of their starts."""
        return [span for span, _ in self._timed]

    def touching(self, start: int, end: int) -> Iterator[T]:
        """Those that have a moment in common with that time, ends included, in the order of their starts."""
        # `_reach` grows although single ends do not: all before `first` are over by then.
        first = bisect_left(self._reach, start)
        for place in range(first, bisect_right(self._starts, end)):
            (_, its_end), thing = self._timed[place]
            if its_end >= start:
                yield thing

    def first_around(self, time_ns: int) -> tuple[Span, T] | None:
        """The one that began first of those that are on at that moment, ends left out."""
        place = bisect_right(self._reach, time_ns)  # the first to reach beyond it
        if place == len(self._timed) or self._starts[place] >= time_ns:
            return None
        return self._timed[place]


def of_faults(faults: Iterable[FaultSpan]) -> Spans[FaultSpan]:
    """Faults from their start lines to their end lines."""
    return Spans(
        ((fault.start_ns, NEVER if fault.end_ns is None else fault.end_ns), fault) for fault in faults
    )
