"""Options of `qsync check RUN` limit or select; none of them turns a run into a history of somebody else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.plan.plan import Plan
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, conclude, read_history
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.runs import small

SOUND = small(time_limit_s=3.0, rate=40.0, faults=("none",), replica_reads=0.5, seed=5)
BROKEN = small(time_limit_s=6.0, rate=60.0, faults=("isolate-owner",), bugs=("confirm-early",), seed=1)
OTHER_VERDICTS = {
    "time": ("--timeout", "60"),
    "no time": ("--timeout", "0.000001"),
    "memory": ("--memory", "512"),
    "steps": ("--budget", "1000000000"),
    "promise": ("--promise", "linearizable"),
}


def judged(folder: Path, plan: Plan) -> RunFolder:
    run = execute(parts_of(plan), folder).folder
    conclude(Recorded(str(run.path)))
    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("made")
    return {name: judged(root, plan).path for name, plan in (("sound", SOUND), ("broken", BROKEN))}


@pytest.fixture
def runs(made: dict[str, Path], tmp_path: Path) -> dict[str, RunFolder]:
    return {
        name: RunFolder(
            shutil.copytree(path, tmp_path / "runs" / path.parent.name / path.name, symlinks=True)
        )
        for name, path in made.items()
    }


def contents(run: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", OTHER_VERDICTS)
def test_an_anomaly_stays_one_or_is_not_decided(qsync: Qsync, runs: dict[str, RunFolder], name: str) -> None:
    """If it failed, an option would drop promised checks, and an anomaly would be VALID."""
    before = contents(runs["broken"])
    done = qsync("check", runs["broken"].path, *OTHER_VERDICTS[name])
    assert done.code == (2 if name == "no time" else 1), done.out
    assert contents(runs["broken"]) == before


def test_the_audit_and_the_evidence_are_judged_with_a_time_limit(
    qsync: Qsync, runs: dict[str, RunFolder]
) -> None:
    """If it failed, --timeout would judge the record alone, as one of somebody else."""
    plain = runs["broken"].read_verdict()
    assert plain is not None
    limited = json.loads(qsync("check", runs["broken"].path, "--timeout", "60", "--json").out)
    for part in ("promise", "violations", "evidence", "sentence"):
        assert limited[part] == plain[part]
    assert limited["asked"] == {"--timeout": 60.0}


def test_a_check_without_time_is_unknown(qsync: Qsync, runs: dict[str, RunFolder]) -> None:
    """If it failed, a limit would turn checks that were not judged into a pass."""
    done = qsync("check", runs["sound"].path, "--timeout", "0.000001")
    assert done.code == 2
    assert done.out.startswith("UNKNOWN  Not decided: linearizable: stopped by the time limit")
    assert qsync("check", runs["sound"].path, "--timeout", "60").code == 0


def test_one_key_of_a_run(qsync: Qsync, runs: dict[str, RunFolder], tmp_path: Path) -> None:
    """If it failed, one key would stand for a run, or whatever is not about keys would not be judged."""
    sound, broken = runs["sound"], runs["broken"]
    before = contents(sound)
    page = tmp_path / "page.html"
    done = qsync("check", sound.path, "--key", "r0-1", "--html", page)
    assert done.code == 2
    assert done.out.startswith(
        "UNKNOWN  Not all was judged: linearizable, prefix, dirty judged the key r0-1 alone"
    )
    assert contents(sound) == before
    assert "Not all was judged" in page.read_text()
    keys = sorted({str(each.key) for each in read_history(broken).operations if each.key is not None})
    codes = {key: qsync("check", broken.path, "--key", key).code for key in keys[:3]}
    assert set(codes.values()) == {1}, codes  # quorum is violated whatever the key
    told = json.loads(qsync("check", broken.path, "--key", "r0-1", "--json").out)
    assert {"quorum", "audit", "leadership", "crash"} <= set(told["promise"])
    proofs = json.loads(qsync("check", sound.path, "--key", "r0-1", "--verify", "--json").out)["verified"]
    assert (proofs["accepted"], proofs["without"]) == (1, []), "keys that were skipped were not decided"
    done = qsync("check", sound.path, "--key", "nobody")
    assert (done.code, "--key 'nobody' is not in this run" in done.line) == (64, True)


def test_a_key_of_a_workload_without_checks_of_keys_is_refused(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, --key would leave out all or nothing of a run of transactions."""
    run = execute(parts_of(small(workload="append", time_limit_s=2.0, faults=("none",))), tmp_path).folder
    done = qsync("check", run.path, "--key", "k0-1")
    assert done.code == 64
    assert "--key: no check of this workload" in done.line


@pytest.mark.parametrize("words", [("--model", "cas-register"), ("--failed-cas", "says-nothing")])
def test_a_run_is_not_read_as_a_history_of_others(
    qsync: Qsync, runs: dict[str, RunFolder], tmp_path: Path, words: tuple[str, str]
) -> None:
    """If it failed, a word would drop promise, quorum, leadership, crash, audit and evidence."""
    for path in (runs["broken"].path, runs["broken"].history, runs["broken"].path / "history.parquet"):
        done = qsync("check", path, *words)
        assert done.code == 64
        assert f"{words[0]} is for histories of other tools" in done.line
    copied = shutil.copy2(runs["broken"].history, tmp_path / "copied.jsonl")
    assert qsync("check", copied, *words).code in (0, 1)


def test_a_stricter_promise_counts_where_nothing_is_promised(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, who asks whether a run was linearizable would get VALID for one that was not."""
    calm = {"configuration": "D", "time_limit_s": 6.0, "rate": 60.0, "faults": ("isolate-owner",), "seed": 1}
    for bugs, result in (((), "valid"), (("confirm-early",), "invalid")):
        run = execute(parts_of(small(**calm, bugs=bugs)), tmp_path).folder
        told = json.loads(qsync("check", run.path, "--promise", "linearizable", "--json").out)
        assert told["promise"]["linearizable"] == "linearizable"
        checks = {check["checker"]: check["result"] for check in told["checks"]}
        assert checks["linearizable"] == result
        assert ("linearizable" in told["violations"]) == (result == "invalid")
        assert "linearizable" not in json.loads(qsync("check", run.path, "--json").out)["violations"]


def test_all_runs_of_a_folder_within_one_limit(qsync: Qsync, runs: dict[str, RunFolder]) -> None:
    """If it failed, --timeout of many runs would do nothing, or write verdicts that are not whole."""
    root = runs["sound"].path.parent.parent
    before = {name: contents(run) for name, run in runs.items()}
    assert qsync("check", root, "--timeout", "60").code == 1
    done = qsync("check", root, "--timeout", "0.000001")
    assert done.code == 2
    assert {line.split()[0] for line in done.out.splitlines()} == {"unknown"}
    assert {name: contents(run) for name, run in runs.items()} == before


@pytest.mark.parametrize(
    "words",
    [("--key", "r0-1"), ("--model", "kv"), ("--promise", "linearizable"), ("--failed-cas", "observes")],
)
def test_what_selects_is_refused_for_many_runs_and_on_spark(
    qsync: Qsync, runs: dict[str, RunFolder], words: tuple[str, str]
) -> None:
    """If it failed, an option would be taken and have no effect."""
    for path, engine in ((runs["sound"].path.parent.parent, ()), (runs["sound"].path, ("--engine", "spark"))):
        done = qsync("check", path, *words, *engine)
        assert done.code == 64
        assert f"{words[0]} does not go with" in done.line
    done = qsync("check", runs["sound"].path, "--engine", "spark", "--timeout", "5")
    assert (done.code, "--timeout does not go with" in done.line) == (64, True)


@pytest.mark.parametrize("words", [("--quorum", "1"), ("--promotes", "at-once"), ("--no-votes",)])
def test_the_audit_of_a_run_goes_by_its_plan(
    qsync: Qsync, runs: dict[str, RunFolder], words: tuple[str, ...]
) -> None:
    """If it failed, an option would change by what rules the logs of a run are judged."""
    done = qsync("audit", runs["broken"].path, *words)
    assert done.code == 64
    assert "is a run, whose plan says" in done.line
    assert qsync("audit", runs["broken"].path).code == 1
