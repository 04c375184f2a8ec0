"""What is removed, and what never is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.campaigns.plan import Retention
from harness.campaigns.retention import DAY_S, retain

NOW_S = 100 * DAY_S


def store(results: Path, name: str, outcome: str | None, days: float, size: int = 0) -> Path:
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    (folder / "history.jsonl").write_bytes(b"x" * size)
    (folder / "verdict.json").write_text("half" if outcome is None else f'{{"outcome": "{outcome}"}}')
    os.utime(folder, (NOW_S - days * DAY_S, NOW_S - days * DAY_S))
    return folder


def left(results: Path) -> set[str]:
    return {path.name for path in results.glob("*/*")}


def test_old_runs_go_and_anomalies_stay(tmp_path: Path) -> None:
    """If it failed, the disk would fill up, or the one run that shows a bug would be gone."""
    store(tmp_path, "nightly/20260101T000000Z-1", "valid", 40)
    store(tmp_path, "nightly/20260101T000000Z-2", "anomaly", 40)
    store(tmp_path, "nightly/20260101T000000Z-3", None, 40)
    store(tmp_path, "nightly/20260401T000000Z-4", "valid", 5)
    store(tmp_path, "nightly/20260101T000000Z-5", "valid", 40)
    store(tmp_path, "other/20260101T000000Z-6", "valid", 40)
    removed = retain(
        tmp_path, "nightly", Retention(days=30), keep=["nightly/20260101T000000Z-5"], now=lambda: NOW_S
    )
    assert removed.runs == 1
    assert {name[-1] for name in left(tmp_path)} == set("23456")


def test_the_oldest_go_until_what_is_left_is_small_enough(tmp_path: Path) -> None:
    """If it failed, retention by size would remove the newest, or everything."""
    for day in range(1, 5):
        store(tmp_path, f"nightly/2026010{day}T000000Z-{day}", "valid", 1, size=1 << 20)
    removed = retain(tmp_path, "nightly", Retention(gib=2.5 / 1024), now=lambda: NOW_S)
    assert removed.runs == 2
    assert {name[-1] for name in left(tmp_path)} == set("34")


def test_old_runs_go_before_any_goes_for_its_size(tmp_path: Path) -> None:
    """If it failed, a run that was judged again lately would go, although the old ones alone make room enough."""
    store(tmp_path, "nightly/20260101T000000Z-1", "valid", 1, size=1 << 20)
    store(tmp_path, "nightly/20260102T000000Z-2", "valid", 40, size=1 << 20)
    assert retain(tmp_path, "nightly", Retention(days=30, gib=1.5 / 1024), now=lambda: NOW_S).runs == 1
    assert {name[-1] for name in left(tmp_path)} == {"1"}


def test_without_a_rule_nothing_is_removed(tmp_path: Path) -> None:
    """If it failed, a plan that says nothing of retention would lose its runs."""
    store(tmp_path, "nightly/20260101T000000Z-1", "valid", 4000)
    assert retain(tmp_path, "nightly", Retention()).runs == 0


def test_two_campaigns_may_remove_the_same_run(tmp_path: Path) -> None:
    """The second of two campaigns that end at once would break, and leave no summary."""
    run = store(tmp_path, "nightly/20260101T000000Z-1", "valid", 40)

    def now() -> float:
        shutil.rmtree(run, ignore_errors=True)
        return NOW_S

    assert retain(tmp_path, "nightly", Retention(days=30), now=now).runs == 0


def test_a_run_that_stays_is_not_called_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of another user would be said to be gone, while the disk fills up."""
    store(tmp_path, "nightly/20260101T000000Z-1", "valid", 40)
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    assert retain(tmp_path, "nightly", Retention(days=30), now=lambda: NOW_S).runs == 0
