"""`qsync run`: what is wrong with a command line is one line, and each end has its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from checkers.replicas import quorum
from harness.campaigns.runs import fields_of_run
from harness.cli.exit_codes import ExitCode
from harness.cli.options import code_version
from harness.cli.verbs import run
from harness.errors import ClusterError, StoreError
from harness.pages.terminal import working
from harness.pages.terminal.snapshot import Snapshot
from harness.plan.plan import Drawn, to_json
from harness.results import RunFolder
from harness.results.run_folder import GuardedFile
from harness.run.conductor import Conductor
from harness.run.monitor import Monitor
from harness.systems.plans import planned, read
from harness.systems.qsync.system import Qsync as QsyncSystem
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.pages.terminal.test_working import Told
from tests.harness.results.full_disk import FullDisk
from tests.harness.runs import drawn_out, small

QUICK = ("run", "--cluster", "sim", "--time-limit", "2", "--rate", "60", "--faults", "none", "--seed", "3")

SHORT = ("--time-limit", "6", "--rate", "60", "--faults", "isolate-owner")
LOSES_WRITES = ("run", "--cluster", "sim", *SHORT, "--bug", "confirm-early", "--seed", "1")


def only_run(results: Path) -> Path:
    (folder,) = results.glob("*/*-*")
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--system", "oracle"), "unknown system 'oracle'; try one of: qsync"),
        (("--cluster", "moon"), "unknown cluster 'moon'; try one of: local, docker, ssh, sim"),
        (("--workload", "casino"), "unknown workload 'casino'; try one of: register"),
        (("--faults", "burn"), "unknown fault 'burn'; try one of: all, none, isolate-owner"),
        (("--faults", "kill,,flood"), "unknown fault 'flood'"),
        (("--bug", "typo"), "unknown bug 'typo' of qsync; try one of: "),
        (("--read", "psychic"), "unknown read mode 'psychic'"),
        (("--commit-wait", "never"), "'never' is not one of 'complete'"),
        (("-o", "commit_wait=never"), "'never' is not one of 'complete'"),
        (("--promise", "peace"), "--promise 'peace' is not known; try: linearizable"),
        (("--time-limit", "-5"), "--time-limit: expected a number greater than 0, got -5.0"),
        (("--time-limit", "nan"), "--time-limit"),
        (("--time-limit", "1e-300"), "--time-limit: expected a number of at least 1e-09, got 1e-300"),
        (("--rate", "nan"), "--rate"),
        (("--rate", "inf"), "--rate"),
        (("--replica-reads", "nan"), "--replica-reads"),
        (("--time-limit", "soon"), "--time-limit"),
        (("--rate", "0"), "--rate: expected a number greater than 0, got 0.0"),
        (("--nodes", "0"), "--nodes: expected a whole number of at least 1, got 0"),
        (("--nodes", "32"), "--nodes: expected a whole number of at most 31, got 32"),
        (("--workers", "0"), "--workers"),
        (("--seed", "-1"), "--seed: expected a whole number of at least 0, got -1"),
        (("--quorum", "4"), "a quorum of 4 cannot be had with 3 nodes"),
        (("--quorum", "0"), "--quorum"),
        (("--quorum", "N - 5"), "--quorum 'N - 5': the formula is evaluated to the quorum -4"),
        (("--quorum", "os.exit()"), "--quorum 'os.exit()': Failed to load os.exit()"),
        (("--quorum", "N / 2 + 1", "--protocol", "2.6"), "2.6 knows no formula"),
        (("--quorum", "2 * N / 3 + 2"), "a quorum of 2 * N / 3 + 2 cannot be had with 3 nodes"),
        (("--synchronous-promote", "true", "--configuration", "C"), "has no effect without elections"),
        (("--election-fencing", "strict", "--configuration", "D"), "--election-fencing has no effect"),
        (("--rollback-on-timeout", "false", "--protocol", "2.6"), "2.6 always rolls back"),
        (("--replica-reads", "1.5"), "--replica-reads"),
        (("--base-port", "70000"), "--base-port"),
        (("--name", "../up"), "--name"),
        (("--name", "latest"), "the name 'latest' is taken"),
        (("--settle-timeout", "0"), "--settle-timeout"),
        (("--faults", "bridge", "--nodes", "2"), "the fault 'bridge' needs at least 3 nodes, got 2"),
        (("--faults", "holds", "--cluster", "local"), "--cluster local cannot do the fault 'holds'"),
        (("--repeat", "0"), "--repeat"),
        (("--seed", "9007199254740991", "--repeat", "2"), "there are 1 seeds; try: a lower --seed"),
        (("--colour", "red"), "--colour"),
    ],
)
def test_wrong_use_is_one_line_with_exit_code_64(
    qsync: Qsync, results: Path, words: tuple[str, ...], said: str
) -> None:
    """If it failed, a slip on the command line would be a traceback, a run of something else, or an anomaly."""
    done = qsync("run", "--cluster", "sim", *words)
    assert said in done.line
    assert done.line.startswith("qsync: ")
    assert done.code == 64
    assert not results.exists(), "a folder was made for a run that cannot be"


def test_a_bug_that_shows_in_the_simulator_only_is_refused_with_the_line_that_runs_it(qsync: Qsync) -> None:
    """If it failed, a bug that cannot show on this cluster would look like one that the harness does not find."""
    done = qsync("run", "--bug", "ack-before-fsync", "--faults", "kill", "--cluster", "local")
    assert done.code == 64
    assert done.line.endswith("try: --faults lose-unsynced")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read the plan "),
        (b"not JSON", "not a plan: "),
        (b'{"nodes": -3}', "nodes: expected"),
        (b'{"colour": "red"}', "colour"),
        (b'{"format": "qsync-history"}', "format: expected qsync-plan"),
        (b'{"system": "oracle"}', "unknown system 'oracle'"),
    ],
)
def test_a_wrong_plan_file_is_one_line_with_exit_code_64(
    qsync: Qsync, tmp_path: Path, content: bytes | None, said: str
) -> None:
    """If it failed, a damaged plan would be a traceback, or run as something else."""
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_bytes(content)
    done = qsync("run", "--plan", path)
    assert said in done.line
    assert str(path) in done.line
    assert done.code == 64


CHANGES: list[tuple[str, ...]] = [
    ("--system", "txlog"),
    ("--seed", "0"),
    ("--seed", "8"),
    ("--faults", "none"),
    ("--nodes", "5"),
    ("--workers", "3"),
    ("--rate", "10"),
    ("--time-limit", "3"),
    ("--workload", "register"),
    ("--read", "dirty"),
    ("-o", "read=dirty"),
    ("--replica-reads", "1"),
]


@pytest.mark.parametrize("words", CHANGES)
def test_what_a_drawn_plan_was_drawn_from_cannot_be_changed(
    qsync: Qsync, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """If it failed, an option would be taken and have no effect, or tear the plan from its faults."""
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(drawn_out(small(seed=4))))
    done = qsync("run", "--plan", path, *words)
    assert f"{path} is drawn out" in done.line
    assert f": {words[0].replace('-o', '--read')} cannot" in done.line
    assert done.code == 64


def test_a_drawn_plan_may_be_said_to_be_of_its_system(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a script that names the system with each plan could repeat no drawn one."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_bytes(to_json(drawn_out(small(seed=4))))
    assert qsync("run", "--plan", first, "--system", "qsync", "--write-plan", second).code == 0
    assert read(second).drawn == read(first).drawn
    done = qsync("run", "--plan", first, "--system", "txlog", "--write-plan", second)
    assert done.code == 64 and "--system cannot change it" in done.line


def test_a_plan_file_and_options_make_one_plan(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, an option could not vary a stored plan."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_bytes(to_json(planned(name="mine", cluster="sim", seed=9, rate=50, faults=("kill",))))
    assert qsync("run", "--plan", first, "--rate", "70", "--write-plan", second).code == 0
    written = read(second)
    assert (written.name, written.seed, written.rate, written.faults) == ("mine", 9, 70.0, ("kill",))


def test_a_plan_file_may_be_for_another_system(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, `--plan FILE --system txlog` would be refused for options of qsync in the file."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for asked, read_mode in (("varied", "mixed"), ("read-confirmed", "read-confirmed")):
        first.write_bytes(to_json(planned(cluster="sim", seed=9, configuration="C", read=asked)))
        assert qsync("run", "--plan", first, "--system", "txlog", "--write-plan", second).code == 0
        assert read(second) == planned(
            system="txlog", cluster="sim", seed=9, read=read_mode, code=read(second).code
        )


def test_a_plan_can_be_written_drawn_out(qsync: Qsync, tmp_path: Path, results: Path) -> None:
    """If it failed, nobody could get a plan to edit."""
    path = tmp_path / "drawn.json"
    done = qsync(*QUICK, "--write-plan", path, "--drawn")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert not results.exists()
    drawn = read(path).drawn
    assert drawn is not None
    assert len(drawn.operations) > 100
    again = qsync("run", "--plan", path)
    assert again.code == 0
    assert f"again   ./qsync run --plan {only_run(results) / 'plan.json'}" in again.out


def test_a_plan_that_cannot_be_written_is_one_line(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a mistyped folder would be a traceback."""
    done = qsync(*QUICK, "--write-plan", tmp_path / "nowhere" / "plan.json")
    assert f"{tmp_path / 'nowhere'} is not there" in done.line
    assert done.code == 64


def test_a_full_disk_leaves_the_older_plan(
    qsync: Qsync, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, half a plan would stand in the place of a whole one."""
    path = tmp_path / "plan.json"
    path.write_text("the old one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = qsync(*QUICK, "--write-plan", path)
    assert (done.code, done.line) == (3, f"qsync: cannot write the plan to {path}: No space left on device")
    assert path.read_text() == "the old one"


def test_a_valid_run_is_0_and_leaves_everything(qsync: Qsync, results: Path) -> None:
    """If it failed, a good run would not be told from others, or leave no page."""
    done = qsync(*QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("VALID  ")
    assert done.out.count("\n") <= 15
    assert "again   ./qsync run --seed 3 --cluster sim --time-limit 2 --rate 60 --faults none" in done.out
    files = {path.name for path in only_run(results).iterdir()}
    assert files == {
        *(
            "plan.json",
            "history.jsonl",
            "history.parquet",
            "hashes.json",
            "verdict.json",
            "report.html",
            "nodes",
        )
    }
    assert (results / "latest").resolve() == only_run(results)


def test_json_is_the_verdict_and_nothing_else(qsync: Qsync, results: Path) -> None:
    """If it failed, a machine could not read what came of a run."""
    done = qsync(*QUICK, "--json")
    assert done.err == ""
    said = json.loads(done.out)
    assert said.pop("folder") == str(only_run(results))
    assert said == json.loads((only_run(results) / "verdict.json").read_text())
    assert (said["outcome"], said["exit_code"]) == ("valid", done.code)


def test_an_anomaly_is_1(qsync: Qsync) -> None:
    """If it failed, a store that loses writes would pass in a pipeline."""
    done = qsync(*LOSES_WRITES)
    assert done.code == 1
    assert done.out.startswith("ANOMALY  At ")
    assert (
        f"again   ./qsync run --seed 1 --cluster sim {' '.join(SHORT)} --bug confirm-early   (repeats"
        in done.out
    )


def test_an_undecided_run_is_2(qsync: Qsync, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a checker that breaks would look like a pass or an anomaly."""

    def breaks(*_: object, **__: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(quorum, "check", breaks)
    done = qsync(*QUICK)
    assert done.code == 2
    assert done.out.startswith("UNKNOWN  Not decided: quorum: the checker broke: ZeroDivisionError")


def test_too_little_is_3(qsync: Qsync) -> None:
    """If it failed, a run that shows nothing would pass."""
    done = qsync("run", "--cluster", "sim", "--time-limit", "2", "--rate", "60", "--seed", "1")
    assert done.code == 3
    assert done.out.startswith("INCONCLUSIVE  ")
    assert "there was no time for one" in done.out


def test_the_gravest_of_many_runs_is_told(qsync: Qsync, results: Path) -> None:
    """If it failed, the last of many runs would decide for all."""
    done = qsync(*LOSES_WRITES, "--repeat", "2")
    assert done.code == 1
    assert sorted(read(path).seed for path in results.glob("*/*-*/plan.json")) == [1, 2]


def test_a_results_folder_that_cannot_be_is_one_line_with_64(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a mistyped folder would be a traceback, or a run that is no evidence."""
    (tmp_path / "file").write_text("")
    done = qsync(*QUICK, "--results", tmp_path / "file" / "results")
    assert f"{tmp_path / 'file'} is a file" in done.line
    assert done.code == 64


@pytest.mark.parametrize("limit", [0, 10_000])
def test_a_full_disk_is_one_line_with_3(
    qsync: Qsync, results: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """If it failed, a full disk would be a traceback, or a verdict on half a record."""

    def on_full_disk(folder: RunFolder) -> GuardedFile:
        return GuardedFile(FullDisk.buffered(folder.history, limit, 1_024))

    monkeypatch.setattr(RunFolder, "open_history", on_full_disk)
    done = qsync(*QUICK)
    assert "No space left on device" in done.line
    assert done.code == 3
    monkeypatch.undo()
    if limit:
        again = qsync("check", only_run(results))
        assert again.code == 3
        assert again.out.startswith("INCONCLUSIVE  ")


def test_a_run_whose_columns_cannot_be_kept_has_no_verdict(
    qsync: Qsync, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, its folder would say valid, and a campaign that it is no evidence."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("checkers.history.parquet.write", full)
    done = qsync(*QUICK)
    assert done.code == 3
    assert "cannot write history.parquet" in done.line
    assert not (only_run(results) / "verdict.json").exists()


def test_a_full_disk_does_not_hide_an_anomaly(qsync: Qsync, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a lost write that stands in the record would be shrugged off."""

    def on_full_disk(folder: RunFolder) -> GuardedFile:
        return GuardedFile(FullDisk.buffered(folder.history, 200_000))

    monkeypatch.setattr(RunFolder, "open_history", on_full_disk)
    done = qsync(*LOSES_WRITES)
    assert done.code == 1
    assert done.out.startswith("ANOMALY  ")


def test_a_cluster_that_never_started_is_one_line_with_3(
    qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a run without a cluster would be a page about nothing."""

    async def fails(*_: object) -> None:
        raise ClusterError("n2 does not come up: its disk is full")

    monkeypatch.setattr(QsyncSystem, "set_up", fails)
    done = qsync(*QUICK)
    assert done.line == "qsync: n2 does not come up: its disk is full"
    assert done.code == 3


def test_a_start_that_takes_long_is_shown_until_the_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, nothing would show for the two minutes in which the image of a store's packages is made."""
    stream = Told()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(working, "PATIENCE_S", 0.0)
    monkeypatch.setattr(run, "snapshot", lambda *_: Snapshot(time_ns=0, end_ns=1, message="load"))
    before = threading.active_count()
    with ExitStack() as stack:
        show = run._shower(stack, planned(cluster="local"), as_json=False)
        assert stream.written.wait(60)
        for _ in range(2):
            show(SimpleNamespace())  # type: ignore[arg-type]  # the snapshot does not look at it
            assert threading.active_count() == before
    assert stream.getvalue().splitlines()[0] == "qsync: starting the nodes, 0 s"
    assert "load" in stream.getvalue() and stream.getvalue().count("starting") == 1


def test_a_bug_of_ours_is_one_line_with_70(
    qsync: Qsync, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a harness that breaks would look like an anomaly."""

    async def breaks(*_: object) -> None:
        raise ZeroDivisionError("our own bug")

    monkeypatch.setattr(Conductor, "work", breaks)
    done = qsync(*QUICK)
    kept = only_run(results) / "traceback.txt"
    assert (
        done.line == f"qsync: the harness itself broke: ZeroDivisionError: our own bug; traceback in {kept}"
    )
    assert done.code == 70
    assert "ZeroDivisionError: our own bug" in kept.read_text()


def interrupt_when(condition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C as soon as the progress of the run is such."""
    as_ever = Monitor.look

    async def look(self: Monitor) -> Any:
        if condition(self.recorder.progress):
            signal.raise_signal(signal.SIGINT)
        return await as_ever(self)

    monkeypatch.setattr(Monitor, "look", look)


def test_ctrl_c_is_130_and_ends_all_that_was_to_come(
    qsync: Qsync, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, an interrupted run would look like a verdict, or the next of many runs would begin."""
    interrupt_when(lambda progress: progress.ok > 50, monkeypatch)
    done = qsync(*QUICK, "--repeat", "3")
    assert done.code == 130
    assert "the run was interrupted" in done.out
    monkeypatch.undo()
    monkeypatch.setenv("QSYNC_RESULTS", str(results))
    again = qsync("check", only_run(results))
    assert again.code == 3
    assert "the run was interrupted" in again.out


def test_ctrl_c_ends_runs_that_are_only_recorded(
    qsync: Qsync, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, Ctrl-C would end one of many runs, and the next would begin."""
    interrupt_when(lambda progress: progress.ok > 50, monkeypatch)
    done = qsync(*QUICK, "--repeat", "3", "--record-only", "--json")
    assert done.code == 130
    assert json.loads(done.out) == {"folder": str(only_run(results)), "interrupted": True, "failure": None}


def test_ctrl_c_does_not_hide_an_anomaly(qsync: Qsync, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, whoever stops a run too early would throw an anomaly away."""
    interrupt_when(lambda progress: progress.ok > 400, monkeypatch)
    done = qsync(*LOSES_WRITES)
    assert done.code == 1
    assert done.out.startswith("ANOMALY  ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "qsync: interrupted"),
        (RuntimeError("out of order"), "the harness itself broke: RuntimeError: out of order; traceback in "),
        (StoreError("no room"), "qsync: no room"),
    ],
)
def test_what_ends_the_next_run_does_not_hide_an_anomaly(
    qsync: Qsync, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
) -> None:
    """If it failed, Ctrl-C in the second of many runs, or a bug of ours, would throw the anomaly of the first away."""
    codes = iter([ExitCode.ANOMALY])

    def once(*_: object) -> ExitCode:
        for code in codes:
            return code
        raise error

    monkeypatch.setattr(run, "_run_once", once)
    done = qsync(*QUICK, "--repeat", "3")
    assert done.code == 1
    assert said in done.err


def test_a_drawn_plan_without_a_fault_is_valid(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a plan that was shrunk to nothing but its load could not be a regression test."""
    plan = drawn_out(small(seed=4))
    assert plan.drawn is not None
    few = Drawn(faults=(), operations=plan.drawn.operations[:20])
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(msgspec.structs.replace(plan, drawn=few)))
    assert qsync("run", "--plan", path).code == 0


def test_record_only_leaves_the_verdict_to_check(qsync: Qsync, results: Path) -> None:
    """If it failed, an unjudged run would look like a pass, or its later verdict would be another one."""
    done = qsync(*QUICK, "--record-only", "--json")
    assert done.code == 3
    folder = Path(json.loads(done.out)["folder"])
    assert not (folder / "verdict.json").exists()
    assert qsync("check", str(folder)).code == qsync(*QUICK).code
    assert (folder / "verdict.json").exists()


def test_results_may_have_any_name(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a run below a folder from an old system, whose name is not UTF-8, would have no verdict."""
    results = tmp_path / os.fsdecode(b"r\xe9sultats")
    done = qsync(*QUICK, "--results", results, "--json")
    assert (done.code, done.err) == (0, "")
    fields = fields_of_run(done.out.encode(), b"", 0, results)
    assert (fields["outcome"], fields["run"]) == ("valid", str(only_run(results).relative_to(results)))


def test_the_commit_of_a_plan_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run within a hook of git, or its certificate, would name a commit of another repository."""
    outside = code_version()
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert code_version() == outside
    monkeypatch.setenv("PATH", "")
    assert code_version() == ""
