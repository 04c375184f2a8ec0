"""`qsync cut`: cuts through the logs of stopped nodes, ours and real Tarantool's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from checkers.verdict import Verdict, Witness
from harness.cli.exit_codes import ExitCode
from harness.cli.verbs.cut import CutVerdicts, JudgedCut, _lines
from harness.systems.qsync import starts
from tests import needs
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.pipeline.stored_runs import store_run

STORED = Path(starts.__file__).parent / "tarantool-2.6.0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("stored"), 1, rate=60.0, faults=("none",), cut_every_s=0)


@pytest.fixture
def tarantool(tmp_path: Path) -> Path:
    """What a real Tarantool 2.6.0 wrote, alone."""
    folder = tmp_path / "logs" / "n1"
    folder.mkdir(parents=True)
    shutil.copy(STORED / "n1.xlog", folder / "00000000000000000000.xlog")
    shutil.copy(next(STORED.glob("*.snap")), folder / "00000000000000000030.snap")
    return folder.parent


def test_cuts_of_a_run_at_its_decisions_hold(qsync: Qsync, run: Path) -> None:
    """Broken, a right run would be called wrong."""
    said = qsync("cut", run, "--most", "5")
    assert said.code == ExitCode.VALID, said.out
    assert said.out.startswith("VALID  5 of 5 cuts of ")
    told = json.loads(qsync("cut", run, "--most", "5", "--json").out)
    assert [each["verdict"]["result"] for each in told["cuts"]] == ["valid"] * 5


def test_a_cut_that_loses_confirmed_data_says_where_it_is(qsync: Qsync, run: Path) -> None:
    """Broken, nobody would learn which row of which node is too much."""
    said = qsync("cut", run, "--at", "n2=start", "--at", "n3=start")
    assert said.code == ExitCode.ANOMALY
    assert "confirmed-without-quorum: CONFIRM of replica 1 up to" in said.out
    assert "n1         behind CONFIRM 1/" in said.out
    assert "n2         before its first row (0 of " in said.out


def test_the_cut_that_is_shown_is_the_one_that_the_sentence_names() -> None:
    """If it failed, a cut that could not be judged would stand below the sentence of one that is not consistent."""
    lost = Witness(rule="lost", summary="row 7 is gone", events=())
    judged = {
        "open": Verdict(checker="cut", result="unknown", summary=""),
        "wrong": Verdict(checker="cut", result="invalid", summary="", witnesses=(lost,)),
        "right": Verdict(checker="cut", result="valid", summary=""),
    }
    cuts = CutVerdicts([JudgedCut(name, {}, verdict) for name, verdict in judged.items()], decisions=3)
    told = "\n".join(_lines(Mock(), cuts))
    assert "wrong" in told and "lost: row 7 is gone" in told and "open" not in told
    assert not [*_lines(Mock(), CutVerdicts([]))]


def test_a_time_is_a_cut_too(qsync: Qsync, run: Path) -> None:
    """Broken, a cut by time would be at the wrong end of the logs."""
    for time in ("1999-01-01", "2999-01-01T00:00:00Z"):
        assert qsync("cut", run, "--at", time).code == ExitCode.VALID
    early = json.loads(qsync("cut", run, "--at", "1999-01-01", "--json").out)["cuts"][0]["places"]
    assert set(early.values()) <= {0, 1}, "a vote has no time that others know"


def test_a_cut_by_time_names_the_time_in_utc(qsync: Qsync, run: Path) -> None:
    """Broken, a local time would be judged as a time in UTC, and nobody would notice."""
    for asked in ("2999-01-01T12:00:00", "2999-01-01T15:00:00+03:00"):
        assert "cut        at 2999-01-01T12:00:00+00:00" in qsync("cut", run, "--at", asked).out


def test_a_number_of_cuts_is_refused_beside_a_place(qsync: Qsync, run: Path) -> None:
    """Broken, an option would have no effect."""
    said = qsync("cut", run, "--most", "5", "--at", "n1=end")
    assert said.code == ExitCode.WRONG_USE
    assert "--most is for the cuts at decisions" in said.line


@pytest.mark.parametrize(
    ("places", "says"),
    [
        (["n9=start"], "no log is of 'n9'; there are: n1, n2, n3"),
        (["n1=1/99999"], "n1 has no row 1/99999; it goes from 1/1 to 1/"),
        (["n1=soon"], "expected REPLICA/LSN, LSN, start or end, got 'soon'"),
        (["yesterday"], "expected a time or NODE=ROW"),
        (["0001-01-01T00:00+03:00"], "expected a time or NODE=ROW"),
        (["n1=end", "2026-01-01"], "expected NODE=ROW, or one time alone"),
        (["n1=start", "n1=end"], "expected one place of n1, got a second one"),
    ],
)
def test_a_place_that_there_is_not_is_one_line(qsync: Qsync, run: Path, places: list[str], says: str) -> None:
    """Broken, a cut that was never asked for would be judged."""
    said = qsync("cut", run, *(word for place in places for word in ("--at", place)))
    assert said.code == ExitCode.WRONG_USE
    assert says in said.line


def test_logs_without_a_plan_need_a_quorum(qsync: Qsync, run: Path) -> None:
    """Broken, rules that count nodes would pass by any cut."""
    said = qsync("cut", run / "nodes")
    assert said.code == ExitCode.WRONG_USE
    assert said.line.endswith("--quorum 2")
    assert qsync("cut", run / "nodes", "--quorum", "9").code == ExitCode.WRONG_USE
    assert qsync("cut", run / "nodes", "--quorum", "2", "--votes", "--promotes", "synchronous").code == 0


def test_stored_logs_of_tarantool_2_6_are_cut(qsync: Qsync, tarantool: Path) -> None:
    """Broken, rows without flags would confirm nothing, and every cut would hold."""
    said = qsync("cut", tarantool, "--quorum", "1", "--json")
    assert said.code == ExitCode.VALID, said.out
    told = json.loads(said.out)
    assert told["decisions"] == 14
    assert all(each["verdict"]["details"]["decisions"] for each in told["cuts"])


@pytest.mark.real
@needs.tarantool
def test_logs_of_real_tarantools_are_cut(qsync: Qsync, results: Path) -> None:
    """Broken, logs that begin at a snapshot, as those of joined replicas do, could not be cut."""
    qsync("run", "--system", "tarantool", "--time-limit", "3", "--faults", "none", "--seed", "1")
    run = results / "latest"
    assert qsync("cut", run).out.startswith("VALID  ")
    said = qsync("cut", run, "--at", "n2=start", "--at", "n3=start")
    assert said.code == ExitCode.ANOMALY
    assert "confirmed-without-quorum" in said.out
