"""The rare turns of a run: by its record, whichever cluster it ran on."""

from __future__ import annotations

from typing import Any

import pytest

from harness.hunt.seeds import try_seed
from harness.judge.rare_turns import DELETED, DIED_AT_A_MOMENT, OF_ANY_SYSTEM, WRITTEN_ONCE, rows_of
from harness.systems import system_of
from harness.systems.plans import planned
from nodes.qsync.sometimes import ROWS, SPLIT_VOTE
from tests.harness.judge.test_judge_attacks import PLAN, Run
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


@pytest.mark.parametrize("system", ["qsync", "twophase", "txlog"])
def test_the_record_of_a_simulated_run_has_what_its_nodes_counted(system: str) -> None:
    """If it failed, a run of a night would reach other states than the same seed of a hunt."""
    plan = planned(system=system, cluster="sim", seed=6, time_limit_s=6.0, rate=40.0)
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
