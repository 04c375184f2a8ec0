"""Spans in order answer what a scan of all of them would."""

from __future__ import annotations

import numpy
from hypothesis import given
from hypothesis import strategies as st

from checkers.history.faults import Span
from checkers.history.history import Header, History
from checkers.history.members import Count, counts, identity
from checkers.history.operation import Event
from checkers.history.spans import Spans, are_within, united, within

MOMENTS = st.integers(0, 30)
SPANS = st.lists(st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))), max_size=12)


def test_united_spans() -> None:
    """Broken, a time in two faults counts twice, or a time between two faults counts as one."""
    assert united([(5, 7), (1, 3), (2, 4), (4, 5), (9, 9)]) == [(1, 7), (9, 9)]


@given(spans=SPANS, time=MOMENTS)
def test_a_moment_within_united_spans(spans: list[Span], time: int) -> None:
    """Broken, load under a fault is counted as load without one, or the reverse."""
    is_within = any(start <= time <= end for start, end in spans)
    assert within(time, united(spans)) == is_within
    assert are_within(numpy.array([time, -1]), united(spans)).tolist() == [is_within, False]


@given(spans=SPANS, start=MOMENTS, end=MOMENTS)
def test_spans_that_touch_a_time(spans: list[Span], start: int, end: int) -> None:
    """Broken, a checker does not know of a fault that excuses a node. The time may end before it begins."""
    timed = Spans((span, number) for number, span in enumerate(spans))
    by_start = sorted(range(len(spans)), key=lambda number: spans[number][0])
    touching = [number for number in by_start if spans[number][0] <= end and spans[number][1] >= start]
    assert list(timed.touching(start, end)) == touching


@given(spans=SPANS, time=MOMENTS)
def test_the_span_that_began_first_around_a_moment(spans: list[Span], time: int) -> None:
    """Broken, a write without a possible quorum is taken for one that may have had it."""
    around = [(span[0], number, span) for number, span in enumerate(spans) if span[0] < time < span[1]]
    found = Spans((span, number) for number, span in enumerate(spans)).first_around(time)
    assert found == (None if not around else (min(around)[2], min(around)[1]))


LINES = st.lists(
    st.tuples(MOMENTS, st.integers(1, 5), st.booleans(), st.sampled_from(["", "n1", "n2"])), max_size=8
)


@given(lines=LINES, during=st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))))
def test_the_counts_that_nodes_may_have_used(lines: list[tuple[int, int, bool, str]], during: Span) -> None:
    """Broken, an acknowledgement is judged by a quorum that no node counted by."""
    events = [
        Event(
            index=index,
            time_ns=time,
            type="info",
            process="harness",
            f="members",
            value={"nodes": [f"n{quorum}"], "quorum": quorum, "settled": settled, "joins": joins},
        )
        for index, (time, quorum, settled, joins) in enumerate(sorted(lines))
    ]
    history = History.of(Header(nodes=("n1",), quorum=9), events)
    found = {Count(("n1",), 9): None}
    for event in events:
        if event.time_ns > during[1]:
            break
        if event.value["settled"] and event.time_ns < during[0]:
            found = {}
        found[Count(tuple(event.value["nodes"]), event.value["quorum"])] = None
    assert counts(history, during) == tuple(found)
    came = [event for event in events if event.value["joins"] == "n1" and event.index < during[0]]
    assert identity(history, "n1", during[0]) == len(came)
