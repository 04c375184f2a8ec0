"""L1: messages against the frontier of each cut, by the clever pass and by sets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.cuts import messages
from checkers.cuts.trace import trace_of
from tests.checkers.cuts import twin_messages
from tests.checkers.cuts.drawn_traces import CUTS, Step, executed, steps


def _same(drawn: list[Step], nodes: int, honest: bool) -> None:
    lives = executed(drawn, nodes=nodes, honest=honest)
    said = messages.judge(trace_of(lives), CUTS)
    expected = twin_messages.judged(lives, CUTS)
    assert not said.broken
    assert said.is_cross_checked
    assert said.unknown == [""] * len(CUTS)
    for cut, twin in enumerate(expected):
        assert (said.counts[cut] == 0) == twin.is_consistent, CUTS[cut]
        assert (said.crossings[cut] is None) == twin.is_consistent
        if said.marked[cut].all():
            assert said.counts[cut] == twin.crossing
        if honest:
            assert twin.is_consistent


@given(steps(), st.integers(2, 4), st.booleans())
@settings(max_examples=400)
def test_the_pass_over_all_cuts_says_what_sets_of_events_say(
    drawn: list[Step], nodes: int, honest: bool
) -> None:
    """A wrong count or verdict on some order of sends, receives, restarts and colour changes."""
    _same(drawn, nodes, honest)


@pytest.mark.nightly
@given(steps(80), st.integers(2, 4), st.booleans())
@settings(max_examples=20_000)
def test_the_same_on_many_and_longer_logs(drawn: list[Step], nodes: int, honest: bool) -> None:
    """The same on 20,000 event logs."""
    _same(drawn, nodes, honest)
