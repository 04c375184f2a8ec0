"""Hunting in the simulator: known bugs are found, a store without one is left in peace."""

from __future__ import annotations

import multiprocessing

import pytest

from harness.campaigns.hunt import Tried, hunt, try_seed
from harness.errors import ClusterError
from harness.plan.plan import Plan
from harness.systems.plans import planned
from harness.systems.qsync.system import Qsync
from tests.harness.runs import small

DEFAULT = planned(cluster="sim")
BUGS = ("confirm-early", "ack-before-fsync")


def tried(plan: Plan, seeds: range) -> list[Tried]:
    return list(hunt(plan, seeds, jobs=1))


@pytest.mark.parametrize(
    ("bug", "fields"),
    [
        ("confirm-early", {"time_limit_s": 8.0, "rate": 60.0}),
        *(pytest.param(bug, {}, marks=pytest.mark.long) for bug in BUGS),
    ],
)
def test_a_known_bug_is_found(bug: str, fields: dict[str, float]) -> None:
    """If it failed, the whole spine would be blind: a store that loses acknowledged writes would pass."""
    (one,) = tried(DEFAULT.changed(configuration="C", bugs=(bug,), **fields), range(3, 4))
    assert (one.outcome, one.exit_code) == ("anomaly", 1)
    assert {"linearizable", "convergence"} & set(one.violated)
    assert one.sentence


@pytest.mark.nightly
@pytest.mark.parametrize("bug", BUGS)
def test_a_known_bug_is_found_for_nine_of_ten_seeds(bug: str) -> None:
    """If it failed, whether a bug is found would be a matter of luck."""
    found = tried(DEFAULT.changed(configuration="C", bugs=(bug,)), range(100, 110))
    assert sum(one.exit_code == 1 for one in found) >= 9


def test_a_short_run_without_a_bug_is_left_in_peace() -> None:
    """If it failed, an alarm would be no reason to look."""
    (one,) = tried(DEFAULT.changed(time_limit_s=8.0, rate=60.0), range(1))
    assert (one.outcome, one.exit_code, one.violated) == ("valid", 0, ()), one.sentence
    assert one.ok >= 200 and one.kinds_in_effect >= 2


@pytest.mark.nightly
def test_a_store_without_a_bug_is_left_in_peace() -> None:
    """If it failed, a run of the usual length would end in an alarm, or without evidence."""
    found = tried(DEFAULT, range(2))
    assert [(one.outcome, one.exit_code) for one in found] == [("valid", 0)] * 2
    assert all(one.ok >= 2_000 and one.kinds_in_effect >= 3 for one in found)
    assert all(one.violated == () for one in found)


@pytest.mark.nightly
@pytest.mark.parametrize("first_seed", range(0, 150, 30))
def test_a_hundred_and_fifty_seeds_without_an_anomaly(first_seed: int) -> None:
    """If it failed, a rare schedule would make a false alarm, or would have found a real bug of the node."""
    found = list(hunt(DEFAULT, range(first_seed, first_seed + 30), jobs=2))
    assert len(found) == 30
    assert [one for one in found if one.exit_code != 0] == []


@pytest.mark.long
def test_every_seed_is_tried_once_in_whatever_order() -> None:
    """If it failed, a hunt over several processes would leave seeds out, or give other results than one process."""
    plan = small(time_limit_s=1.0, faults=("none",))
    together = list(hunt(plan, range(20, 23), jobs=2))
    assert sorted(together, key=lambda one: one.seed) == tried(plan, range(20, 23))


@pytest.mark.long
def test_a_hunt_that_is_stopped_leaves_nothing_running() -> None:
    """If it failed, `qsync simulate` would go on after it found its anomaly."""
    plan = small(time_limit_s=2.0, faults=("none",))
    hunted = hunt(plan, range(1_000_000), jobs=2)
    first = next(hunted)
    assert first.outcome == "valid"
    assert tried(plan, range(first.seed, first.seed + 1)) == [first], "another process finds the same"
    hunted.close()  # type: ignore[attr-defined]  # it is a generator
    assert multiprocessing.active_children() == []


def test_a_cluster_that_does_not_start_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a plan that cannot run would pass in silence, or stop the hunt."""

    async def fails(*_: object) -> None:
        raise ClusterError("the nodes did not find each other")

    monkeypatch.setattr(Qsync, "set_up", fails)
    one = try_seed(small())
    assert (one.outcome, one.exit_code, one.ok) == ("inconclusive", 3, 0)
    assert "the nodes did not find each other" in one.sentence
