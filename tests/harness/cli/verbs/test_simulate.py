"""`qsync simulate`: many seeds, stopped at the first anomaly, with the line that repeats it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.campaigns import hunt as hunting
from harness.campaigns.hunt import seeds
from harness.cli.main import main
from harness.cli.verbs import simulate
from harness.plan.plan import Plan, to_json
from harness.run import execute
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.processes import PATIENCE_S, is_gone, wait_until
from tests.harness.runs import drawn_out, small

QUICK = ("simulate", "--jobs", "1", "--time-limit", "2", "--rate", "60", "--faults", "none")
FINDS = (
    "--configuration",
    "C",
    "--time-limit",
    "6",
    "--rate",
    "60",
    "--faults",
    "isolate-owner",
    "--bug",
    "confirm-early",
)
BUG = ("simulate", "--jobs", "1", *FINDS)


def test_seeds_without_an_anomaly_are_0(qsync: Qsync, results: Path) -> None:
    """If it failed, a good store would not be told from a bad one, or a thousand folders would be left."""
    done = qsync(*QUICK, "--seeds", "3")
    assert (done.code, done.err) == (0, "")
    line, configurations, workloads, cuts, sometimes, *table = done.out.splitlines()
    assert line.startswith("3 seeds: 3 valid; ")
    assert int(line.rpartition("in each at least ")[2]) > 20
    assert configurations.startswith("configurations: ")
    assert workloads.startswith("workloads: ")
    assert re.fullmatch(r"consistent cuts judged: [1-9]\d*, in [12] seeds", cuts)
    assert sometimes == "sometimes"
    assert any(row.strip().startswith("split vote") and row.endswith("never") for row in table)
    assert not results.exists()


def test_an_option_of_the_system_is_not_drawn_over(qsync: Qsync) -> None:
    """If it failed, a hunt would try other elections than those that `-o` asked for."""
    asked = ("-o", "election_mode=off", "-o", "synchro_timeout=2.5")
    done = qsync(*QUICK, *asked, "--seed", "2", "--seeds", "1", "--json")  # a seed that draws both otherwise
    again = json.loads(done.out)["again"]
    assert "--election-mode off " in again and "--synchro-timeout 2.5 " in again


def test_an_anomaly_ends_the_hunt_with_the_line_that_repeats_it(qsync: Qsync, results: Path) -> None:
    """If it failed, a hunt would find something that nobody can look at."""
    done = qsync(*BUG, "--seeds", "5", "--seed", "1")
    assert done.code == 1
    first, summary, *_, found_by, again, report = done.out.splitlines()
    assert first.startswith("seed 1: anomaly: At ")
    assert summary.startswith("1 seed: 1 anomaly; ")
    assert "linearizable (1)" in found_by
    assert again.startswith("again   ./qsync run --seed 1 --cluster sim --time-limit 6 ")
    assert "<html" in Path(report.removeprefix("report  ")).read_text()
    assert qsync(*again.split()[2:]).code == 1
    kept, repeated = (path.read_bytes() for path in sorted(results.glob("*/2*/plan.json")))
    assert kept == repeated


def told(seed: int, outcome: str, exit_code: int) -> seeds.Tried:
    return seeds.Tried(
        seed=seed,
        outcome=outcome,
        exit_code=exit_code,
        sentence="",
        configuration="C",
        workload="set",
        again=f"./qsync run --seed {seed}",
    )


VALID, ANOMALY, BROKEN = ("valid", 0), ("anomaly", 1), ("broken", 70)


@pytest.fixture
def hunts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`hunts(VALID, error)`: what the seeds are, in place of a hunt; no run is kept."""

    def instead(*ends: tuple[str, int] | BaseException) -> None:
        def hunt(*_: object) -> Iterator[seeds.Tried]:
            for seed, end in enumerate(ends):
                if isinstance(end, BaseException):
                    raise end
                yield told(seed, *end)

        monkeypatch.setattr(hunting, "hunt", hunt)

    monkeypatch.setattr(simulate, "_keep", lambda *_: None)
    return instead


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(("ends", "code"), [((ANOMALY, VALID), 1), ((VALID,), 141), ((BROKEN,), 141)])
def test_an_anomaly_stands_although_its_reader_is_gone(
    hunts: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    as_json: tuple[str, ...],
    ends: tuple[tuple[str, int], ...],
    code: int,
) -> None:
    """If it failed, `simulate | head -1` would show an anomaly and end as if there were none."""
    hunts(*ends)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:  # noqa: PTH123  # a number
        monkeypatch.setattr(sys, "stdout", gone)
        assert main(["simulate", "--keep-going", *as_json]) == code
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("ends", "seed"),
    [
        ((VALID, BROKEN, ANOMALY), 2),
        ((("unknown", 2), BROKEN, VALID), 1),
        ((VALID, ("unknown", 2), ("inconclusive", 3)), 2),
        ((VALID, ANOMALY, ANOMALY), 1),
    ],
)
def test_the_gravest_seed_is_the_one_to_repeat(
    qsync: Qsync, hunts: Callable[..., None], ends: tuple[tuple[str, int], ...], seed: int
) -> None:
    """If it failed, the line that repeats a hunt would not repeat what its exit code tells."""
    hunts(*ends)
    assert qsync("simulate", "--keep-going").out.endswith(f"again   ./qsync run --seed {seed}\n")


def test_what_ends_a_hunt_early_is_told_beside_its_seeds(qsync: Qsync, hunts: Callable[..., None]) -> None:
    """If it failed, an interrupted hunt would print the empty table of no seeds, or hide those that ended."""
    hunts(KeyboardInterrupt())
    done = qsync("simulate")
    assert (done.code, done.out, done.err.strip()) == (130, "", "qsync: interrupted")
    hunts(VALID, KeyboardInterrupt())
    done = qsync("simulate")
    assert (done.code, done.err) == (130, "qsync: interrupted\n")
    assert done.out.startswith("1 seed: 1 valid; ")
    hunts(ANOMALY, RuntimeError("out of order"))
    done = qsync("simulate", "--keep-going")
    assert done.err.startswith("qsync: the harness itself broke: RuntimeError: out of order; traceback in")
    assert done.code == 1 and done.out.endswith("again   ./qsync run --seed 0\n")


def test_an_anomaly_stands_although_its_run_cannot_be_kept(qsync: Qsync) -> None:
    """A full disk would hide what the hunt has found."""
    done = qsync(*BUG, "--seeds", "1", "--seed", "1", "--results", "/proc/nowhere")
    assert done.code == 1
    assert "found by: " in done.out and "report" not in done.out
    assert done.err.startswith("qsync: the run was not kept: cannot write results to /proc/nowhere")


def test_an_anomaly_stands_although_keeping_its_run_breaks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A bug of ours in writing the page would hide what the hunt has found."""

    def breaks(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(execute, "execute", breaks)
    simulate._keep(small(), tmp_path)
    assert "was not kept: the harness itself broke: RuntimeError: out of order" in capsys.readouterr().err


@pytest.mark.long
def test_a_hunt_can_go_on(qsync: Qsync) -> None:
    """If it failed, the share of seeds that find a bug could not be counted."""
    done = qsync(*BUG, "--seeds", "2", "--keep-going", "--json")
    assert done.code == 1
    assert [json.loads(line)["outcome"] for line in done.out.splitlines()] == ["anomaly", "anomaly"]


def test_the_gravest_seed_decides(qsync: Qsync) -> None:
    """If it failed, seeds that show nothing would pass."""
    done = qsync("simulate", "--jobs", "1", "--seeds", "2", "--time-limit", "2", "--rate", "30")
    assert done.code == 3
    assert "2 inconclusive" in done.out
    assert done.out.splitlines()[-1].startswith("again   ./qsync run --seed 0 ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "local"), "simulate runs on --cluster sim, not local"),
        (("--seeds", "0"), "--seeds"),
        (("--jobs", "0"), "--jobs"),
        (("--jobs", "99999999999"), "expected a whole number of at least 1 and of at most 4096"),
        (("--bug", "typo"), "unknown bug 'typo'"),
        (("--faults", "flood"), "unknown fault 'flood'"),
        (("--nodes", "0"), "--nodes"),
        (("--seed", "9007199254740991", "--seeds", "2"), "there are 1 seeds; try: a lower --seed"),
    ],
)
def test_wrong_use_is_one_line_with_64(qsync: Qsync, words: tuple[str, ...], said: str) -> None:
    """If it failed, a slip would start a hundred runs of something else."""
    done = qsync("simulate", *words)
    assert said in done.line
    assert done.code == 64


def test_a_drawn_plan_is_one_run_and_no_hunt(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, the edits of a drawn-out plan would silently be thrown away."""
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(drawn_out(small(seed=4))))
    done = qsync("simulate", "--plan", path, "--seeds", "2")
    assert "is drawn out" in done.line
    assert "qsync run --plan" in done.line
    assert done.code == 64


def test_a_plan_file_gives_the_first_seed(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a stored plan would be hunted with other seeds than it says."""
    path = tmp_path / "plan.json"
    path.write_bytes(to_json(small(seed=40, time_limit_s=2.0, rate=40.0, faults=("none",))))
    done = qsync("simulate", "--plan", path, "--seeds", "2", "--jobs", "1", "--json")
    assert [json.loads(line)["seed"] for line in done.out.splitlines()] == [40, 41]


@pytest.mark.long
@pytest.mark.parametrize(("jobs", "bug"), [(1, ()), (2, ("--bug", "confirm-early"))])
def test_ctrl_c_ends_a_hunt_in_one_line(jobs: int, bug: tuple[str, ...]) -> None:
    """If it failed, Ctrl-C would leave processes and a page of tracebacks, or throw an anomaly away."""
    words = ("simulate", "--seeds", "5000", "--keep-going", "--json", "--jobs", str(jobs), *FINDS[:8], *bug)
    with subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["outcome"] == ("anomaly" if bug else "valid")
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the group hears it
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (1 if bug else 130)
    assert err.splitlines() == ["qsync: interrupted"]
    wait_until(lambda: all(is_gone(child) for child in children))


@pytest.mark.long
def test_a_seed_that_breaks_the_harness_is_named_and_does_not_end_the_hunt(
    qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, one defect in the draw would end a night's hunt, and nobody would know which seed it was."""
    works = seeds.try_seed

    def breaks(plan: Plan, *told: bool) -> seeds.Tried:
        return works(plan, *told) if plan.seed != 1 else [][plan.seed]  # type: ignore[return-value]

    monkeypatch.setattr(seeds, "try_seed", breaks)
    done = qsync(*QUICK, "--seeds", "3", "--seed", "0", "--least-ok", "10", "--keep-going")
    assert done.code == 70
    assert (
        "seed 1: broken: the harness itself broke: IndexError: list index out of range; traceback in"
        in done.out
    )
    assert "again   ./qsync run --seed 1" in done.out
    assert "3 seeds: 2 valid, 1 broken" in done.out
    assert qsync(*QUICK, "--seeds", "3", "--seed", "1").code == 70
