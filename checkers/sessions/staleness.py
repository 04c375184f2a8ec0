"""How far reads lag behind: a lower bound for each, in milliseconds and in versions.

A read is stale by a version if another value was surely written after all writes of the value that it returned had
taken effect, and that write had completed before the read was asked. It is stale since the first of those completed.
Both are lower bounds, from the history alone (`checkers.history.value_order`): a read that is called stale surely was.

Without a bound to hold it to, staleness is a finding and the verdict is valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy

from checkers.history import value_order
from checkers.history.history import History
from checkers.history.line_kernels import OK, OTHER
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.value_order import ValueOrders
from checkers.history.value_rows import Numbers
from checkers.history.values import many, value_words
from checkers.limits import look
from checkers.sessions.steps import Reads, all_but_dirty, written
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

Array = Any  # numpy's
NAME = "staleness"
Bounds = tuple[float | None, int | None]  # ms_max and versions_max


@dataclass(frozen=True, slots=True)
class Stale:
    """A read, and by how much it surely was stale: since the first write that it missed had completed."""

    read: int
    since: int
    versions: int
    ms: float


def check(
    history: History,
    *,
    ms_max: float | None = None,
    versions_max: int | None = None,
    reads: Reads = all_but_dirty,
) -> Verdict:
    """How stale reads were; invalid if one surely was staler than `ms_max` milliseconds or `versions_max` versions.
    Without a clock a stale read leaves `ms_max` unknown.

    `details`: reads, stale_reads, stale_ms_max, stale_versions_max, vacuous, findings. Raises ModelError for a cas
    without its two values, and OutOfTime.
    """
    judged, stale = _judged(history, reads)
    beyond = [
        read
        for read in stale
        if (ms_max is not None and read.ms > ms_max)
        or (versions_max is not None and read.versions > versions_max)
    ]
    worst = sorted(beyond, key=lambda read: (-read.versions if ms_max is None else -read.ms, read.read))
    return _verdict(history, judged, stale, worst, (ms_max, versions_max))


def _judged(history: History, reads: Reads) -> tuple[int, list[Stale]]:
    """How many reads are judged, and those that surely were stale: places of operations."""
    columns, numbers = history.columns, Numbers(history)
    answered = columns.places(("read",), "ok", None, None)
    chosen = [at for role, mode, at in columns.by_role_and_mode(answered) if reads(role, mode)]
    judged = numpy.sort(numpy.concatenate(chosen)) if chosen else answered[:0]
    writes = numbers.changing(numpy.flatnonzero(value_order.are_writes(columns)))
    for write in history.at(writes[columns.kind[writes] == OTHER]):
        written(write)  # raises ModelError of a cas that is not of two values
    orders = ValueOrders.of(numbers, writes, judged, start=history.start)
    latest = orders.latest[orders.read]
    done = writes[columns.type[writes] == OK]
    # By completion: `before` counts from the front, and the first hit is the write that completed first.
    done = done[numpy.lexsort((columns.complete[done], columns.key[done]))]
    behind = numpy.flatnonzero(latest < NEVER)
    behind = behind[numpy.argsort(columns.key[judged[behind]], kind="stable")]
    stale: list[Stale] = []
    for code, of_key in _by_key(columns.key[judged], behind):
        look()
        first, end = numpy.searchsorted(columns.key[done], (code, code + 1))
        of_writes = done[first:end]
        newer = _CountsAbove(columns.invoke[of_writes].tolist())
        # Writes that were over before the read was asked. Below, those asked after all writes of its value were over.
        before = numpy.searchsorted(columns.complete[of_writes], columns.invoke[judged[of_key]])
        for row, count in zip(of_key.tolist(), before.tolist(), strict=True):
            versions = newer.count(count, int(latest[row]))
            if versions:
                read, since = int(judged[row]), int(of_writes[newer.first(count, int(latest[row]))])
                ms = max(0.0, int(columns.invoke_ns[read] - columns.complete_ns[since]) / 1e6)
                stale.append(Stale(read, since, versions, ms))
    return len(judged), stale


def _by_key(keys: Array, rows: Array) -> Iterator[tuple[int, Array]]:
    """Each key with its rows; `rows` are in the order of their keys."""
    codes, begins = numpy.unique(keys[rows], return_index=True)
    ends = numpy.append(begins, len(rows))[1:]
    for code, begin, end in zip(codes.tolist(), begins, ends, strict=True):
        yield code, rows[begin:end]


class _CountsAbove:
    """How many of the first numbers of a sequence are above another: a merge-sort tree, O(log² n) a look."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._levels: list[list[list[int]]] = [[[number] for number in numbers]]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            pairs = (below[place : place + 2] for place in range(0, len(below), 2))
            self._levels.append([sorted(chain.from_iterable(pair)) for pair in pairs])

    def count(self, first_n: int, threshold: int) -> int:
        """How many of the first `first_n` are above the threshold."""
        greater, start = 0, 0
        for level in range(len(self._levels) - 1, -1, -1):
            if first_n >> level & 1:
                block = self._levels[level][start >> level]
                greater += len(block) - bisect_right(block, threshold)
                start += 1 << level
        return greater

    def first(self, first_n: int, threshold: int) -> int:
        """The place of the first among them."""
        low, high = 1, first_n
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.count(middle, threshold) else (middle + 1, high)
        return low - 1


def _promise(ms_max: float | None, versions_max: int | None) -> str:
    parts = [] if ms_max is None else [f"{ms_max:g} ms"]
    parts += [] if versions_max is None else [many(versions_max, "version")]
    return f"stale by at most {' and '.join(parts)}" if parts else ""


def _verdict(
    history: History, judged: int, stale: Sequence[Stale], beyond: Sequence[Stale], bounds: Bounds
) -> Verdict:
    """`beyond`: those that break the promise, the worst first."""
    ms = round(max((read.ms for read in stale), default=0.0), 3)
    versions = max((read.versions for read in stale), default=0)
    (last,) = history.at(numpy.array([stale[-1].read])) if stale else (None,)
    # In a record without times only the versions say how stale.
    is_timeless = last is not None and not last.has_times
    time = "" if is_timeless else f"{ms:.1f} ms and "
    worst = f"the worst by at least {time}{many(versions, 'version')}"
    sentence = f"{many(len(stale), 'stale read')} of {judged}, {worst}"
    details: dict[str, Any] = {
        "reads": judged,
        "stale_reads": len(stale),
        "stale_ms_max": ms,
        "stale_versions_max": versions,
        "vacuous": not judged,
        "findings": [sentence] if stale and not beyond else [],
    }
    is_open = is_timeless and bounds[0] is not None
    return Verdict(
        checker=NAME,
        result="invalid" if beyond else "unknown" if is_open else "valid",
        summary=sentence if stale else f"no read surely was stale ({many(judged, 'read')})",
        model=_promise(*bounds),
        witnesses=tuple(_witness(history, read) for read in beyond[:WITNESSES_MAX]),
        details=details,
    )


def _witness(history: History, stale: Stale) -> Witness:
    read, since = history.at(numpy.array([stale.read, stale.since]))
    value = value_words(read.value)
    name = "the register" if read.key is None else f"key {read.key}"
    return Witness(
        rule="stale-read",
        summary=f"process {read.process} read {value} of {name}, stale by at least "
        + (f"{stale.ms:.1f} ms and " if read.has_times else "")
        + many(stale.versions, "version"),
        events=tuple(sorted({*since.events, *read.events})),
        key=read.key,
        node=read.node,
        start_ns=since.invoke_ns,
        end_ns=read.complete_ns,
        explanation=(_why(since, read, stale, value),),
    )


def _why(since: Operation, read: Operation, stale: Stale, value: str) -> str:
    time = f"{stale.ms:.1f} ms " if read.has_times else ""
    return (
        f"Every write of {value} had taken effect before the {since.f} by process {since.process} began, "
        f"which was over {time}before the read was asked."
    )
