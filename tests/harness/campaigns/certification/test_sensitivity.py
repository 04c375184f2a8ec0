"""The words about a bug: found, missed, not measured; and which runs are tried."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.campaigns import plan as campaign_plan
from harness.campaigns.certification import sensitivity
from harness.campaigns.certification.sensitivity import (
    Done,
    _Book,
    measure,
    promising,
    simulated,
    spread_evenly,
)
from harness.campaigns.hunt.seeds import Tried
from harness.campaigns.plan import Campaign
from harness.plan.plan import Plan
from harness.systems.plans import planned
from harness.systems.qsync.system import Qsync

TEXT = """
name = "measured"
seeds = 2
first_seed = 5
[plan]
cluster = "sim"
time_limit_s = 8
faults = "kill"
[matrix]
configuration = ["C", "H"]
"""


def campaign(folder: Path, text: str = TEXT) -> Campaign:
    (folder / "measured.toml").write_text(text)
    return campaign_plan.read(folder / "measured.toml")


def tried(plan: Plan, outcome: str) -> Tried:
    violated = ("linearizable",) if outcome == "anomaly" else ()
    return Tried(
        seed=plan.seed,
        outcome=outcome,
        exit_code=0,
        sentence=f"it is {outcome}",
        violated=violated,
        ok=1,
        kinds_in_effect=1,
        rollbacks=0,
        configuration="C",
        workload="register",
        cuts=0,
        sometimes={"a turn": 2},
        again=f"./qsync run --seed {plan.seed}",
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The runs that were tried: a bug named "found" is found by the last of them, one named "empty" is inconclusive."""
    seen: list[Plan] = []

    def try_once(plan: Plan) -> Tried:
        seen.append(plan)
        bug = plan.bugs[0] if plan.bugs else ""
        is_last = plan.seed == 6 and plan.expectations.configuration == "H"
        return tried(
            plan,
            {"no-term-filter": "inconclusive", "confirm-early": "anomaly" if is_last else "valid"}.get(
                bug, "valid"
            ),
        )

    monkeypatch.setattr(sensitivity, "try_once", try_once)
    monkeypatch.setattr(
        Qsync,
        "bugs",
        lambda self: dict.fromkeys(("confirm-early", "duplicate-confirm", "no-term-filter"), "a bug"),
    )
    return seen


def measured(
    folder: Path, runs_per_bug: int, time_limit_s: float = 600.0, **more: Any
) -> sensitivity.Measured:
    return measure(
        campaign(folder, **more),
        runs_per_bug,
        1,
        time_limit_s,
        kept_in=folder / "kept",
        code="c",
        tell=lambda line: None,
    )


def test_missed_means_that_every_run_was_tried(calls: list[Plan], tmp_path: Path) -> None:
    """If it failed, a small budget would make a matrix look blind, or one that is blind look unmeasured."""
    whole = measured(tmp_path, 4)
    assert [bug.word for bug in whole.bugs] == ["found", "missed", "not measured"]
    assert whole.bugs[0].by == ("linearizable",)
    assert whole.bugs[0].runs == whole.runs_of_matrix == 4
    assert "none of 4 runs is conclusive" in whole.bugs[2].why
    assert whole.sentence == "1 of 3 seeded bugs found, 1 missed, 1 not measured"
    few = measured(tmp_path, 2)
    assert [bug.word for bug in few.bugs] == ["not measured"] * 3
    assert few.bugs[1].why == "no anomaly in 2 of the 4 runs of the matrix"


def test_time_that_is_over_is_not_a_miss(calls: list[Plan], tmp_path: Path) -> None:
    """If it failed, a slow machine would turn bugs into missed ones."""
    cut = measured(tmp_path, 4, time_limit_s=-1.0)
    assert calls == []
    assert {bug.word for bug in cut.bugs} == {"not measured"}
    assert "the time was over" in cut.bugs[0].why
    assert cut.clean.sentence == "false alarms: not measured"
    assert [bug.word for bug in measured(tmp_path, 4).bugs] == ["found", "missed", "not measured"]


def test_the_likeliest_runs_come_first() -> None:
    """If it failed, a small budget would miss what one cell of many is for."""
    plans = [
        planned(system="qsync", cluster="sim", configuration=letter, seed=seed, **more)
        for letter, more in (("H", {}), ("C", {"checkpoint_interval_s": 0.3}), ("I", {}))
        for seed in range(20)
    ]
    chosen = promising(plans, "snapshot-holds-pending", 4)
    assert [plan.expectations.configuration for plan in chosen] == ["C", "C", "H", "C"]
    assert len({*chosen}) == 4
    generous = promising(plans, "snapshot-holds-pending", 2 * len(plans))
    assert generous[0].expectations.configuration == "C" and {*generous} == {*plans}
    assert len(promising(plans, "no-fencing", 7)) == 7 and len(promising(plans[:3], "no-fencing", 8)) == 3


def test_a_row_is_measured_once(calls: list[Plan], tmp_path: Path) -> None:
    """If it failed, every certificate of a release would measure for an hour, or take the rows of different code."""
    first = measured(tmp_path, 4)
    count = len(calls)
    assert measured(tmp_path, 4) == first
    assert len(calls) == count
    measured(tmp_path, 4, text=TEXT.replace("= 8", "= 9"))
    assert len(calls) == 2 * count
    measure(campaign(tmp_path), 4, 1, 600.0, kept_in=tmp_path / "kept", code="d", tell=lambda line: None)
    assert len(calls) == 3 * count


def test_runs_without_a_bug_count_alarms_and_turns(calls: list[Plan], tmp_path: Path) -> None:
    """If it failed, a harness that always rings would look sensitive."""
    clean = measured(tmp_path, 4).clean
    assert (clean.runs, clean.valid, clean.alarms) == (4, 4, ())
    assert all(not plan.bugs for plan in calls[:4])


@pytest.mark.usefixtures("a_tarantool")
def test_a_real_system_is_measured_by_its_reference(tmp_path: Path) -> None:
    """If it failed, a certificate of Tarantool would say that its own bugs are found, or measure nothing."""
    text = """
name = "real"
[plan]
system = "tarantool"
cluster = "local"
configuration = "B"
wal_mode = "fsync"
[matrix]
faults = ["kill", "pause"]
"""
    plans, notes = simulated(campaign(tmp_path, text))
    assert {(plan.system, plan.cluster) for plan in plans} == {("qsync", "sim")}
    assert "of the reference node qsync under the same plan, not of tarantool" in notes


def test_a_store_of_ones_own_is_not_measured(tmp_path: Path) -> None:
    """If it failed, a certificate would claim a sensitivity that was not measured."""
    text = """
name = "own"
[plan]
system = "docs/mystore.py"
cluster = "local"
[matrix]
faults = ["kill"]
"""
    found = measured(tmp_path, 4, text=text)
    assert found.sentence == "not measured"
    assert "no reference node" in found.notes[0]


@given(st.integers(1, 60), st.integers(1, 80))
def test_runs_are_spread_evenly(whole: int, count: int) -> None:
    """If it failed, a budget would go to the first cells alone."""
    plans = [planned(seed=seed) for seed in range(whole)]
    chosen = [plan.seed for plan in spread_evenly(plans, count)]
    assert len(chosen) == min(whole, count)
    assert chosen == sorted(set(chosen))
    gaps = [later - before for before, later in pairwise(chosen)]
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_two_measures_of_one_matrix_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the second of two certifications at once would end with an error about a file that is gone."""
    done = Done("a bug", 0, 1, (), is_cut=False)
    replace, pid = Path.replace, os.getpid()

    def other_first(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        monkeypatch.setattr(os, "getpid", lambda: pid + 1)
        _Book(tmp_path / "rows.json").keep(done)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", other_first)
    _Book(tmp_path / "rows.json").keep(done)
    assert [*_Book(tmp_path / "rows.json").done.values()] == [done]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]
