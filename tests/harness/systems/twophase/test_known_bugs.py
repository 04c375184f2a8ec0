"""Every seeded bug is found by the level that is responsible for it, and by no other, in a stored plan.

Operations are drawn out, and the deaths that some bugs need come at a moment. `tests/plans/README.md` says more.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from harness.campaigns.hunt import hunted, try_seed
from harness.plan.plan import Plan
from harness.systems.plans import planned, read
from harness.systems.twophase.bug_plans import BUG_PLANS
from nodes.twophase import bugs
from tests.suites import mostly_long

PLANS = Path(__file__).parents[3] / "plans" / "twophase"
STORED = sorted(path.stem for path in PLANS.glob("*.json"))
QUICK = (
    "finish-at-once",
    "idle-not-told",
    "late-marker-restarts",
    "no-markers",
    "node-loss-ignored",
    "restore-of-unfinished",
)
"""The shortest runs: each level finds one of these."""
QUICK_WITHOUT = ("committing-untracked", "idle-not-told", "late-marker-restarts", "node-loss-ignored")
"""A marker, a death, an excluded node and a transaction that is being committed: each in the way of a cut."""


@cache
def stored(name: str) -> Plan:
    return read(PLANS / f"{name}.json")


ANOTHER = {"near-signs-one-phase": 3}
"""How far the other seed is from the plan's, where the next one leaves the bug no opportunity."""


def test_every_bug_has_its_plan() -> None:
    """If it failed, a bug could be switched on that nothing is known to find."""
    assert list(bugs.NAMES) == STORED
    levels = {level for name in STORED for level in bugs.bug(name).checkers}
    assert levels == {level for name in QUICK for level in bugs.bug(name).checkers}
    assert BUG_PLANS.keys() <= {*bugs.NAMES}


@pytest.mark.parametrize(
    "another", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["its seed", "another seed"]
)
@pytest.mark.parametrize("name", mostly_long(STORED, quick=QUICK))
def test_a_known_bug_is_found_by_its_level_alone(name: str, another: bool) -> None:
    """If it failed, a bug would go unseen, or be reported as several."""
    plan = stored(name)
    assert plan.bugs == (name,)
    assert plan.drawn is not None
    other = ANOTHER.get(name, 1) if another else 0
    found = try_seed(msgspec.structs.replace(plan, seed=plan.seed + other))
    assert found.violated == bugs.bug(name).checkers, found.sentence


@pytest.mark.parametrize("name", mostly_long(STORED, quick=QUICK_WITHOUT))
def test_without_its_switch_the_plan_is_valid(name: str) -> None:
    """If it failed, the alarm would ring for a store that is in order, or the plan would show nothing."""
    clean = try_seed(msgspec.structs.replace(stored(name), bugs=()))
    assert (clean.outcome, clean.violated) == ("valid", ()), clean.sentence


@pytest.mark.nightly
@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_hunt_finds_it(name: str) -> None:
    """If it failed, `qsync simulate --system twophase --bug NAME` would find nothing in its first seeds."""
    plans = (planned(system="twophase", cluster="sim", seed=seed, bugs=(name,)) for seed in range(40))
    seen = next((each for plan in plans if (each := try_seed(hunted(plan, frozenset())).violated)), ())
    assert seen and set(bugs.bug(name).checkers) <= {*seen}
