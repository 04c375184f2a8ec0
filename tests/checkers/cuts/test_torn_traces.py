"""A trace with rows missing: no cut is judged by what is not there, and none that could be judged is left open."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.cuts import Cut, Given, check, messages, proofs, verify
from checkers.cuts.trace import LifeRows, trace_of
from tests import examples
from tests.checkers.cuts import scripts, twin_messages
from tests.checkers.cuts.drawn_traces import CUTS, Step, at_random, executed, steps

TORN = {("n2", 1): "n2.jsonl line 9 is torn"}

OPEN: dict[str, tuple[dict[str, str], Mapping[tuple[str, int], str], str]] = {
    "the send is not recorded": ({"n1": "*k1", "n2": "-z *k1"}, {}, "whose send is not recorded"),
    "the sender is torn, and its message came": ({"n1": "*k1", "n2": "+b>n1 -z *k1"}, TORN, "not recorded"),
    "the colour change may be lost": ({"n1": "*k1 +a>n2", "n2": "-a"}, TORN, "torn"),
    "what was taken before the next life is lost": ({"n1": "*k1 +a>n2", "n2": "+b>n1 | *k1"}, TORN, "torn"),
}
JUDGED: dict[str, tuple[dict[str, str], Mapping[tuple[str, int], str], str]] = {
    "torn behind the colour change": ({"n1": "*k1 +a>n2", "n2": "*k1 -a"}, TORN, "valid"),
    "back before the cut": ({"n1": "+a>n2 +b>n2 +c>n2 *k1", "n2": "-a | -b *k1"}, TORN, "valid"),
    "a message from outside, for all that": ({"n1": "*k1 +a>n2", "n2": "-a *k1"}, TORN, "invalid"),
    "the colour change is the last row": ({"n1": "*k1 +a>n3", "n2": "*k1", "n3": "*k1 -a"}, TORN, "valid"),
    "a life before knew it": ({"n0": "*k1 -a", "n1": "-x | *k1 +a>n0", "n2": "*k1 +x>n1"}, {}, "invalid"),
    "the whole sender is inside": ({"n1": "*k1 +a>n2", "n2": "*k1 -a"}, {("n1", 1): "torn"}, "valid"),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_cut_that_a_loss_touches_is_open(name: str) -> None:
    """A green light although a row that would say otherwise may be lost."""
    script, torn, why = OPEN[name]
    trace = scripts.trace(script, torn)
    report = check(Given(cuts=[Cut(id="k1")], trace=trace))
    said = report.of("messages", "k1")
    assert said.result == "unknown", said.summary
    assert why in said.summary
    forged = proofs.frontier(trace, messages.judge(trace, ["k1"]), 0)
    with pytest.raises(verify.RefusedError):
        verify.check(trace, "k1", "valid", forged)


@pytest.mark.parametrize("name", JUDGED)
def test_a_cut_that_no_loss_touches_is_judged(name: str) -> None:
    """One kill would leave all later cuts of a run open."""
    script, torn, result = JUDGED[name]
    trace = scripts.trace(script, torn)
    said = check(Given(cuts=[Cut(id="k1")], trace=trace)).of("messages", "k1")
    assert said.result == result, said.summary
    assert said.proof is not None
    verify.check(trace, "k1", result, said.proof)


def test_a_gap_in_the_numbers_is_a_loss() -> None:
    """Rows lost from the middle of a life go unnoticed."""
    rows = [
        ["send", 1, "n2", "w", None, 10],
        ["send", 3, "n2", "w", None, 20],
        ["mark", "cut", {"cut": "k1"}, 30],
    ]
    other = [["mark", "cut", {"cut": "k1"}, 5]]
    lives = [LifeRows(node="n1", life=1, rows=rows), LifeRows(node="n2", life=1, rows=other)]
    said = check(Given(cuts=[Cut(id="k1")], trace=trace_of(lives))).of("messages", "k1")
    assert said.result == "unknown"
    assert said.summary == "n1 (life 1) has no row of message 2"


def _sends(*rows: tuple[int, int]) -> list[list[object]]:
    return [["send", seq, "n2", "w", None, ns] for seq, ns in rows]


def _change(ns: int) -> list[object]:
    return ["mark", "cut", {"cut": "k1"}, ns]


def _taken(node: str, seq: int, ns: int) -> list[object]:
    return ["receive", node, 1, seq, ns]


LOST_ROWS: dict[str, tuple[list[LifeRows], int, str]] = {
    "the message behind a gap is another one": (
        [
            LifeRows(node="n1", life=1, rows=[*_sends((1, 10), (3, 20)), _change(30), *_sends((4, 40))]),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 3, 50), _change(60)]),
        ],
        *(-1, "valid"),
    ),
    "a message from the gap is none behind it": (
        [
            LifeRows(node="n1", life=1, rows=[*_sends((1, 10)), _change(30), *_sends((3, 40))]),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 2, 50), _change(60)]),
        ],
        *(-1, "unknown"),
    ),
    "it was taken before the cut began": (
        [
            LifeRows(node="n1", life=1, rows=[*_sends((1, 10), (3, 20)), _change(30)]),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 2, 25), _change(60)]),
        ],
        *(-1, "valid"),
    ),
    "a lost colour change came before the first recorded one": (
        [
            LifeRows(node="n1", life=1, rows=[*_sends((1, 5)), _taken("n2", 1, 20), _change(50)]),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 1, 10)], torn="its end is torn", over_ns=15),
        ],
        *(-1, "unknown"),
    ),
    "a torn life was over before the cut was asked for": (
        [
            LifeRows(node="n1", life=1, rows=[*_sends((1, 5)), _change(50)]),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 1, 10)], torn="its end is torn", over_ns=15),
        ],
        *(40, "valid"),
    ),
    "all of the life that sent it is inside": (
        [
            LifeRows(node="n1", life=1, rows=_sends((1, 10)), torn="its end is torn"),
            LifeRows(node="n1", life=2, rows=[_change(40)], time_ns=31),
            LifeRows(node="n2", life=1, rows=[_taken("n1", 2, 45), _change(60)]),
        ],
        *(-1, "valid"),
    ),
}


@pytest.mark.parametrize("name", LOST_ROWS)
def test_what_is_lost_is_told_by_numbers_and_times(name: str) -> None:
    """A green light, or an alarm, that rests on a message or a colour change that was lost."""
    lives, asked_ns, result = LOST_ROWS[name]
    trace = trace_of(lives)
    said = check(Given(cuts=[Cut(id="k1", asked_ns=asked_ns)], trace=trace)).of("messages", "k1")
    assert said.result == result, said.summary
    if said.proof is not None:
        verify.check(trace, "k1", result, said.proof, asked_ns=asked_ns)


@pytest.mark.parametrize(
    "script",
    [{"n1": "-b *k1 +a>n2", "n2": "-a *k1 +b>n1"}, {"n1": "-a *k1 +a>n1", "n2": "*k1"}],
    ids=["a circle of two", "a message to itself, taken before it was sent"],
)
def test_an_event_before_itself_breaks_the_recording(script: dict[str, str]) -> None:
    """A recording that cannot have happened is judged as if it had."""
    report = check(Given(cuts=[Cut(id="k1")], trace=scripts.trace(script)))
    assert report.of("messages", "k1").result == "unknown"
    assert "the recording is broken" in report.notes[0]


def test_numbers_that_go_back_break_the_recording() -> None:
    """Two messages of one number are matched at random."""
    rows = [
        ["send", 1, "n2", "w", None, 1],
        ["send", 1, "n2", "w", None, 2],
        ["mark", "cut", {"cut": "k1"}, 3],
    ]
    report = check(Given(cuts=[Cut(id="k1")], trace=trace_of([LifeRows(node="n1", life=1, rows=rows)])))
    assert report.of("messages", "k1").summary.startswith(
        "the recording is broken: n1 (life 1) gave message 1"
    )


def _never_wrong(
    drawn: list[Step], nodes: int, honest: bool, timed: bool, lost: list[tuple[int, int, bool]]
) -> None:
    whole = executed(drawn, nodes=nodes, honest=honest, quiet=len(drawn) % 2 == 0)
    lives = list(whole)
    for which, count, in_the_middle in lost:
        place = which % len(lives)
        life = lives[place]
        sends = [at for at, row in enumerate(life.rows) if row[0] == "send"]
        if in_the_middle and sends:
            at = sends[count % len(sends)]
            lives[place] = replace(life, rows=(*life.rows[:at], *life.rows[at + 1 :]))
            if at == sends[-1]:
                lives[place] = replace(lives[place], torn="its last row is torn")
        elif not in_the_middle:
            kept = max(0, len(life.rows) - count)
            lives[place] = replace(life, rows=life.rows[:kept], torn="its last row is torn")
    changed = [
        [row[3] for each in whole for row in each.rows if row[:3] == ["mark", "cut", {"cut": cut}]]
        for cut in CUTS
    ]
    asked = [min(times, default=-1) if timed else -1 for times in changed]
    ended = [max(times, default=-1) if timed else -1 for times in changed]
    trace = trace_of(lives)
    said = messages.judge(trace, CUTS, asked, ended)
    for place, twin in enumerate(twin_messages.judged(whole, CUTS)):
        if not said.marked[place].any():
            continue
        if said.counts[place]:
            assert not twin.is_consistent, "a violation that is none in the whole trace"
            verify.check(trace, CUTS[place], "invalid", proofs.message(trace, said, place))
        elif not said.unknown[place]:
            assert twin.is_consistent, "a violation was lost with the rows, and it is not said"
            proof = proofs.frontier(trace, said, place)
            verify.check(trace, CUTS[place], "valid", proof, asked_ns=asked[place], ended_ns=ended[place])


LOST = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 6), st.booleans()), max_size=2)


@given(steps(), st.integers(2, 4), st.booleans(), st.booleans(), LOST)
@examples.up_to(250)
def test_what_is_said_of_a_torn_trace_is_true_of_the_whole_one(
    drawn: list[Step], nodes: int, honest: bool, timed: bool, lost: list[tuple[int, int, bool]]
) -> None:
    """A verdict that lost rows would overturn."""
    _never_wrong(drawn, nodes, honest, timed, lost)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_the_same_of_many(part: int) -> None:
    """The same on 5,000 traces."""
    for number in examples.tonight(250, part):
        chance = random.Random(number)
        lost = [
            (chance.randrange(8), chance.randrange(7), chance.random() < 0.4)
            for _ in range(chance.randint(1, 2))
        ]
        drawn = at_random(chance, 60)
        _never_wrong(drawn, chance.randint(2, 4), chance.random() < 0.5, chance.random() < 0.5, lost)
