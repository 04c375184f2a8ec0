"""Campaigns in this process, with runs that take no time: what goes on, what counts, what is told."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from harness.campaigns import nightly, runs
from harness.campaigns.journal import Ended, Journal, Task, ToJudge, folders
from harness.campaigns.known import KnownList
from harness.campaigns.nightly import Nightly
from harness.campaigns.plan import Campaign, read
from harness.campaigns.summary import LeftOut, Summary
from harness.cli.main import main
from harness.errors import StoreError
from harness.plan.plan import Plan
from tests.harness.campaigns.journals import ended

PLAN = """
name = "tiny"
concurrency = 4
[plan]
cluster = "sim"
[matrix]
nodes = [3, 5]
"""


@dataclass
class Instant:
    """In place of `Runs`: each run is valid as soon as it has begun. `last`: results that an interruption brings."""

    results: Path
    plans: dict[str, Plan]
    at_once: object
    judged_later: bool = False
    last: tuple[Ended | ToJudge, ...] = ()

    def __post_init__(self) -> None:
        self.running: list[Task] = []

    def has_room(self, _: Task) -> bool:
        return True

    def begin(self, task: Task) -> None:
        if self.last:
            raise KeyboardInterrupt
        self.running.append(task)

    def ended(self) -> Iterator[Ended | ToJudge]:
        yield from self.last
        self.last = ()
        while self.running:
            task = self.running.pop()
            yield ended(task.cell, task.seed)

    def interrupt(self, patience_s: float = 0.0) -> None: ...


@pytest.fixture(autouse=True)
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "Runs", Instant)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    (tmp_path / "tiny.toml").write_text(PLAN)
    return read(tmp_path / "tiny.toml")


def interrupted(
    campaign: Campaign, results: Path, monkeypatch: pytest.MonkeyPatch, *last: Ended | ToJudge
) -> tuple[Summary, Path]:
    """The campaign, with an interruption at the beginning of its first run."""
    cell = campaign.cells[0].name
    results_then = last or (ended(cell, 9, "inconclusive"),)
    with monkeypatch.context() as patched:
        patched.setattr(nightly, "Runs", partial(Instant, last=results_then))
        return done(campaign, results)


def done(campaign: Campaign, results: Path) -> tuple[Summary, Path]:
    return Nightly(campaign, results, KnownList((), date(2026, 11, 21)), lambda line: None).run()


def test_a_campaign_that_lacks_a_document_goes_on(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a disk that was full for a moment would leave a night without its page or JUnit XML for good."""
    campaign, write = replace(campaign, first_seed=3), Journal.write
    documents = ("junit.xml", "summary.md", "index.html")
    for lacking in documents:

        def written(book: Journal, name: str, data: bytes, lacking: str = lacking) -> None:
            if name == lacking:
                raise StoreError("the disk is full")
            write(book, name, data)

        with monkeypatch.context() as patched:
            patched.setattr(Journal, "write", written)
            with pytest.raises(StoreError):
                done(campaign, tmp_path)
    _, folder = done(campaign, tmp_path)
    assert folders(tmp_path, "tiny") == [folder]
    assert all((folder / name).exists() for name in (*documents, "summary.json"))


def test_another_first_seed_is_another_campaign(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs would have other seeds than the command line asks for."""
    _, first = interrupted(replace(campaign, first_seed=5), tmp_path, monkeypatch)
    summary, folder = done(replace(campaign, first_seed=7), tmp_path)
    assert {run.seed for run in summary.ended} == {7}
    assert folder != first
    summary, folder = done(campaign, tmp_path)  # any seeds will do
    assert ({run.seed for run in summary.ended}, folder) == ({5}, first)


def test_what_was_left_out_at_first_is_no_pass_later(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a night would be green though its cells in containers never ran: the engine came back meanwhile."""
    without = campaign.cells[1].name
    with monkeypatch.context() as patched:
        patched.setattr(nightly, "left_out", lambda cells: (LeftOut(without, "no Docker daemon answers"),))
        interrupted(campaign, tmp_path, monkeypatch)
    summary, _ = done(campaign, tmp_path)
    assert (summary.exit_code, [out.cell for out in summary.left_out]) == (3, [without])


@pytest.mark.parametrize(
    ("outcome", "code", "counted", "exit_code"),
    [
        ("anomaly", 1, 1, 1),
        ("valid", 0, 1, 130),
        ("inconclusive", 130, 0, 130),
        ("broken", -9, 0, 130),
    ],
)
def test_a_result_of_an_interrupted_run_counts_if_it_stands(
    outcome: str,
    code: int,
    counted: int,
    exit_code: int,
    campaign: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An anomaly that real nodes may never show again would be dropped, or an interruption be taken for a result; or
    the words of the last command would stand in the JSON of the summary."""
    run = ended(campaign.cells[0].name, 9, outcome, exit_code=code)
    summary, folder = interrupted(replace(campaign, first_seed=9), tmp_path, monkeypatch, run)
    assert (len(summary.ended), summary.exit_code, summary.to_json()["exit_code"]) == (
        counted,
        exit_code,
        exit_code,
    )
    nightly.on_end(
        'echo "$QSYNC_EXIT_CODE" > "$QSYNC_CAMPAIGN/told"; echo done', folder, summary, pytest.fail
    )
    assert (folder / "told").read_text() == f"{exit_code}\n"
    assert capfd.readouterr() == ("", "done\n")
    summary, _ = done(replace(campaign, first_seed=9), tmp_path)
    assert len(summary.ended) == 2
    assert summary.counts["anomaly"] == (outcome == "anomaly")


def test_only_runs_without_a_result_are_interrupted(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary would name runs that were done later, and leave out those that the interruption has cut off."""
    summary, _ = interrupted(campaign, tmp_path, monkeypatch)
    (task,) = summary.to_json()["interrupted"]
    assert task["cell"] == campaign.cells[0].name
    summary, _ = done(campaign, tmp_path)
    assert summary.to_json()["interrupted"] == []


def test_a_recorded_run_is_kept_unless_it_was_interrupted(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole record would be thrown away, or half a run judged as a whole one."""
    cells = [cell.name for cell in campaign.cells]
    recorded = [
        ToJudge(cell=cell, seed=9, at="", seconds=1.0, run=f"tiny/{number}", interrupted=bool(number))
        for number, cell in enumerate(cells)
    ]
    _, folder = interrupted(replace(campaign, first_seed=9), tmp_path, monkeypatch, *recorded)
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert [line["cell"] for line in lines if line["event"] == "recorded"] == cells[:1]


def test_a_sentence_of_any_length_reaches_the_command_at_the_end(campaign: Campaign, tmp_path: Path) -> None:
    """A plan of thousands of cells that are too long would end in a traceback."""
    summary, folder = done(campaign, tmp_path)
    long = replace(summary, too_long=tuple(f"{campaign.cells[0].name} rate={rate}" for rate in range(9000)))
    nightly.on_end("true", folder, long, pytest.fail)
    assert "and 8980 more" in long.sentence
    assert len(long.to_json()["too_long"]) == 9000


def test_ctrl_c_at_the_end_leaves_the_exit_code(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C for a command that hangs would turn the exit code of a night with a new anomaly into 130."""
    summary, folder = done(campaign, tmp_path)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(nightly.subprocess, "run", stopped)
    told: list[str] = []
    nightly.on_end("sleep 9", folder, summary, told.append)
    assert told == ["--on-end ended with an interruption: sleep 9"]


def test_a_run_that_dies_at_once_is_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, one process that the system kills would end the campaign without a word."""
    monkeypatch.setattr(sys, "executable", "/bin/true")
    monkeypatch.setattr(runs, "to_json", lambda plan: b" " * (1 << 20))
    real = runs.Runs(tmp_path, {"a": Plan(cluster="sim")}, lambda cluster: 1)
    real.begin(Task("a", 1))
    real.running[0].process.wait()
    (result,) = real.ended()
    assert isinstance(result, Ended)
    assert (result.outcome, result.sentence) == ("broken", "the run ended with 0 and said nothing")


@pytest.mark.parametrize(("parent", "ended_with"), [(1, 0), (2, 1)])
def test_a_campaign_may_be_the_first_process_of_a_container(
    parent: int, ended_with: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every run would take its campaign for dead, and end, as it must if its parent is no longer the same."""
    real = runs.Runs(tmp_path, {"a": Plan(cluster="sim")}, lambda cluster: 1)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/bin/true")
        patched.setattr(os, "getpid", lambda: 1)
        patched.setattr(os, "getppid", lambda: parent)
        real.begin(Task("a", 1))
    assert real.running[0].process.wait() == ended_with
    assert len(list(real.ended())) == 1


def test_a_copy_without_links_has_each_campaign_once(campaign: Campaign, tmp_path: Path) -> None:
    """Where `latest` is a folder (`cp -rL`), each night would leave a link that counts as a campaign: anomalies would
    be seen twice, and a night be compared with itself.
    """
    _, first = done(campaign, tmp_path)
    latest = first.parent / "latest"
    latest.unlink()
    shutil.copytree(first, latest)
    _, second = done(campaign, tmp_path)
    assert {path.name for path in first.parent.iterdir()} == {"latest", first.name, second.name}
    (first.parent / ".latest.1").symlink_to(first.name)  # as a process leaves it that is killed there
    assert folders(tmp_path, campaign.name) == sorted([first, second])


@pytest.mark.usefixtures("campaign")
def test_results_that_cannot_be_made_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong folder would end in a traceback."""
    assert main(["nightly", str(tmp_path / "tiny.toml"), "--results", "/proc/nowhere"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("qsync: cannot write to /proc/nowhere/") and said.count("\n") == 1


def test_a_night_is_not_compared_with_itself(
    campaign: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A night that did not take place would be as good as the one before: `latest` is still that one."""
    _, folder = done(campaign, tmp_path)
    words = ("nightly", "--results", str(tmp_path), "--compare")
    assert main([*words, f"tiny/{folder.name}", "tiny/latest"]) == 64
    said = capsys.readouterr()
    assert said.err.startswith("qsync: --compare: both name ") and said.err.count("\n") == 1
    shutil.copytree(folder, tmp_path / "copied")
    assert main([*words, f"tiny/{folder.name}", str(tmp_path / "copied")]) == 64
    _, later = done(campaign, tmp_path)
    assert later != folder
    assert main([*words, f"tiny/{folder.name}", "tiny/latest"]) == 0
