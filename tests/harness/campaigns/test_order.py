"""What runs first."""

from __future__ import annotations

from harness.campaigns.journal import Task
from harness.campaigns.order import covered, tasks
from tests.harness.campaigns.journals import ended


def test_what_failed_lately_comes_first_then_what_was_long_not_covered() -> None:
    """If it failed, a short budget would never see the cells at the end, or see a fix last."""
    first = [ended("old", at="2026-11-01"), ended("mended", outcome="anomaly", at="2026-11-01")]
    second = [
        ended("mended", at="2026-11-02"),
        ended("failed", at="2026-11-02"),
        ended("failed", 2, "inconclusive", at="2026-11-02"),
    ]
    order = tasks(["mended", "old", "never", "failed"], [7, 8], covered([first, second]))
    assert [task.cell for task in order[:4]] == ["failed", "never", "old", "mended"]
    assert order[4:] == [Task(task.cell, 8) for task in order[:4]]
