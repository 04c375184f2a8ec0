"""Where the lines of a record are, for millions of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy

from checkers.history.segments import Record

Array = Any  # numpy's


class Lines:
    """The lines of a record, by number; line 0 is that of event 0.

    The record is divided into pieces of whole lines: `firsts` has the number of the first line of each, and of the one
    that would come next; `bases` where that begins in the record, in bytes. `offsets`: where each line begins in its
    piece; the last entry is 0, for the line that would come next.
    """

    def __init__(self, record: Record, firsts: list[int], bases: list[int], offsets: Array) -> None:
        self._record = record
        self._firsts = firsts
        self._bases = bases
        self._offsets = offsets

    def __len__(self) -> int:
        return self._firsts[-1]

    def begins(self, lines: Array) -> Array:
        """Where these lines begin, in bytes."""
        pieces = numpy.searchsorted(numpy.array(self._firsts), lines, side="right") - 1
        return numpy.array(self._bases)[pieces] + self._offsets[lines]

    def at(self, line: int) -> bytes:
        """One line, without its newline."""
        begin, end = self._begin(line), self._begin(line + 1)
        return self._record.read(begin, end - begin).rstrip(b"\n")

    def _begin(self, line: int) -> int:
        return self._bases[bisect_right(self._firsts, line) - 1] + int(self._offsets[line])

    def all(self) -> Iterator[bytes]:
        """All lines in order, without their newlines; reads a piece at once."""
        for (first, begin), (following, end) in pairwise(zip(self._firsts, self._bases, strict=True)):
            yield from self._record.read(begin, end - begin).split(b"\n")[: following - first]
