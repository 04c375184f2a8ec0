"""A checker that catches itself at a defect on a worker: no Spark is needed to see what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from checkers.check import Check
from checkers.history.history import History
from checkers.verdict import CheckerDefect, Verdict
from harness.campaigns.journal import ToJudge
from harness.campaigns.judging import judged
from harness.pipeline import checking
from harness.results import RunFolder
from tests.checkers.brute.histories import Line, history_of
from tests.harness.pipeline.stored_runs import store_run


def test_a_defect_on_a_worker_breaks_its_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, one proof that does not replay would end the whole job, and all of its runs would have nothing."""
    path = store_run(tmp_path, 1, time_limit_s=2.0)
    plain = checking.checks_of

    def broken(history: History) -> Verdict:
        raise CheckerDefect("a proof does not replay")

    def checks_of(folder: RunFolder, history: History) -> dict[str, Check]:
        return {name: replace(check, run=broken) for name, check in plain(folder, history).items()}

    def answers(_: Any, asked: Sequence[tuple[str, str | None]], answer: checking.Answer) -> list[str]:
        return [answer(*each) for each in asked]

    monkeypatch.setattr(checking, "checks_of", checks_of)
    monkeypatch.setattr(checking, "answers", answers)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
    run_check = checking.spread_checks(spark, RunFolder(path))  # the job itself goes on
    run = ToJudge(cell="c", seed=1, at="", run=str(path.relative_to(tmp_path)), seconds=0.0)
    ended = judged(tmp_path, run, run_check)
    assert (ended.exit_code, ended.outcome) == (70, "broken")
    assert "CheckerDefect: a proof does not replay" in ended.sentence


def test_a_long_key_that_means_nothing_to_the_model_is_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """One malformed cas in a long record would end the job, and all of a night's runs would have nothing."""
    monkeypatch.setattr(checking, "SEGMENT", 4)
    lines = [Line(type_, 0, "cas", [1, 2, 3, 4], key="x") for _ in range(3) for type_ in ("invoke", "ok")]
    history = history_of([*lines, *(replace(line, f="write", value=5) for line in lines[:4])])
    assert list(checking._by_keys(history, 4)) == [checking.Task(checking.LINEARIZABLE, ("x",))]
