"""A standalone master with two workers that have the locked packages and no checkout: nothing more is needed there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.results import RunFolder, hashes
from harness.run.finish import judged_again
from tests.harness.pipeline.stored_runs import store_run
from tests.harness.pipeline.test_checking import without_times
from tests.reserved_ports import reserved

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

CONF = ("spark.executor.memory=512m", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1")


@dataclass(frozen=True)
class Standalone:
    """`folder`: where master and workers run; `python`: what the workers run, which knows no checkout."""

    url: str
    folder: Path
    python: Path

    def qsync(self, *words: object) -> subprocess.CompletedProcess[bytes]:
        conf = [word for each in CONF for word in ("--conf", each)]
        command = [sys.executable, "-P", "-m", "harness.cli", *map(str, words), "--master", self.url, *conf]
        return subprocess.run(
            command,
            env={**os.environ, "PYSPARK_PYTHON": str(self.python)},
            capture_output=True,
            check=False,
            timeout=900,
        )

    def workers_at_work(self) -> set[str]:
        return {path.relative_to(self.folder).parts[0] for path in self.folder.glob("work*/app-*/*/stderr")}


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    import pyspark

    from harness.pipeline.java import find

    folder = tmp_path_factory.mktemp("standalone")
    port = reserved(1)
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    python = python_without_checkout(folder / "python")
    environ = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "JAVA_HOME": str(find(os.environ).home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYTHONSAFEPATH": "1",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        command = [spark_class, f"org.apache.spark.deploy.{words[0]}", *words[1:]]
        with log.open("wb") as file:
            started.append(subprocess.Popen(command, env=environ, stdout=file, stderr=file, cwd=folder))
        return log

    url = f"spark://127.0.0.1:{port}"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    try:
        until(start("master", "master.Master", "--port", str(port), *here), "New state: ALIVE")
        for name in ("work1", "work2"):
            limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            until(start(name, "worker.Worker", *limits, *here, url), "Successfully registered with master")
        yield Standalone(url, folder, python)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=60)


def python_without_checkout(folder: Path) -> Path:
    """An environment with all packages of ours and not with the line that finds the checkout."""
    venv.create(folder, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    Path(packages, "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    asked = [
        python,
        "-c",
        "import pyarrow, sys, importlib.util as i; sys.exit(i.find_spec('harness') is not None)",
    ]
    subprocess.run(asked, cwd=folder, check=True)
    return python


def until(log: Path, words: str) -> None:
    deadline_s = time.monotonic() + 120
    while words not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline_s, log.read_text(errors="replace")
        time.sleep(0.1)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "results"
    store_run(folder, 1, time_limit_s=6.0)
    store_run(folder, 2, time_limit_s=6.0)
    store_run(folder, 3, name="bugs", time_limit_s=10.0, bugs=("confirm-early",), faults=("isolate-owner",))
    return folder


def runs(results: Path) -> list[Path]:
    return sorted(path.parent for path in results.glob("[bn]*/*/plan.json"))


def verdict(run: Path) -> Any:
    return msgspec.json.decode((run / "verdict.json").read_bytes())


def test_a_folder_of_runs_has_the_verdicts_and_pages_that_it_has_in_process(
    standalone: Standalone, results: Path
) -> None:
    """If it failed, workers would need a checkout, and would call every run "inconclusive" without one."""
    before = {run: verdict(run) for run in runs(results)}
    done = standalone.qsync("check", results, "--engine", "spark", "--json")
    assert done.returncode == 1, done.stderr
    told = {Path(each["folder"]): each for each in map(msgspec.json.decode, done.stdout.splitlines())}
    for run, was in before.items():
        assert told[run] == {
            "folder": str(run),
            **{name: was[name] for name in ("outcome", "exit_code", "sentence")},
        }
        assert without_times(verdict(run)) == without_times(was)
        assert "</html>" in (run / "report.html").read_text()
        assert not hashes.changed(run)
    assert standalone.workers_at_work() == {"work1", "work2"}


@pytest.mark.nightly  # a folder of runs is spread in the same way
def test_one_run_is_spread_by_its_checks(standalone: Standalone, results: Path) -> None:
    """If it failed, `--master spark://…` would say something else of a run than this machine says."""
    run = runs(results)[0]  # the one with an anomaly
    before = verdict(run)
    done = standalone.qsync("check", run, "--engine", "spark", "--json")
    assert done.returncode == before["exit_code"] == 1, done.stderr
    found = without_times(msgspec.json.decode(done.stdout))
    assert found == without_times({**before, "folder": str(run.resolve())})


@pytest.mark.nightly  # test_campaign.py has a campaign on Spark, and the test before this one the workers
def test_a_campaign_is_judged_by_the_workers(standalone: Standalone, tmp_path: Path) -> None:
    """If it failed, a night on a cluster would end without a verdict."""
    plan = tmp_path / "tiny.toml"
    plan.write_text(
        """
name = "tiny"
seeds = 1
first_seed = 5
[plan]
cluster = "sim"
time_limit_s = 8
rate = 100
faults = "isolate-owner"
configuration = "C"
[matrix]
bugs = ["", "confirm-early"]
"""
    )
    results = tmp_path / "results"
    done = standalone.qsync("nightly", plan, "--results", results, "--engine", "spark", "--json")
    summary = msgspec.json.decode(done.stdout)
    found = sorted(path for path in results.glob("tiny*/*/plan.json"))
    assert sorted(str(verdict(path.parent)["outcome"]) for path in found) == ["anomaly", "valid"], done.stderr
    assert (done.returncode, summary["exit_code"]) == (1, 1)


@pytest.mark.nightly  # that a verdict is put in place whole: tests/harness/results
def test_what_was_judged_stays_when_no_worker_can_judge_it_again(
    standalone: Standalone, results: Path, tmp_path: Path
) -> None:
    """If it failed, one wrong installation would take away the verdicts of all runs that it was asked about."""
    shutil.copytree(results, tmp_path / "results")
    kept = {
        path: path.read_bytes()
        for run in runs(tmp_path / "results")
        for path in run.rglob("*")
        if path.is_file()
    }
    packages = next((standalone.folder / "python").glob("lib/*/site-packages"))
    hidden = packages / "hidden.pth"  # Debian's Python has a sitecustomize of its own
    hidden.write_text("import sys; sys.modules['jinja2'] = None\n")
    try:
        done = standalone.qsync("check", tmp_path / "results", "--engine", "spark")
    finally:
        hidden.unlink()
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("qsync: Spark could not finish: ") and "jinja2" in line
    assert {path: path.read_bytes() for path in kept} == kept
    assert judged_again(runs(tmp_path / "results")[0])["exit_code"] == 1
    assert RunFolder(runs(tmp_path / "results")[0]).read_verdict_outcome() == "anomaly"
