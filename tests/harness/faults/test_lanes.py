"""Faults beside each other: never more than asked for, never two that cannot be."""

from __future__ import annotations

import itertools

import pytest

from harness.faults.fault import Fault
from harness.faults.lanes import exclude, impossible, lanes_of, meet
from harness.faults.schedule import draw_faults
from harness.plan import Plan


def fault(number: int, does: str, at: int, until: int, *nodes: str) -> Fault:
    return Fault(id=number, name=does, does=does, at_ns=at, until_ns=until, nodes=nodes)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cluster", ["local", "docker", "sim"])
def test_a_drawn_schedule_overlaps_and_keeps_to_what_is_possible(cluster: str, seed: int) -> None:
    """If it failed, a dead process would be paused, or no kill would ever happen inside a partition."""
    plan = Plan(cluster=cluster, overlap=3, nodes=5, seed=seed, time_limit_s=40)
    faults = draw_faults(plan, "n1")
    pairs = [pair for pair in itertools.combinations(faults, 2) if meet(*pair)]
    assert pairs, "nothing overlaps"
    assert not [pair for pair in pairs if exclude(*pair)]
    for each in faults:
        assert sum(other.at_ns <= each.at_ns < other.until_ns for other in faults) <= 3


def test_without_overlap_there_is_one_lane() -> None:
    """If it failed, plans that were stored would no longer be carried out in their order."""
    faults = draw_faults(Plan(seed=3, time_limit_s=30), "n1")
    assert [len(lane) for lane in lanes_of(faults)] == [len(faults)]


def test_what_cannot_be_is_said() -> None:
    """If it failed, an edited plan would ask to pause a dead process, and its evidence would say it did not bite."""
    kill = fault(0, "kill", 0, 10, "n1")
    assert "cannot be at work beside fault 0" in impossible(fault(1, "pause", 5, 15, "n1"), [kill], 2)
    assert impossible(fault(1, "pause", 5, 15, "n2"), [kill], 2) == ""
    assert impossible(fault(1, "pause", 10, 15, "n1"), [kill], 1) == ""
    assert "one after the other" in impossible(fault(1, "pause", 5, 15, "n2"), [kill], 1)
    others = [kill, fault(1, "pause", 0, 10, "n2")]
    assert "one of 3 faults at once" in impossible(fault(2, "pause", 5, 15, "n3"), others, 2)
