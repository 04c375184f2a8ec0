"""Every seeded bug is found, by a stored plan: not by a seed that the next commit shifts.

A plan in `tests/plans` has the name of its bug. Operations are drawn out, and faults hold and kill where the bug shows.
Delays, election timeouts and whatever else the world draws are others with another seed, and it is found all the same.
It must be found by a checker that the bug's entry names, and the same plan without the bug must find nothing.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checkers.logs.wal import NAME as AUDIT
from harness.campaigns.hunt import try_seed
from harness.judge.promised import checks_of
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.systems.plans import read
from harness.workloads import WORKLOADS
from nodes.qsync import bugs
from tests.suites import mostly_long

PLANS = Path(__file__).parent / "plans"
CANNOT_BE_RAISED: dict[str, str] = {}
"""At most three, with the reason."""
STORED = sorted(path.stem for path in PLANS.glob("*.json"))
QUICK = ("confirm-early", "definite-timeout", "filter-by-sender", "no-split-brain-check", "no-term-filter")
QUICK_WITHOUT = ("no-split-brain-check", "no-term-filter", "vote-before-flush", "writable-before-promote")
"""Short runs, whose scenes have little in common."""


def stored(name: str) -> Plan:
    return read(PLANS / f"{name}.json")


def test_every_bug_has_its_plan() -> None:
    """If it failed, a bug could be switched on that nothing is known to find."""
    assert set(STORED) | set(CANNOT_BE_RAISED) == set(bugs.NAMES)
    assert len(CANNOT_BE_RAISED) <= 3


@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_bug_names_checkers_that_there_are(name: str) -> None:
    """If it failed, a bug would be said to be found by a check that nobody runs."""
    plan = stored(name)
    system = parts_of(plan).system
    promise = system.promise(plan)
    of_nodes = system.logs.checks_of_files(plan, {})
    of_logs = system.logs.checks(plan, ())
    run = {check.name for check in (*checks_of(plan, promise), *of_nodes, *of_logs)} | {AUDIT}
    assert set(bugs.bug(name).checkers) & run
    elsewhere = {check.name for each in WORKLOADS.values() for check in each.checks(promise, None)}
    assert set(bugs.bug(name).checkers) <= run | elsewhere


@pytest.mark.parametrize(
    "other", [0, pytest.param(1, marks=pytest.mark.nightly)], ids=["its seed", "another seed"]
)
@pytest.mark.parametrize("name", mostly_long(STORED, quick=QUICK))
def test_a_known_bug_is_found(name: str, other: int) -> None:
    """If it failed, the harness would be blind to a bug that Tarantool really had, or the plan to all but one seed."""
    plan = stored(name)
    assert plan.bugs == (name,)
    assert plan.drawn is not None
    plan = msgspec.structs.replace(plan, seed=plan.seed + other)
    found = try_seed(plan)
    assert found.outcome == "anomaly", found.sentence
    assert set(found.violated) & set(bugs.bug(name).checkers), found.sentence


@pytest.mark.parametrize("name", mostly_long(STORED, quick=QUICK_WITHOUT))
def test_without_its_switch_the_plan_finds_nothing(name: str) -> None:
    """If it failed, the alarm would ring for a store that is in order."""
    clean = try_seed(msgspec.structs.replace(stored(name), bugs=()))
    assert clean.violated == (), clean.sentence
