"""The rare turns of a run: by its record, whichever cluster it ran on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.history.faults import FaultSpan
from checkers.history.history import History, State
from harness.campaigns.hunt.seeds import try_seed
from harness.judge.evidence.rare_turns import DELETED, DIED_AT_A_MOMENT, OF_ANY_SYSTEM, WRITTEN_ONCE, rows_of
from harness.run.assemble import parts_of
from harness.systems import system_of
from harness.systems.plans import planned
from harness.systems.qsync.rare_turns import MEMBER_CAME_BUSY, counted
from nodes.qsync.sometimes import ROWS, SPLIT_VOTE
from tests.harness.judge.test_judge_attacks import HEADER, PLAN, Run
from tests.harness.runs import recorded


def a_run(*lines: tuple[str, Any]) -> Run:
    run = Run()
    run.serve(1)
    for f, value in lines:
        run.line("info", "harness", f, value=value)
    run.end(1)
    return run


def rare_turns(run: Run) -> dict[str, int]:
    found: dict[str, int] = run.verdict(PLAN.changed(faults=("none",)))["evidence"]["rare_turns"]
    return found


def test_what_nodes_counted_is_in_the_verdict() -> None:
    """If it failed, a night could not say which states its runs reached."""
    found = rare_turns(a_run(("rare-turns", {SPLIT_VOTE: 2, "a row of a different version": 1})))
    assert found[SPLIT_VOTE] == 2
    assert {row: found[row] for row in ROWS if found[row]} == {SPLIT_VOTE: 2}
    assert tuple(found) == rows_of(system_of("qsync"))


@pytest.mark.parametrize("lines", [(), (("rare-turns", "not an object"),)])
def test_a_record_that_does_not_say_claims_nothing_of_nodes(lines: tuple[tuple[str, Any], ...]) -> None:
    """If it failed, the record of an older version would say of every state that its nodes did not reach it."""
    found = rare_turns(a_run(*lines))
    assert not {*ROWS} & {*found}
    assert {*OF_ANY_SYSTEM} <= {*found}


@pytest.mark.parametrize("system", ["qsync", "twophase", pytest.param("txlog", marks=pytest.mark.long)])
def test_the_record_of_a_simulated_run_has_what_its_nodes_counted(system: str) -> None:
    """If it failed, a run of a night would reach other states than the same seed of a hunt."""
    plan = parts_of(planned(system=system, cluster="sim", seed=6, time_limit_s=6.0, rate=40.0)).plan
    run = recorded(plan)
    told = [event for event in run.history.events if event.f == "rare-turns"]
    assert len(told) == 1 and told[0].value
    counted = {row: times for row, times in try_seed(plan).sometimes.items() if times}
    assert {row: counted[row] for row in told[0].value if told[0].value[row]} == {
        row: times for row, times in told[0].value.items() if times
    }


def test_values_of_any_shape_are_no_reason_to_break() -> None:
    """If it failed, a record of odd values would end its judgement with a traceback, not a verdict."""
    run = Run()
    for f, value in (
        ("insert", 3),
        ("insert", {"spaces": 7}),
        ("insert", {"spaces": {"x": []}}),
        ("write", None),
    ):
        run.line("invoke", 0, f, value=value, key="k", node="n1", phase="load")
        run.line("ok", 0, f, value=value, key="k", node="n1", phase="load")
    at = {"id": 0, "name": "kill", "does": "kill", "nodes": ["n3"], "on": {"does": "x"}}
    run.line("invoke", "nemesis", "kill", value=at)
    ends = {"id": 0, "took_effect": True, "healed": True, "evidence": {"counters": {"bytes_lost": "many"}}}
    run.line("info", "nemesis", "kill", value=ends)
    run.end(1)
    found = rare_turns(run)
    assert (found[WRITTEN_ONCE], found[DELETED], found[DIED_AT_A_MOMENT]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("does", "busy_at_ms", "found"),
    [
        ("replace", (0, 10), 0),
        ("replace", (3,), 1),
        ("add", (2, 5), 2),
        ("add", (), 0),
        ("remove", (2, 5), 0),
    ],
)
def test_a_member_that_came_while_the_queue_was_busy(
    does: str, busy_at_ms: tuple[int, ...], found: int
) -> None:
    """If it failed, a night would count a queue that was busy before or after a member came, or while one left, or
    miss one."""
    states = [
        State(index=at, time_ns=at * 1_000_000, node="n1", status={"limbo": 1 if at in busy_at_ms else 0})
        for at in range(12)
    ]
    came = [
        FaultSpan(
            id=number,
            name=does,
            does=does,
            start_index=0,
            start_ns=start * 1_000_000,
            end_ns=end * 1_000_000,
            took_effect=True,
        )
        for number, (start, end) in enumerate([(1, 4), (5, 8)])
    ]
    history = replace(History.of(HEADER, []), faults=tuple(came), states=tuple(states))
    assert counted(PLAN, history)[MEMBER_CAME_BUSY] == found
