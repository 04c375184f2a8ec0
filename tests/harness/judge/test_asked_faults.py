"""A fault that somebody asked for by name was felt, or the run is no evidence and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history.history import History
from harness.campaigns.hunt.seeds import try_seed
from harness.faults.fault import Fault
from harness.judge.evidence.named_faults import absent_of_a_group, never_in_effect
from harness.pages.terminal.last_screen import last_screen
from harness.plan.plan import Drawn, Plan
from harness.systems.plans import planned
from tests.harness.judge.test_judge_attacks import HEADER, PLAN, Run, missing

PAUSE = Fault(id=0, name="pause", does="pause", at_ns=0, until_ns=1, nodes=("n2",))


def asking(*faults: str, **others: Any) -> Plan:
    return PLAN.changed(faults=faults, **others)


def a_run(*in_effect: str) -> Run:
    run = Run()
    run.serve()
    for name in in_effect:
        run.fault(took_effect=True, name=name)
    run.serve(1)
    run.end(1)
    return run


def leave_out(run: Run, name: str, why: str) -> None:
    run.events.insert(0, run.events[0])
    run.line("info", "harness", "skipped-fault", value={"fault": {"id": 9, "name": name}, "why": why})
    run.events[:] = [
        msgspec.structs.replace(event, index=index) for index, event in enumerate(run.events[1:])
    ]


def test_a_fault_that_there_was_no_room_for_makes_no_green_run() -> None:
    """If it failed, somebody would be told that a store survives power losses which never happened."""
    verdict = a_run("pause").verdict(asking("pause", "power-owner"))
    assert (
        "the fault power-owner was asked for and never took effect: there was no room for it in 1 s"
        in missing(verdict)
    )
    assert verdict["evidence"]["not_observed"] == ["power-owner"]
    assert a_run("pause").verdict(asking("pause"))["outcome"] == "valid"
    assert a_run("pause", "power-owner").verdict(asking("pause", "power-owner"))["outcome"] == "valid"


def test_why_a_fault_was_left_out_is_said() -> None:
    """If it failed, nobody would know what to change so that the fault happens."""
    run = a_run("pause")
    leave_out(run, "kill", "its node had left")
    told = missing(run.verdict(asking("pause", "kill")))
    assert "the fault kill was asked for and never took effect: it was skipped once because its node" in told


def test_a_fault_that_others_kept_from_being_felt_each_time_is_missing() -> None:
    """If it failed, faults that come upon each other could excuse each other for a whole run."""
    run = Run()
    run.serve()
    run.line("invoke", "nemesis", "kill", value={"id": 0, "name": "kill", "does": "kill", "nodes": ["n3"]})
    run.fault(took_effect=True)
    run.line("info", "nemesis", "kill", value={"id": 0, "took_effect": False, "healed": True})
    run.serve(1)
    run.end(1)
    assert "the fault kill was asked for and never took effect: it began once" in missing(
        run.verdict(asking("pause", "kill", overlap=2))
    )


def test_all_asks_for_none_in_particular_but_tells_which_there_were_not() -> None:
    """If it failed, no short run could be evidence, or nobody would see what it was no evidence of."""
    verdict = a_run("pause").verdict(asking("all"))
    assert verdict["outcome"] == "valid"
    assert "kill" in verdict["evidence"]["not_observed"]
    assert "pause" not in verdict["evidence"]["not_observed"]
    assert verdict["evidence"]["observed"] == ["pause"]
    assert "faults that took effect (1 of 1): pause; never: isolate-owner" in last_screen(
        verdict, Path("run")
    )


def test_of_a_name_for_several_one_is_enough_and_the_others_are_told() -> None:
    """If it failed, `--faults lose-unsynced` would need the time for all three, or hide that two never came."""
    plan = asking("lose-unsynced")
    verdict = a_run("power-one").verdict(plan)
    assert verdict["outcome"] == "valid"
    (finding,) = [found for found in verdict["findings"] if found["checker"] == "faults"]
    assert finding["summary"] == (
        "of lose-unsynced, which was asked for, these never took effect: power-owner, power-all"
    )
    never = a_run("pause").verdict(asking("pause", "lose-unsynced"))
    assert "the fault lose-unsynced was asked for and never took effect" in missing(never)
    for word in ("lose-unsynced", "rolling"):  # without --node-from, "rolling" asks for no upgrade
        assert not list(absent_of_a_group(asking("pause", word), _history(a_run("pause"))))


def test_steered_faults_are_asked_for_by_one_name() -> None:
    """If it failed, `holds` would be missing in every run, or in none."""
    run = a_run("pause")
    assert "the fault holds was asked for and never took effect" in missing(
        run.verdict(asking("pause", "holds"))
    )
    assert _with_a_hold(took_effect=True).verdict(asking("pause", "holds"))["outcome"] == "valid"
    told = missing(_with_a_hold(took_effect=False).verdict(asking("pause", "holds")))
    assert "the fault holds was asked for and never took effect: it began once" in told


def _with_a_hold(*, took_effect: bool) -> Run:
    run = Run()
    run.serve()
    run.fault(took_effect=True)
    value = {"id": 1, "name": "confirm-held", "does": "hold", "nodes": ["n1"]}
    run.line("invoke", "nemesis", "confirm-held", value=value)
    run.line("info", "nemesis", "confirm-held", value={"id": 1, "took_effect": took_effect, "healed": True})
    run.serve(1)
    run.end(1)
    return run


def test_a_plan_that_is_drawn_out_asks_for_what_stands_in_it() -> None:
    """If it failed, a plan whose only kill was left out would be green, or one that was cut down never could be."""
    kill = msgspec.structs.replace(PAUSE, id=1, name="kill", does="kill")
    plan = asking("pause", "slow", drawn=Drawn(faults=(PAUSE, kill), operations=()))
    assert never_in_effect(plan, _history(a_run("pause"))) == ["kill"]
    assert never_in_effect(plan, _history(a_run("pause", "kill"))) == []


@pytest.mark.parametrize("word", ["rolling-downgrade", "rolling-upgrade"])
def test_a_change_of_versions_that_never_came_is_missing(word: str) -> None:
    """If it failed, an upgrade or the way back from it would be certified that nobody has tried."""
    names = ("rolling-upgrade", "rolling-downgrade")
    plan = msgspec.structs.replace(asking("pause", *names), cluster="local", node_from="1")
    run = a_run("pause")
    other = next(name for name in names if name != word)
    run_with_other = Run()
    run_with_other.serve()
    for number, node in enumerate(("n1", "n2", "n3")):
        does = other.removeprefix("rolling-")
        value = {"id": number, "name": other, "does": does, "nodes": [node]}
        run_with_other.line("invoke", "nemesis", other, value=value)
        run_with_other.line(
            "info", "nemesis", other, value={"id": number, "took_effect": True, "healed": True}
        )
    run_with_other.fault(took_effect=True)
    run_with_other.serve(1)
    run_with_other.end(1)
    for each in (run, run_with_other):
        told = missing(each.verdict(plan))
        expected = "upgrade did not come" if word == "rolling-upgrade" else f"the fault {word} was asked for"
        assert expected in told


def test_a_plan_that_nobody_knows_any_more_can_still_be_judged() -> None:
    """If it failed, an old run with a fault that was renamed could not be judged again."""
    assert never_in_effect(asking("a-fault-of-old"), _history(a_run("pause"))) == []


def _history(run: Run) -> History:
    return History.of(HEADER, run.events)


def test_a_seed_need_not_have_room_for_faults_that_nobody_named() -> None:
    """If it failed, a hunt would be no evidence for what its own dice had asked for and left no room for."""
    plan = planned(cluster="sim", faults=("isolate-one", "clock", "pause"), time_limit_s=5, rate=60, seed=1)
    named, drawn = try_seed(plan), try_seed(plan, has_drawn_faults=True)
    assert named.outcome == "inconclusive", named.sentence
    assert "was asked for and never took effect" in named.sentence
    assert drawn.outcome == "valid", drawn.sentence
