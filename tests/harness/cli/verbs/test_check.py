"""`qsync check`, `qsync report`, `qsync list`: what is there is judged and shown again; what is not is one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.verbs.list import TABLES
from harness.judge import causes
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.runs import small

PLAN = small(time_limit_s=3.0, rate=40.0, faults=("none",), replica_reads=0.5, seed=5)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(parts_of(PLAN), tmp_path_factory.mktemp("executed")).folder.path


@pytest.fixture
def stored(results: Path, executed: Path) -> RunFolder:
    """A run that nobody has judged: its plan, its record, and its nodes' files."""
    folder = results / executed.parent.name / executed.name
    shutil.copytree(executed, folder)
    return RunFolder(folder)


def test_a_stored_run_is_judged_again(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, a newer checker could not be tried on an old run."""
    done = qsync("check", stored.path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("VALID  ")
    assert {path.name for path in stored.path.iterdir()} >= {"verdict.json", "report.html", "history.parquet"}
    first = stored.read_verdict()
    assert first is not None
    assert json.loads(qsync("check", stored.history, "--json").out)["outcome"] == first["outcome"] == "valid"


def test_runs_and_files_go_together(qsync: Qsync, stored: RunFolder, tmp_path: Path) -> None:
    """If it failed, a run among files would be judged without its plan, or as a file of another tool."""
    file = tmp_path / "history.edn"
    told = [(kind, f) for f in ("write", "read") for kind in ("invoke", "ok")]
    file.write_text("".join(f"{{:process 0 :type :{kind} :f :{f} :value 1}}\n" for kind, f in told))
    done = qsync("check", file, stored.path)
    assert (done.code, [line.split()[0] for line in done.out.splitlines()[:2]]) == (0, ["valid", "valid"])
    for option, said in (
        (("--model", "register"), "judged by its plan"),
        (("--promise", "linearizable"), "is a run among others"),
        (("--verify",), "is a run among others"),
    ):
        done = qsync("check", file, stored.path, *option)
        assert done.code == 64 and said in done.out.splitlines()[1], option


def test_a_folder_of_runs_says_what_it_does_not_judge(qsync: Qsync, stored: RunFolder, results: Path) -> None:
    """If it failed, a folder with runs and a history of another tool would pass though the history is an anomaly."""
    (results / "_campaigns").mkdir()
    (results / "_campaigns" / "campaign.json").write_text("{}")
    assert qsync("check", results).err == ""
    for name in ("b.edn", "plan/c.edn"):
        (results / name).parent.mkdir(exist_ok=True)
        (results / name).write_text("")
    done = qsync("check", results)
    whole = f"{results / 'b.edn'} and 1 more path"
    assert done.err == f"qsync: not judged, because it is no whole run: {whole}; try: qsync check PATH\n"
    assert (done.code, done.out.count("\n")) == (0, 1)


def test_a_folder_of_runs_may_have_any_place(qsync: Qsync, stored: RunFolder, tmp_path: Path) -> None:
    """If it failed, runs below a folder that is called `latest` would not be found, or the newest judged twice."""
    results = tmp_path / "latest" / "results"
    shutil.copytree(stored.path, results / "plan" / stored.path.name)
    (results / "latest").symlink_to(results / "plan" / stored.path.name)
    for folder in (results, results / "plan"):
        done = qsync("check", folder)
        assert (done.code, done.out.count("VALID") + done.out.count("valid "), done.err) == (0, 1, "")


def test_a_stored_run_can_be_judged_by_a_stricter_promise(qsync: Qsync, results: Path) -> None:
    """If it failed, nobody could ask whether a run was more than it had to be."""
    slow = small(
        time_limit_s=6.0,
        faults=("slow",),
        replica_reads=0.9,
        rate=150.0,
        seed=5,
        configuration="C",
    )
    folder = execute(parts_of(slow), results).folder
    assert qsync("check", folder.path).code == 0
    before = contents(folder)
    done = qsync("check", folder.path, "--promise", "linearizable")
    assert done.code == 1
    assert done.out.startswith("ANOMALY  Judged by --promise linearizable, not by C: ")
    assert contents(folder) == before


def contents(folder: RunFolder) -> dict[str, bytes]:
    """What was decided, as it is stored."""
    return {name: (folder.path / name).read_bytes() for name in ("verdict.json", "report.html")}


def no_plan(folder: RunFolder) -> None:
    folder.plan_file.unlink()


def no_record(folder: RunFolder) -> None:
    folder.history.unlink()


def empty_record(folder: RunFolder) -> None:
    folder.history.write_bytes(b"")


def garbage_line(folder: RunFolder) -> None:
    lines = folder.history.read_bytes().splitlines(keepends=True)
    lines[41] = b'{"index": 40, "time_ns": \xff\xfe\n'
    folder.history.write_bytes(b"".join(lines))


def line_lost(folder: RunFolder) -> None:
    lines = folder.history.read_bytes().splitlines(keepends=True)
    folder.history.write_bytes(b"".join(lines[:41] + lines[42:]))


def other_format(folder: RunFolder) -> None:
    folder.history.write_bytes(b'{"format":"something"}\n')


@pytest.mark.parametrize(
    ("damage", "said", "code"),
    [
        (no_plan, "cannot read the plan ", 64),
        (no_record, "is no run: expected a folder with history.jsonl", 64),
        (empty_record, "history.jsonl: expected a header and at least one line", 3),
        (garbage_line, "line 42: ", 3),
        (line_lost, "line 42: ", 3),
        (other_format, "line 1: ", 3),
    ],
)
def test_a_damaged_run_is_one_line(
    qsync: Qsync, stored: RunFolder, damage: Callable[[RunFolder], None], said: str, code: int
) -> None:
    """If it failed, a damaged record would be a traceback, or be judged without what is missing."""
    damage(stored)
    done = qsync("check", stored.path)
    assert said in done.line
    assert str(stored.path) in done.line
    assert done.code == code
    assert stored.read_verdict() is None


def test_a_torn_record_loads_and_is_no_evidence(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, a harness that was killed would leave nothing that can be checked."""
    stored.history.write_bytes(stored.history.read_bytes()[:-7])
    done = qsync("check", stored.path)
    assert done.code == 3
    assert "the record is torn" in done.out


def test_a_run_that_ended_in_the_middle_is_no_evidence(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, half a run would pass for a whole one when it is judged again."""
    lines = stored.history.read_bytes().splitlines(keepends=True)
    stored.history.write_bytes(b"".join(lines[: len(lines) // 2]))
    done = qsync("check", stored.path)
    assert done.code == 3
    assert "not quiet and equal" in done.out


@pytest.mark.parametrize(
    "words", [("check", "nowhere"), ("report", "nowhere"), ("check", "nowhere/history.jsonl")]
)
def test_a_path_that_is_not_there_is_one_line_with_64(qsync: Qsync, words: tuple[str, ...]) -> None:
    """If it failed, a mistyped path would be a traceback, or be called something else."""
    done = qsync(*words)
    assert f"{words[1]} does not exist" in done.line
    assert done.code == 64


def test_an_unknown_promise_is_64(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, a mistyped model would be no model at all."""
    done = qsync("check", stored.path, "--promise", "peace")
    assert "--promise 'peace' is not known" in done.line
    assert done.code == 64


def test_a_results_folder_that_cannot_be_written_any_more_is_one_line(
    qsync: Qsync, stored: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, checking an archive that is read-only would be a traceback."""

    def refuse(self: Path, *_: object) -> int:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    done = qsync("check", stored.path)
    assert "cannot write verdict.json" in done.line
    assert done.code == 3


def test_the_page_is_written_again(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, an old run could not have the newer page."""
    done = qsync("report", stored.path)
    page = stored.path / "report.html"
    assert (done.code, done.out.strip(), done.err) == (0, str(page.resolve()), "")
    assert "<html" in page.read_text()


def test_a_page_that_cannot_be_written_is_one_line(qsync: Qsync, stored: RunFolder) -> None:
    """If it failed, a full disk would look like a bug of the harness."""
    (stored.path / "report.html").mkdir()
    done = qsync("report", stored.path)
    assert "cannot write" in done.line
    assert done.code == 3


@pytest.mark.parametrize("table", TABLES)
def test_every_table_lists_its_names_with_a_sentence(qsync: Qsync, table: str) -> None:
    """If it failed, a name could be used that nobody can look up."""
    done = qsync("list", table)
    assert (done.code, done.err) == (0, "")
    head, *rows = done.out.splitlines()
    assert head == f"{table}:"
    assert rows
    assert all(len(row.split(maxsplit=1)) == 2 for row in rows)


def test_all_tables_are_listed(qsync: Qsync) -> None:
    """If it failed, `qsync list` would leave some of them out."""
    said = qsync("list").out
    assert all(f"{table}:\n" in said for table in TABLES)


def test_every_check_of_a_verdict_is_listed(qsync: Qsync) -> None:
    """If it failed, a report would name a check that `qsync list checkers` does not explain."""
    listed = {line.split()[0] for line in qsync("list", "checkers").out.splitlines()[1:]}
    assert {rank.check for rank in causes.TABLE} - listed == set()


def test_promises_are_listed_by_system_and_configuration(qsync: Qsync) -> None:
    """If it failed, nobody could look up by what a store is judged before a run of it is."""
    lines = [line.split() for line in qsync("list", "promises").out.splitlines()[1:]]
    lines = [words for words in lines if words[0] in ("qsync", "tarantool")]
    assert {letter for system, letter, *_ in lines if system == "qsync"} == {*"ABCDEFGHI"}
    assert {letter for system, letter, *_ in lines if system == "tarantool"} == {*"ABEFG"}
    rows = [" ".join(words) for words in lines]
    assert "tarantool B writes –" in rows and "tarantool G reads, linearizable –" in rows
    assert "qsync H writes linearizable" in rows and "qsync H reads, owner, read-confirmed stale" in rows


def test_promises_of_other_systems_are_listed_with_their_sources(qsync: Qsync) -> None:
    """If it failed, a reader could not look up the price of a split, or its source."""
    rows = [" ".join(line.split()) for line in qsync("list", "promises").out.splitlines()]
    for strategy in ("none", "simple", "smart"):
        for phase in ("before the split", "in the split", "in the recovery", "after it"):
            (row,) = [row for row in rows if row.startswith(f"txlog, strategy {strategy} {phase} ")]
            assert "“" in row
        assert any(row.startswith(f"txlog, strategy {strategy} source of txlog-kept “") for row in rows)
    assert "txlog, no split writes linearizable" in rows and "txlog, strategy none writes –" in rows
    assert "twophase, pessimistic serializable transactions as writes" in rows
    assert any(row.startswith("twophase, optimistic read-committed source of ") for row in rows)


def test_faults_are_listed_for_a_cluster(qsync: Qsync) -> None:
    """If it failed, a fault would be offered that the cluster refuses."""
    assert "directed schedules: held messages" in qsync("list", "faults", "--cluster", "sim").out
    assert "not here: only virtual time knows" in qsync("list", "faults", "--cluster", "local").out


def test_a_fault_is_listed_for_the_systems_that_the_cluster_does_it_to(qsync: Qsync) -> None:
    """If it failed, power losses would seem to be for three systems, where a disk is mounted under any; and damage
    to be for all, where a run is refused. Names that stand for several would be in no list."""
    rows = {
        row.split()[0]: row for row in qsync("list", "faults", "--cluster", "docker").out.splitlines() if row
    }
    assert "nodes of" not in rows["power-one"] + rows["io-error"]
    assert rows["bit-flip"].endswith("detect (nodes of qsync, tarantool)")
    assert rows["lose-unsynced"].endswith(" power-owner, power-one, power-all")
    ssh = qsync("list", "faults", "--cluster", "ssh").out
    assert "a replica loses power; survive (nodes of qsync, twophase, txlog)" in ssh


@pytest.mark.parametrize(
    "words",
    [
        ("list", "wishes"),
        ("list", "faults", "--cluster", "moon"),
        ("list", "bugs", "--cluster", "sim"),
    ],
)
def test_what_is_no_table_or_cluster_is_64(qsync: Qsync, words: tuple[str, ...]) -> None:
    """If it failed, a mistyped name would list nothing and look like there is nothing."""
    done = qsync(*words)
    assert done.code == 64
    assert done.line
