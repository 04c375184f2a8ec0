"""The checkers in Python say what the command says of the same file: a history knows where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import checkers as checkers_package
from checkers.guessing import guess
from checkers.history import History, ModelError
from checkers.models import MODELS
from harness.judge.files.judged import Asked, judged, recognized

api: Any = checkers_package  # its modules can be called
FOLDER = Path(__file__).parent / "histories"
REFUSED = """
{:type :invoke, :f :write, :value 1, :process 0}
{:type :ok, :f :write, :value 1, :process 0}
{:type :invoke, :f :cas, :value [1 2], :process 0}
{:type :fail, :f :cas, :value [1 2], :process 0}
{:type :invoke, :f :read, :value nil, :process 0}
{:type :ok, :f :read, :value 1, :process 0}
"""
QUEUE = """
{:type :invoke, :f :enqueue, :value 1, :process 0}
{:type :ok, :f :enqueue, :value 1, :process 0}
{:type :invoke, :f :dequeue, :value nil, :process 0}
{:type :fail, :f :dequeue, :value nil, :error :empty, :process 0}
"""
FILES = sorted(
    path for path in FOLDER.rglob("*") if path.suffix in (".edn", ".jsonl", ".txt", ".log", ".json")
)
SMALL = 60_000  # bytes


def results(path: Path, **asked: Any) -> tuple[str, dict[str, str]]:
    """The command's outcome, and its verdicts, through the function behind it."""
    document = judged(Asked(path=path, **asked), recognized(path))
    return document["outcome"], {each["checker"]: each["result"] for each in document["checks"]}


@pytest.mark.parametrize("text", [REFUSED, QUEUE], ids=["cas", "queue"])
def test_a_refusal_of_another_store_observes_nothing(tmp_path: Path, text: str) -> None:
    """If it failed, a file that the command calls valid would be an anomaly in a notebook."""
    path = tmp_path / "history.edn"
    path.write_text(text)
    model = "queue" if text is QUEUE else "cas-register"
    history = api.read(path)
    assert history.is_foreign and api.linearizable(history, model=model).result == "valid"
    assert api.judge(history, model).result == "valid"
    assert results(path)[0] == "valid"
    assert api.linearizable(history, model=model, failed_cas_observes=True).result == "invalid"
    assert results(path, failed_cas_observes=True)[0] == "anomaly"


def _same(path: Path, history: History, model: str, observes: bool | None) -> None:
    outcome, checks = results(path, model=model, failed_cas_observes=observes)
    judgement = api.judge(history, model, failed_cas_observes=observes)
    assert {each.checker: each.result for each in judgement.verdicts} == checks
    assert (outcome == "anomaly") == bool(judgement.violations)
    if (name := MODELS[model].linearizable) is not None:
        assert (
            api.linearizable(history, model=name, failed_cas_observes=observes).result
            == checks["linearizable"]
        )
    if (workload := MODELS[model].transactional) is not None:
        found = api.transactional(history, workload=workload, model=judgement.promise)
        assert found.result == checks["transactional"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if place % 5 == 0 and path.stat().st_size < SMALL else pytest.mark.long)
        for place, path in enumerate(FILES)
    ],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_python_says_what_the_command_says(path: Path) -> None:
    """If it failed, whoever calls a checker by hand would be told something else than whoever calls `check`."""
    try:
        history = api.read(path)
    except checkers_package.history.HistoryError:
        return  # both refuse it: the command reads by the same function
    model = guess(history)
    if model is None or history.names - MODELS[model].f - {"dump"}:
        return
    for observes in (None, True, False):
        try:
            _same(path, history, model, observes)
        except ModelError:
            assert results(path, model=model)[0] == "unknown"


def test_a_torn_file_is_not_valid(tmp_path: Path) -> None:
    """If it failed, what a file lost would not be missed by whoever calls a checker by hand."""
    path = tmp_path / "history.edn"
    path.write_text(REFUSED[:-20])
    history = api.read(path)
    assert history.torn and api.linearizable(history, model="cas-register").result == "unknown"
    assert api.judge(history, "cas-register").result == "unknown"
    assert results(path)[0] == "inconclusive"
