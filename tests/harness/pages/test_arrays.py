"""Counts over the arrays of all operations against the same counts written plainly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import numpy
from hypothesis import given
from hypothesis import strategies as st

from harness.pages.covered import _within
from harness.pages.load_chart import BINS_DRAWN, POINTS_DRAWN, _latency, _rate
from harness.pages.material import Load, _load
from harness.pages.run_columns import Gathered, slices_of
from harness.pages.svg import Scale
from harness.pages.tables import _longest_gap
from tests.harness.pages.test_whole_timeline import operation

times_ns = st.integers(0, 40)


def load(spans_ns: list[tuple[int, int]]) -> Load:
    """Operations that all ended ok, given by their times in the order of invocation; they end in the reverse one."""
    start_ns, took_ns = numpy.array(spans_ns, dtype=numpy.int64).reshape(-1, 2).T
    size = len(start_ns)
    return Load(
        start_ns=start_ns,
        end_ns=start_ns + took_ns,
        complete=2 * size - numpy.arange(size),
        outcome=numpy.zeros(size, dtype=numpy.int8),
        node=numpy.zeros(size, dtype=numpy.int32),
        writes=numpy.ones(size, dtype=numpy.bool_),
        nodes=("n1",),
    )


@given(
    ends_ns=st.lists(times_ns),
    drawn=st.lists(st.tuples(times_ns, st.integers(0, 9), st.booleans())),
)
def test_each_operation_under_a_fault_counts_once(ends_ns: list[int], drawn: list[Any]) -> None:
    """The page would say that more operations ended ok under a fault than there are."""
    bands: list[Any] = [
        Mock(sure=(start, start + long) if is_sure else None) for start, long, is_sure in drawn
    ]
    sure = [band.sure for band in bands if band.sure]
    plain = sum(any(start <= end_ns <= end for start, end in sure) for end_ns in ends_ns)
    assert _within(numpy.sort(numpy.array(ends_ns, dtype=numpy.int64)), bands) == plain


@given(st.lists(st.tuples(times_ns, times_ns), min_size=1).map(sorted))
def test_the_longest_gap_is_the_last_of_the_longest(spans_ns: list[tuple[int, int]]) -> None:
    """The table of nodes would name a time in which the node served."""
    given_load = load(spans_ns)
    ends_ns = sorted(given_load.end_ns.tolist())
    last_ns = max(*ends_ns, spans_ns[-1][0])
    plain = max((after - before, before) for before, after in pairwise([spans_ns[0][0], *ends_ns, last_ns]))
    assert _longest_gap(given_load, given_load.end_ns) == plain


@given(st.lists(st.booleans(), max_size=8))
def test_the_final_phase_is_no_load(finals: list[bool]) -> None:
    """Final reads would count as load, wherever they stand."""
    gathered = Gathered()
    for place in range(len(finals)):
        gathered.take(operation(place, 10 * place, 5, place, "ok", "a"), 0, 0)
    gathered.final = gathered.final[:0]
    gathered.final.extend(finals)
    plain = [10 * place for place, is_final in enumerate(finals) if not is_final]
    assert _load(gathered.columns()).start_ns.tolist() == plain


def test_points_stand_in_the_order_of_completion() -> None:
    """A page that is made again would be another file."""
    assert POINTS_DRAWN > 2
    drawn = str(_latency(load([(10, 2_000), (30, 3_000)]), Scale(0, 100, 0, 100, True), 0)[0])
    path = drawn[drawn.index('d="M30.0') :]
    assert "M10.0" in path.partition("/>")[0]


@given(st.integers(0, 10**18), st.integers(1, 4096))
def test_a_time_lies_in_a_slice_of_a_record_however_long(time_ns: int, slices: int) -> None:
    """If it failed, a record of a month or of a year would end without a page."""
    times_ns = numpy.array([0, time_ns, 10**18], dtype=numpy.int64)
    first, between, last = slices_of(times_ns, 10**18, slices).tolist()
    assert first == 0 and last == slices - 1
    assert abs(between - time_ns * slices / 10**18) <= 1


def test_the_rate_of_years_is_as_small_as_that_of_an_hour() -> None:
    """If it failed, a record with odd times would give a page of hundreds of megabytes."""
    markup, bin_ns = _rate(load([(0, 1), (10**18, 0)]), Scale(0, 10**18, 0, 100), 0)
    assert markup.count('class="catch"') <= BINS_DRAWN + 1 and bin_ns > 10**15


def test_the_rate_of_a_short_run_is_that_of_its_length() -> None:
    """If it failed, nine operations in 13 ms would be told as 36 a second, and what ends with a run stand behind it."""
    markup, bin_ns = _rate(load([(0, 13_000_000)] * 9), Scale(0, 13_000_000, 0, 100), 0)
    assert (markup.count('class="catch"'), bin_ns) == (1, 13_000_000)
    assert ">1,000<" in markup
    markup, _ = _rate(load([(0, 10**9), (0, 10)]), Scale(0, 10**9, 0, 100), 0)
    assert markup.count('class="catch"') == 4
