"""Whole campaigns in the simulator, as processes."""

from __future__ import annotations

import html
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.results import RunFolder
from harness.results.scan import scan

PLAN = """
name = "tiny"
seeds = 2
first_seed = 5
concurrency = 2
[plan]
cluster = "sim"
time_limit_s = 8
rate = 100
faults = "isolate-owner"
configuration = "C"
[matrix]
bugs = ["", "confirm-early"]
"""


def start(folder: Path, *more: str, **options: Any) -> subprocess.Popen[str]:
    words = [sys.executable, "-P", "-m", "harness.cli", "nightly", str(folder / "tiny.toml"), "--json"]
    return subprocess.Popen(
        [*words, "--results", str(folder / "results"), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def done(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    said, complained = process.communicate(timeout=300)
    return process.returncode, json.loads(said) if said else {}, complained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.long
def test_known_anomalies_do_not_fail(folder: Path) -> None:
    """If it failed, an accepted anomaly would fail every night."""
    (folder / "tiny.toml").write_text(PLAN.replace("seeds = 2", "seeds = 1"))
    code, first, _ = done(start(folder, "--on-end", 'echo "$QSYNC_EXIT_CODE" > "$QSYNC_CAMPAIGN/told"'))
    assert (code, first["counts"]["anomaly"]) == (1, 1)
    (group,) = first["groups"]
    assert group["cells"] == ["qsync C sim register isolate-owner with confirm-early"]
    campaign = Path(first["folder"])
    assert (campaign / "told").read_text() == "1\n"
    assert {"junit.xml", "summary.md", "index.html", "summary.json"} <= {
        path.name for path in campaign.iterdir()
    }
    (entries,) = re.findall(
        r'<pre class="paste"[^>]*>(.*?)</pre>', (campaign / "index.html").read_text(), re.S
    )
    (folder / "known.toml").write_text(html.unescape(entries))
    code, second, _ = done(start(folder))
    assert code == 0
    assert [each["standing"] for each in second["groups"]] == ["known"]
    assert second["groups"][0]["seen_before"] == 1
    assert second["counts"] == first["counts"]


@pytest.mark.long
def test_a_run_dies_with_its_campaign(folder: Path) -> None:
    """If it failed, a resumed campaign would meet the runs of the one that was killed."""
    (folder / "tiny.toml").write_text(PLAN.replace("time_limit_s = 8", "time_limit_s = 600"))
    process = start(folder)
    deadline_s = time.monotonic() + 240
    children = runs_of(process, 2)
    process.kill()
    process.communicate()
    while any(_lives(child) for child in children):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def runs_of(process: subprocess.Popen[str], count: int) -> list[int]:
    """The processes of its runs, as soon as there are so many."""
    deadline_s = time.monotonic() + 120
    while True:
        assert time.monotonic() < deadline_s and process.poll() is None
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        runs = [int(each) for each in found if b"--plan" in Path(f"/proc/{each}/cmdline").read_bytes()]
        if len(runs) >= count:
            return runs
        time.sleep(0.02)


@pytest.mark.long
def test_begun_deaf_to_ctrl_c_it_ends_by_sigterm_and_its_runs_hear_it(folder: Path) -> None:
    """If it failed, a campaign in the background of a script could only be killed, and its runs with it."""
    # Without its bug, since an anomaly would be told before the interruption.
    correct = PLAN.replace('["", "confirm-early"]', '[""]')
    (folder / "tiny.toml").write_text(correct.replace("time_limit_s = 8", "time_limit_s = 600"))
    process = start(folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    for run in runs_of(process, 2):
        (ignored,) = re.findall(r"SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{run}/status").read_text())
        assert not int(ignored, 16) >> (signal.SIGINT - 1) & 1
    process.send_signal(signal.SIGTERM)
    code, _, said = done(process)
    assert code == 130 and "interrupted: ending the runs that go on" in said
    assert not list((folder / "results").glob("_campaigns/tiny/*Z/summary.json"))


def _lives(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/exe").readlink().name)
    except OSError:
        return False


@pytest.mark.long
def test_a_budget_that_is_too_small_runs_nothing_and_is_no_pass(folder: Path) -> None:
    """If it failed, a night without a single run would be green."""
    code, summary, _ = done(start(folder, "--budget", "1"))
    assert (code, len(summary["not_reached"]), len(summary["too_long"])) == (3, 4, 2)
    assert summary["sentence"].startswith(
        "nothing ran; 4 not reached; cells that take longer than the whole budget: "
    )


def test_without_an_engine_nothing_of_its_cells_is_begun(folder: Path) -> None:
    """Every run would be tried and break, one after the other, or the night be green for what it left out."""
    (folder / "tiny.toml").write_text(PLAN.replace('cluster = "sim"', 'cluster = "docker"'))
    environment = {**os.environ, "DOCKER_HOST": "unix:///nowhere"}
    code, summary, _ = done(start(folder, env=environment))
    assert (code, summary["not_reached"], len(summary["left_out"])) == (3, [], 2)
    assert "2 cells left out, of which nothing can be said: no Docker daemon answers" in summary["sentence"]
    assert not list((folder / "results").glob("tiny/*"))


@pytest.mark.long
def test_two_campaigns_of_one_plan_at_once_do_not_disturb_each_other(folder: Path) -> None:
    """If it failed, a night that takes longer than a day would be mixed up with the next one."""
    (folder / "tiny.toml").write_text(PLAN.replace("seeds = 2", "seeds = 1"))
    both = [start(folder), start(folder)]
    (one, first, _), (other, second, _) = (done(process) for process in both)
    assert (one, other) == (1, 1)
    assert first["folder"] != second["folder"]
    counts = {"valid": 1, "anomaly": 1, "unknown": 0, "inconclusive": 0, "broken": 0}
    assert first["counts"] == second["counts"] == counts
    assert not set(first["groups"][0]["runs"]) & set(second["groups"][0]["runs"])
    assert first["groups"][0]["fingerprint"] == second["groups"][0]["fingerprint"]
    assert len(scan(folder / "results").runs) == 4


@pytest.mark.long
def test_on_a_full_disk_a_run_is_no_evidence_and_nothing_is_corrupt(folder: Path) -> None:
    """If it failed, a full disk would end a night in tracebacks, in half a verdict, or in a pass."""
    (folder / "tiny.toml").write_text(PLAN.replace('["", "confirm-early"]', '[""]'))

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    code, summary, _ = done(start(folder, preexec_fn=little_room))
    assert (code, summary["counts"]["inconclusive"], summary["counts"]["anomaly"]) == (3, 2, 0)
    kept = scan(folder / "results").runs
    assert {RunFolder(run.path).read_verdict_outcome() for run in kept} <= {"inconclusive"}
    lines = (Path(summary["folder"]) / "runs.jsonl").read_text().splitlines()
    ended = [json.loads(line) for line in lines if '"ended"' in line]
    assert len(ended) == 2
    assert all("File too large" in each["sentence"] for each in ended), ended
    code, summary, _ = done(start(folder))
    assert (code, summary["counts"]["valid"]) == (0, 2)
