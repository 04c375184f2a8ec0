"""L1: messages against the frontier of each cut, by the clever pass and by sets."""

from __future__ import annotations

import random
from collections import Counter

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.cuts import Cut, Given, check, messages
from checkers.cuts.trace import trace_of
from tests import examples
from tests.checkers.cuts import scripts, twin_messages
from tests.checkers.cuts.drawn_traces import CUTS, Step, at_random, executed, steps


def _same(drawn: list[Step], nodes: int, honest: bool, quiet: bool = False) -> None:
    lives = executed(drawn, nodes=nodes, honest=honest, quiet=quiet)
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


def test_the_random_logs_show_what_they_are_for() -> None:
    """Random logs without inconsistent cuts, or without nodes that never change their colour, compare nothing."""
    chance = random.Random(1)
    seen: Counter[str] = Counter()
    for _ in range(150):
        drawn = at_random(chance, 120)
        honest = chance.random() < 0.5
        lives = executed(drawn, nodes=3, honest=honest, quiet=chance.random() < 0.5)
        said = messages.judge(trace_of(lives), CUTS)
        for cut, twin in enumerate(twin_messages.judged(lives, CUTS)):
            everywhere, anywhere = bool(said.marked[cut].all()), bool(said.marked[cut].any())
            seen.update(consistent=twin.is_consistent and everywhere, inconsistent=not twin.is_consistent)
            seen.update(honest=honest and everywhere, partly=anywhere and not everywhere)
            seen.update(through_others=not twin.is_consistent and not twin.crossing)
    assert min(seen.values()) > 3, seen


def test_more_crossings_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first crossing in time is lost if many messages violate a cut."""
    trace = scripts.trace({"n1": "*k1 +a>n2 +b>n2 +c>n2", "n2": "-b -a -c *k1"})
    whole = messages.judge(trace, ["k1"])
    monkeypatch.setattr(messages, "WITNESS_ROWS_MAX", 1)
    few = messages.judge(trace, ["k1"])
    assert whole.counts[0] == few.counts[0] == 3
    assert whole.crossings == few.crossings
    assert whole.crossings[0] is not None
    assert whole.crossings[0].receive == 4


def test_a_trace_too_long_for_vector_clocks_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that was never checked a second time looks as if it had been."""
    monkeypatch.setattr(messages, "CLOCK_BYTES_MAX", 0)
    trace = scripts.trace({"n1": "+a>n2 *k1", "n2": "-a *k1"})
    report = check(Given(cuts=[Cut(id="k1")], trace=trace))
    assert report.of("messages", "k1").result == "valid"
    assert report.notes == ("the trace is too long to be checked a second time by vector clocks",)


def test_colours_that_vector_clocks_contradict_break_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disagreement between the two ways to judge goes unsaid."""
    monkeypatch.setattr(messages, "_clocks", lambda links, first: numpy.full((2, 2), 9, numpy.int32))
    trace = scripts.trace({"n1": "+a>n2 *k1", "n2": "-a *k1"})
    said = check(Given(cuts=[Cut(id="k1")], trace=trace)).of("messages", "k1")
    assert said.result == "unknown"
    assert said.summary == "the recording is broken: vector clocks disagree with the colours of messages"


@given(steps(70), st.integers(2, 4), st.booleans(), st.booleans())
@examples.up_to(400)
def test_the_pass_over_all_cuts_says_what_sets_of_events_say(
    drawn: list[Step], nodes: int, honest: bool, quiet: bool
) -> None:
    """A wrong count or verdict on some order of sends, receives, restarts and colour changes."""
    _same(drawn, nodes, honest, quiet)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_the_same_on_many_and_longer_logs(part: int) -> None:
    """The same on 5,000 event logs."""
    for number in examples.tonight(250, part):
        chance = random.Random(number)
        _same(at_random(chance, 90), chance.randint(2, 4), chance.random() < 0.5, chance.random() < 0.5)
