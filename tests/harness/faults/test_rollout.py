"""Rolling upgrades in a schedule: whose turn it is, what lies between the steps, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import WrongUse
from harness.faults.rollout import Rollout
from harness.plan.plan import Drawn, Plan
from harness.plan.schedule import draw_faults, names_for
from harness.run.draw import refuse_impossible
from harness.systems import SYSTEMS
from harness.systems.plans import planned
from harness.systems.qsync.system import Qsync
from harness.workloads import WORKLOADS
from tests.harness.faults.test_membership import fault


def plan(*faults: str, **given: Any) -> Plan:
    return planned(faults=faults, node_from="older.whl", time_limit_s=60, **given)


@pytest.mark.parametrize("nodes", [3, 5])
def test_each_node_has_its_turn_once_and_other_faults_lie_between(nodes: int) -> None:
    """Broken, a node is upgraded twice or never, or all are before anything else goes wrong."""
    drawn = draw_faults(plan("rolling-upgrade", "kill", "isolate-owner", nodes=nodes), "n1", SYSTEMS["qsync"])
    steps = [each for each in drawn if each.does == "upgrade"]
    assert sorted(step.nodes[0] for step in steps) == [f"n{number + 1}" for number in range(nodes)]
    assert all(len(step.nodes) == 1 for step in steps)
    between = [each for each in drawn if steps[0].at_ns < each.at_ns < steps[-1].at_ns]
    assert {each.does for each in between} == {"upgrade", "kill", "cut"}


def test_the_way_back_follows_the_way_there() -> None:
    """Broken, a node goes back to a version that it never left, or the downgrade is never drawn."""
    drawn = draw_faults(plan("rolling-upgrade", "rolling-downgrade"), "n1", SYSTEMS["qsync"])
    assert [each.does for each in drawn][:7] == ["upgrade"] * 3 + ["downgrade"] * 3 + ["upgrade"]
    assert {each.nodes for each in drawn[:3]} == {each.nodes for each in drawn[3:6]}


def test_who_has_left_has_no_turn() -> None:
    """Broken, a step waits for a node that is no member."""
    rollout = Rollout(("n3", "n1", "n2"))
    assert rollout.step(("n1", "n2")) == ("rolling-upgrade", "n1")
    assert rollout.step(()) is None


def test_rolling_means_what_can_be_done() -> None:
    """Broken, `rolling` leaves the upgrade out, or asks for it where there is one version only."""
    assert names_for(plan("rolling")) == ("rolling-restart", "rolling-upgrade")
    assert names_for(planned(faults=("rolling",))) == ("rolling-restart",)
    assert names_for(planned(faults=("rolling",), cluster="sim")) == ("rolling-restart",)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (planned(faults=("rolling-upgrade",)), "--node-from"),
        (planned(faults=("rolling-upgrade",), cluster="sim"), "in one process"),
        (plan("rolling-downgrade"), "comes after an upgrade"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(asked: Plan, why: str) -> None:
    """Broken, a run begins that can do nothing of what it was asked for."""
    with pytest.raises(WrongUse, match=why):
        names_for(asked)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((("upgrade", 1, "n1"), ("upgrade", 3, "n1")), "runs the newer version already"),
        ((("downgrade", 1, "n1"),), "runs the older version"),
    ],
)
def test_a_written_plan_keeps_the_order(steps: tuple[tuple[str, int, str], ...], why: str) -> None:
    """Broken, a plan that people wrote has a step that can have no effect."""
    faults = tuple(fault(number, does, at_s, node) for number, (does, at_s, node) in enumerate(steps))
    with pytest.raises(WrongUse, match=why):
        refuse_impossible(plan(drawn=Drawn(faults=faults, operations=())), Qsync(), WORKLOADS["register"])
