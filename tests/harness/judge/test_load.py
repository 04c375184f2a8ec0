"""Whether the load came through: by the store's own pace on a busy machine, and never by nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history.history import Header, History
from checkers.history.operation import Event
from harness.judge import Case
from harness.judge.evidence import evidence_of
from harness.plan.plan import Plan
from harness.systems.plans import planned
from harness.systems.qsync.promises import FIXED_OWNER
from tests import examples

HEADER = Header(
    system="qsync",
    cluster="local",
    nodes=("n1", "n2", "n3"),
    quorum=2,
    owner="n1",
    heartbeat_ns=250_000_000,
)
PLAN = planned(configuration="C", rate=300, time_limit_s=20, faults=("pause",))
FAULTS_S = ((1.0, 2.8), (4.0, 5.8), (7.0, 8.8), (10.0, 11.8), (13.0, 14.8), (16.0, 17.8))
WORKERS, PATIENCE_S = 10, 2.0
Behaviour = Callable[[float, int], str]
"""Of the second and the number of an operation → ok, refused or silent."""


def run(behaviour: Behaviour, pace_per_s: float, seconds: float = 20.0) -> History:
    """Every third operation writes. A client whose operation stays without an answer waits for it, and skips."""
    lines: list[tuple[float, dict[str, Any]]] = []
    free_s, number, at_s = [0.0] * WORKERS, 0, 0.0
    while at_s < seconds:
        worker = free_s.index(min(free_s))
        if free_s[worker] <= at_s:
            f = "write" if number % 3 == 0 else "read"
            how = behaviour(at_s, number)
            ends_s = at_s + (PATIENCE_S if how == "silent" else 0.001)
            free_s[worker] = ends_s
            told = {"ok": ("ok", None), "refused": ("fail", "read-only (7)"), "silent": ("info", "timeout")}
            type_, error = told[how]
            of = {"process": number, "f": f, "key": f"k{number}", "node": "n1"}
            lines.append((at_s, {**of, "type": "invoke", "value": number if f == "write" else None}))
            lines.append((ends_s, {**of, "type": type_, "error": error, "value": None, "role": "owner"}))
            number += 1
        at_s += 1 / pace_per_s
    for count, (begin_s, end_s) in enumerate(FAULTS_S):
        fault = {"process": "nemesis", "f": "pause"}
        value = {"id": count, "name": "pause", "does": "pause", "nodes": ["n2"]}
        sure = {"all_in_effect_ns": int(begin_s * 1e9), "heal_asked_ns": int(end_s * 1e9)}
        lines.append((begin_s, {**fault, "type": "invoke", "value": value}))
        told_end = {"id": count, "took_effect": True, "healed": True, **sure}
        lines.append((end_s, {**fault, "type": "info", "value": told_end}))
    lines.sort(key=lambda line: line[0])
    return History.of(
        HEADER,
        [Event(index=index, time_ns=int(at_s * 1e9), **line) for index, (at_s, line) in enumerate(lines)],
    )


def missing(history: History, plan: Plan = PLAN) -> list[str]:
    told = evidence_of(Case(plan, history, given_promise=FIXED_OWNER), ()).missing
    return [text for text in told if text.startswith(("too little load", "too few answers", "no operation"))]


def is_under_fault(at_s: float) -> bool:
    return any(begin_s <= at_s <= end_s for begin_s, end_s in FAULTS_S)


def always(how: str, at_s: float, number: int) -> str:
    return how


def from_then_on(since_s: float, how: str, at_s: float, number: int) -> str:
    """The answers of a store that stands still. Of one that answers one in ten, the others get no answer."""
    if at_s < since_s:
        return "ok"
    if how == "one in ten":
        return "ok" if number % 10 == 0 else "silent"
    if how == "refuses one in ten less":
        return "ok" if number % 10 == 0 else "refused"
    is_write = number % 3 == 0
    if how in ("no writes", "refuses writes"):
        return ("silent" if how == "no writes" else "refused") if is_write else "ok"
    return how


STANDS_STILL = ("silent", "refused", "one in ten", "refuses one in ten less", "no writes", "refuses writes")


@pytest.mark.parametrize("pace_per_s", [300, 60, 20])
def test_a_busy_machine_is_measured_by_its_own_pace(pace_per_s: float) -> None:
    """If it failed, most runs in containers would say nothing, although all that was asked was answered."""
    assert missing(run(partial(always, "ok"), pace_per_s)) == []


def test_a_store_that_serves_little_under_faults_is_enough() -> None:
    """If it failed, a run with long quiet times would be thrown away for want of time under faults."""

    def behaviour(at_s: float, number: int) -> str:
        return "refused" if is_under_fault(at_s) and number % 8 else "ok"

    assert missing(run(behaviour, 100)) == []


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_a_store_that_serves_nothing_under_faults_is_not(how: str) -> None:
    """If it failed, a run that shows a store in fair weather alone would pass for one under faults."""

    def behaviour(at_s: float, number: int) -> str:
        return how if is_under_fault(at_s) else "ok"

    (sentence,) = missing(run(behaviour, 100))
    assert sentence.startswith("too little load under faults: ")


def test_a_pace_that_no_tester_would_take_is_no_load() -> None:
    """If it failed, a run of an operation a second would be judged by its own pace, and be green."""
    (told,) = missing(run(partial(always, "ok"), 5))
    assert told.startswith("too little load: 10") and told.endswith(
        "operations succeeded, expected at least 300"
    )


@pytest.mark.parametrize("how", STANDS_STILL)
@pytest.mark.parametrize("since_s", [0.0, 2.9])
def test_a_store_that_stands_still_says_nothing(how: str, since_s: float) -> None:
    """If it failed, a store that accepts nothing after its first fault, or answers one in ten, would be green."""
    assert missing(run(partial(from_then_on, since_s, how), 100)) != []


def test_the_sentence_says_when_nothing_came() -> None:
    """If it failed, a reader would look for a slow store, and not for one that stopped."""
    told = missing(run(partial(from_then_on, 6.0, "silent"), 100))
    assert any("no operation was answered from 6.0 s to 2" in text for text in told)
    told = missing(run(partial(from_then_on, 6.0, "refuses writes"), 100))
    assert told == ["too few answers to write: there was none from 6.0 s to 20.0 s"]
    told = missing(run(partial(from_then_on, 10.0, "one in ten"), 100))
    assert any(
        "without faults from 1" in text and "at its best the store gave 100 a second" in text for text in told
    )


@examples.up_to(25)
@given(st.floats(0.0, 12.0), st.sampled_from(STANDS_STILL), st.sampled_from((40.0, 90.0, 150.0)))
def test_no_stop_in_the_first_half_is_overlooked(since_s: float, how: str, pace_per_s: float) -> None:
    """If it failed, there would be a moment at which a store may stop for good, and be green."""
    assert missing(run(partial(from_then_on, since_s, how), pace_per_s)) != []


@examples.up_to(15)
@given(st.floats(50.0, 150.0), st.integers(2, 12), st.floats(0.0, 0.5))
def test_no_steady_store_is_blamed(pace_per_s: float, one_in: int, recovers_s: float) -> None:
    """If it failed, a correct store would be inconclusive by chance."""

    def behaviour(at_s: float, number: int) -> str:
        is_hit = any(begin_s <= at_s <= end_s + recovers_s for begin_s, end_s in FAULTS_S)
        return "refused" if is_hit and number % one_in else "ok"

    assert missing(run(behaviour, pace_per_s)) == []


def test_a_pause_of_the_only_node_is_no_standstill() -> None:
    """If it failed, a store that no node was left of would be blamed for its silence."""
    history = run(lambda at_s, number: "silent" if is_under_fault(at_s) else "ok", 100)
    alone = History.of(Header(system="qsync", cluster="local", nodes=("n2",)), history.events)
    assert missing(alone, planned(nodes=1, rate=300, faults=("pause",))) == []
