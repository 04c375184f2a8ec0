"""A campaign that is judged on Spark comes to what one comes to whose runs judge themselves."""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec
import pytest

from harness.campaigns import journal, plan
from harness.campaigns.known import KnownList
from harness.campaigns.nightly import Nightly
from harness.campaigns.summary import Summary
from harness.pipeline import campaign as spread
from harness.pipeline.session import SparkError
from tests.harness.pipeline.test_checking import without_times

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

PLAN = """
name = "tiny"
seeds = 2
first_seed = 5
concurrency = 2
engine = "spark"
[plan]
cluster = "sim"
time_limit_s = 8
rate = 100
faults = "isolate-owner"
configuration = "C"
[matrix]
bugs = ["", "confirm-early"]
"""


@pytest.fixture(scope="module")
def nights(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Summary, Path]]:
    """The same campaign both ways: results, summary, the campaign's folder."""
    found = {}
    for engine, judge in (("process", None), ("spark", _judge(spark))):
        results = tmp_path_factory.mktemp(engine) / "results"
        found[engine] = (results, *_night(results, judge))
    return found


def _judge(spark: Any) -> Any:
    return lambda results, runs: spread.judge_with(spark, results, runs)


def _night(results: Path, judge: Any, told: list[str] | None = None) -> tuple[Summary, Path]:
    results.parent.mkdir(exist_ok=True)
    (results.parent / "tiny.toml").write_text(PLAN)
    read = plan.read(results.parent / "tiny.toml")
    return Nightly(
        read, results, KnownList(()), [].append if told is None else told.append, judge=judge
    ).run()


def _noted(summary: Summary) -> list[Any]:
    """What is noted of each run, but for its times and the name of its folder, which is one."""
    return sorted(
        (run.cell, run.seed, run.outcome, run.exit_code, run.sentence, run.fingerprints, run.shapes)
        for run in summary.ended
    )


def _verdicts(results: Path, summary: Summary) -> dict[tuple[str, int], str]:
    return {
        (run.cell, run.seed): _without_place(
            without_times(msgspec.json.decode((results / run.run / "verdict.json").read_bytes())), results
        )
        for run in summary.ended
    }


def _without_place(verdict: Any, results: Path) -> str:
    """As text, without where the run lies, and without the time at which it began: its folder's name."""
    text = msgspec.json.encode(verdict, order="sorted").decode().replace(str(results.parent), "")
    return re.sub(r"\d{8}T\d{6}Z", "UTC", text)


def test_both_ways_have_the_same_verdicts_fingerprints_and_exit_code(
    nights: dict[str, tuple[Path, Summary, Path]],
) -> None:
    """If it failed, what a night finds would depend on who judged it."""
    (here, plain, _), (there, found, _) = nights["process"], nights["spark"]
    assert plain.counts == {"valid": 2, "anomaly": 2, "unknown": 0, "inconclusive": 0, "broken": 0}
    assert _noted(found) == _noted(plain)
    assert found.exit_code == plain.exit_code == 1
    assert [group.fingerprint for group in found.groups] == [group.fingerprint for group in plain.groups]
    assert all(run.fingerprints for run in found.ended if run.outcome == "anomaly")
    assert len(_verdicts(here, plain)) == 4
    assert _verdicts(there, found) == _verdicts(here, plain)


def test_both_ways_leave_the_same_files_for_people_and_for_a_ci(
    nights: dict[str, tuple[Path, Summary, Path]],
) -> None:
    """If it failed, a CI would see fewer failures of a night on Spark, or a person no pages."""
    cases = {}
    for engine, (results, summary, folder) in nights.items():
        for run in summary.ended:
            held = {path.name for path in (results / run.run).iterdir()}
            assert {"verdict.json", "history.parquet", "report.html", "plan.json", "history.jsonl"} <= held
        assert {"index.html", "summary.md", "summary.json"} <= {path.name for path in folder.iterdir()}
        cases[engine] = sorted(
            (case.get("classname"), case.get("name"), [(child.tag, child.get("type")) for child in case])
            for case in Xml.parse(folder / "junit.xml").iter("testcase")
        )
    assert cases["spark"] == cases["process"]
    assert sum(bool(children) for _, _, children in cases["spark"]) == 2


@pytest.mark.parametrize("engine", ["spark", "process"])
def test_what_was_recorded_and_not_judged_is_judged_on_resume_and_not_run_again(
    spark: Any, tmp_path: Path, engine: str
) -> None:
    """If it failed, a night that Spark or a kill ended would be run twice, or have green lights nobody looked at."""
    results = tmp_path / "night" / "results"

    def lost(of: Path, runs: list[Any]) -> Any:
        yield next(spread.judge_with(spark, of, runs))
        raise SparkError("the master is gone")

    with pytest.raises(SparkError, match="the master is gone"):
        _night(results, lost)
    (folder,) = journal.folders(results, "tiny")
    book = journal.load(folder)
    assert book is not None and (len(book.ended), len(book.to_judge), book.to_run()) == (1, 3, [])
    before = sorted((results / "tiny").glob("2*"))
    told: list[str] = []
    summary, again = _night(results, _judge(spark) if engine == "spark" else None, told)
    assert again == folder and "1 of 4 runs are done, 3 are recorded" in told[0]
    assert sorted((results / "tiny").glob("2*")) == before
    assert (summary.counts["valid"], summary.counts["anomaly"], summary.exit_code) == (2, 2, 1)


def test_a_long_run_is_judged_by_its_parts(
    spark: Any, nights: dict[str, tuple[Path, Summary, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the record that needs many workers most would be left to one, or be judged otherwise."""
    results, plain, _ = nights["process"]
    shutil.copytree(results, tmp_path / "results", symlinks=True)
    runs = [
        journal.ToJudge(cell=run.cell, seed=run.seed, at=run.at, seconds=run.seconds, run=run.run)
        for run in plain.ended
    ]
    for run in runs:
        (tmp_path / "results" / run.run / "verdict.json").unlink()
    monkeypatch.setattr(spread, "LONG_BYTES", 1)
    found = {run.run: run for run in spread.judge_with(spark, tmp_path / "results", runs)}
    for run in plain.ended:
        assert (found[run.run].outcome, found[run.run].fingerprints) == (run.outcome, run.fingerprints)
    assert _verdicts(tmp_path / "results", plain) == _verdicts(results, plain)


def test_what_cannot_be_judged_breaks_its_run_and_not_the_night(
    spark: Any, nights: dict[str, tuple[Path, Summary, Path]], tmp_path: Path
) -> None:
    """If it failed, one torn record would end the campaign, or be green."""
    results, plain, _ = nights["process"]
    shutil.copytree(results, tmp_path / "results", symlinks=True)
    runs = [
        journal.ToJudge(cell=run.cell, seed=run.seed, at=run.at, seconds=run.seconds, run=run.run)
        for run in plain.ended
    ]
    history = tmp_path / "results" / runs[0].run / "history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join([*lines[:5], b"garbage\n", *lines[5:]]))
    found = {run.run or "none": run for run in spread.judge_with(spark, tmp_path / "results", runs)}
    assert found["none"].outcome == "inconclusive" and "history.jsonl" in found["none"].sentence
    assert {run.run for run in plain.ended[1:]} < set(found)


def test_spark_that_does_not_start_is_one_line_and_keeps_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a night without Java would lose its runs in a traceback."""

    @contextmanager
    def no_session(*_: Any, **__: Any) -> Any:
        raise SparkError("Spark did not start")
        yield

    monkeypatch.setattr(spread, "session", no_session)
    results = tmp_path / "night" / "results"
    with pytest.raises(SparkError, match="Spark did not start"):
        _night(results, spread.judge_on("local[2]", {}))
    (folder,) = journal.folders(results, "tiny")
    book = journal.load(folder)
    assert book is not None and (len(book.to_judge), book.ended) == (4, [])
    assert not (folder / "summary.json").exists()
