"""Faults beside each other: never more than asked for, never two that cannot be."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults.fault import Fault
from harness.faults.held import SCENIC
from harness.faults.overlap import exclude, hinders_no_owner, impossible, meet, slots_of
from harness.faults.table import FAULTS
from harness.plan.schedule import draw_faults
from harness.systems import SYSTEMS
from harness.systems.plans import planned

DECISIVE = planned().expectations.decisive


def fault(number: int, does: str, at: int, until: int, *nodes: str) -> Fault:
    return Fault(id=number, name=does, does=does, at_ns=at, until_ns=until, nodes=nodes)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cluster", ["local", "docker", "ssh", "sim"])
def test_a_drawn_schedule_overlaps_and_keeps_to_what_is_possible(cluster: str, seed: int) -> None:
    """If it failed, a dead process would be paused, or no kill would ever happen inside a partition."""
    plan = planned(cluster=cluster, overlap=3, nodes=5, seed=seed, time_limit_s=40)
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    pairs = [pair for pair in itertools.combinations(faults, 2) if meet(*pair)]
    assert pairs, "nothing overlaps"
    assert not [pair for pair in pairs if exclude(*pair, plan.expectations.decisive)]
    for each in faults:
        assert sum(other.at_ns <= each.at_ns < other.until_ns for other in faults) <= 3


REAL_FAULTS = {
    cluster: [name for name, kind in FAULTS.items() if cluster in kind.where.clusters and name not in SCENIC]
    for cluster in ("local", "docker", "sim")
}


@given(st.data(), st.sampled_from(sorted(REAL_FAULTS)), st.integers(0, 1 << 40), st.integers(2, 5))
def test_no_schedule_asks_for_what_cannot_be(
    data: st.DataObject, cluster: str, seed: int, overlap: int
) -> None:
    """If it failed, a dead node would be paused, the files of a running one damaged, or one disk full and broken."""
    names = data.draw(st.lists(st.sampled_from(REAL_FAULTS[cluster]), min_size=2, unique=True))
    names += ["remove-node"] * ("add-node" in names and "remove-node" not in names)
    names += ["rolling-upgrade"] * ("rolling-downgrade" in names and "rolling-upgrade" not in names)
    nodes = data.draw(st.integers(3, 5))
    plan = planned(
        cluster=cluster, overlap=overlap, nodes=nodes, seed=seed, time_limit_s=40, faults=tuple(names)
    )
    plan = plan if cluster == "sim" else msgspec.structs.replace(plan, node_from="older.whl")
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    for one, other in itertools.combinations(faults, 2):
        if not meet(one, other):
            continue
        both = {*one.nodes} & {*other.nodes}
        kinds = {one.does, other.does}
        stopping = {"kill", "terminate", "pause", "power", "damage", "upgrade", "downgrade"}
        assert not both or not kinds <= stopping | {"disk-error"}, (one, other)
        assert not both or not kinds <= {"disk-error", "slow-fsync"}, (one, other)
        assert kinds != {"failover"}
    for slot in slots_of(faults):
        assert all(before.until_ns <= after.at_ns for before, after in itertools.pairwise(slot))


def test_without_overlap_there_is_one_slot() -> None:
    """If it failed, plans that were stored would no longer be carried out in their order."""
    faults = draw_faults(planned(seed=3, time_limit_s=30), "n1", SYSTEMS["qsync"])
    assert [len(slot) for slot in slots_of(faults)] == [len(faults)]


def test_what_cannot_be_is_said() -> None:
    """If it failed, an edited plan would ask to pause a dead process, and its evidence would say it took no effect."""
    kill = fault(0, "kill", 0, 10, "n1")
    assert "cannot be at work beside fault 0" in impossible(
        fault(1, "pause", 5, 15, "n1"), [kill], 2, DECISIVE
    )
    assert impossible(fault(1, "pause", 5, 15, "n2"), [kill], 2, DECISIVE) == ""
    assert impossible(fault(1, "pause", 10, 15, "n1"), [kill], 1, DECISIVE) == ""
    assert "one after the other" in impossible(fault(1, "pause", 5, 15, "n2"), [kill], 1, DECISIVE)
    others = [kill, fault(1, "pause", 0, 10, "n2")]
    assert "one of 3 faults at once" in impossible(fault(2, "pause", 5, 15, "n3"), others, 2, DECISIVE)


@pytest.mark.parametrize(
    ("one", "other", "on_one_node", "on_two", "where_clocks_are_virtual"),
    [
        ("kill", "pause", True, False, True),
        ("kill", "cpu-limit", True, False, True),
        ("cpu-limit", "memory-limit", True, False, True),
        ("disk-error", "kill", True, False, True),
        ("disk-error", "oom", True, False, True),
        ("disk-error", "slow-fsync", True, False, True),
        ("slow-fsync", "kill", False, False, False),
        ("clock", "clock", True, False, False),
        ("failover", "failover", True, True, True),
        ("failover", "remove", True, False, True),
        ("failover", "kill", False, False, False),
        ("restart", "options", True, True, True),
        ("add", "replace", True, True, True),
        ("restart", "cut", False, False, False),
    ],
)
def test_the_pairs_that_exclude_each_other(
    one: str, other: str, on_one_node: bool, on_two: bool, where_clocks_are_virtual: bool
) -> None:
    """If it failed, two faults would undo each other's work, or a pair that finds bugs would never be drawn."""
    for first, second in ((one, other), (other, one)):
        began = fault(0, first, 0, 10, "n1")
        beside, apart = fault(1, second, 5, 15, "n1"), fault(1, second, 5, 15, "n2")
        assert exclude(began, beside, DECISIVE, is_real=True) is on_one_node
        assert exclude(began, apart, DECISIVE, is_real=True) is on_two
        assert exclude(began, beside, DECISIVE) is where_clocks_are_virtual


def test_no_node_is_promoted_while_modes_of_elections_change() -> None:
    """If it failed, a PROMOTE without a vote would take the queue from its owner, and a right store be accused."""
    promotion = fault(0, "failover", 0, 10, "n1")
    for option, is_so in ((DECISIVE.elections, True), ("some_timeout", False)):
        change = msgspec.structs.replace(fault(1, "options", 5, 15, "n2"), options={option: 1})
        assert exclude(promotion, change, DECISIVE) is exclude(change, promotion, DECISIVE) is is_so
    assert hinders_no_owner("clock", (), DECISIVE)
    assert not hinders_no_owner("clock", (DECISIVE.quorum,), DECISIVE)
    assert not hinders_no_owner("kill", (), DECISIVE)


def test_a_fault_may_begin_when_another_ends() -> None:
    """If it failed, faults that touch would count as two at once, and take two slots."""
    before, behind = fault(0, "kill", 0, 10, "n1"), fault(1, "pause", 10, 15, "n1")
    assert not meet(before, behind) and not meet(behind, before)
    assert slots_of([behind, before]) == [[before, behind]]
