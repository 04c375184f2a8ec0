"""`qsync bundle` and `qsync check` of what it wrote: the same outcome as that of the run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest

from harness.judge import EXIT_CODES
from harness.pages import page
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.judge.test_same_outcome import KINDS, MANY
from tests.harness.runs import small
from tests.harness.stored import Kind, nothing, record_torn, stored

OF_OTHER_SYSTEMS = (
    Kind("twophase", small(system="twophase", workload="append", faults=("kill",), seed=1)),
    Kind("txlog", small(system="txlog", faults=("isolate-one",), seed=1)),
    Kind(
        "restore",
        small(system="twophase", workload="restore", faults=("none",), seed=1),
        (nothing, record_torn),
    ),
)
FIFTY = (*KINDS, *OF_OTHER_SYSTEMS, *MANY[::8])


@pytest.fixture
def without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages take longer than the rest."""
    monkeypatch.setattr(page, "html", lambda *_: "")
    monkeypatch.setattr("harness.run.finish.strongest", lambda *_: None)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = small(time_limit_s=2.0, rate=60.0, faults=("none",), seed=5)
    folder = execute(parts_of(plan), tmp_path_factory.mktemp("stored")).folder
    finish(folder, plan)
    return folder.path


@pytest.fixture
def run(judged: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(judged, tmp_path / "stored" / judged.name))


@pytest.mark.usefixtures("without_pages")
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((*KINDS[::3], OF_OTHER_SYSTEMS[-1]), id="few", marks=pytest.mark.long),
        pytest.param(FIFTY, id="fifty", marks=pytest.mark.nightly),
    ],
)
def test_a_bundle_has_the_outcome_of_its_run(qsync: Qsync, tmp_path: Path, kinds: tuple[Kind, ...]) -> None:
    """If it failed, a run would be valid here and an anomaly, unknown or inconclusive where its bundle is sent."""
    seen = []
    for name, folder in stored(tmp_path, kinds):
        out = tmp_path / f"{name}.zip"
        assert qsync("bundle", folder.path, "--out", out).code == 0
        there = qsync("check", out, "--json")
        here = qsync("check", folder.path, "--json")
        told = [json.loads(each.out) if each.out else {} for each in (here, there)]
        assert here.code == there.code, name
        assert told[0].get("outcome") == told[1].get("outcome"), name
        assert told[0].get("sentence") == told[1].get("sentence"), name
        assert there.out or there.err.count("\n") == 1
        seen.append(here.code)
    assert len(seen) >= (50 if kinds is FIFTY else 8)
    assert {*seen} == {*EXIT_CODES.values()}


def test_a_judged_run_is_judged_again(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, a bundle would not hold all that its run was judged by, or leave its files behind."""
    out = tmp_path / "made.zip"
    before = {path.name for path in tmp_path.iterdir()}
    said = qsync("bundle", run.path, "--out", out)
    assert said.out.startswith(f"{out}: ")
    shown = tmp_path / "page.html"
    done = qsync("check", out, "--verify", "--html", shown)
    assert done.code == 0
    assert "proofs accepted" in done.out
    assert f"bundle  {out}" in done.out
    assert shown.stat().st_size > 1000
    assert {path.name for path in tmp_path.iterdir()} == {*before, "made.zip", "page.html"}


def test_a_bundle_in_a_pipe_is_whole(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, `--out /dev/stdout | ssh` would send no bundle, or one with a sentence behind it."""
    pipe, out = tmp_path / "pipe", tmp_path / "made.zip"
    os.mkfifo(pipe)
    number = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, 1 << 20)
        said = qsync("bundle", run.path, "--out", pipe)
        assert pipe.is_fifo()
        out.write_bytes(os.read(number, 1 << 20))
    finally:
        os.close(number)
    assert (said.code, said.out) == (0, "") and said.line.startswith(f"{pipe}: ")
    assert qsync("check", out).code == 0


def test_a_bundle_takes_the_place_of_no_file_of_its_run(qsync: Qsync, run: RunFolder) -> None:
    """If it failed, a slip in --out would put the bundle in the place of the record that is in it."""
    for name in ("history.jsonl", "plan.json", "hashes.json"):
        before = (run.path / name).read_bytes()
        done = qsync("bundle", run.path, "--out", run.path / name)
        assert (done.code, "is a file of the run" in done.line) == (64, True)
        assert (run.path / name).read_bytes() == before


def test_a_changed_record_stays_changed(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, a bundle would launder a record that was edited after its judgement."""
    run.history.write_bytes(run.history.read_bytes().replace(b'"ok"', b'"no"', 1))
    assert qsync("check", run.path).code == 3
    qsync("bundle", run.path, "--out", tmp_path / "made.zip")
    done = qsync("check", tmp_path / "made.zip")
    assert done.code == 3
    assert "has changed" in done.line


def test_damage_is_one_line(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, a damaged bundle would be judged, or end in a traceback."""
    out = tmp_path / "made.zip"
    qsync("bundle", run.path, "--out", out)
    data = out.read_bytes()
    for place in (0, 40, len(data) // 2, len(data) - 1):
        out.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        done = qsync("check", out)
        assert done.code == 3
        assert "damaged" in done.line
    out.write_bytes(b"")
    assert qsync("check", out).code == 3


def test_wrong_use_is_one_line(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, a slip would end in a traceback."""
    assert "no run" in qsync("bundle", tmp_path).line
    assert "not there" in qsync("bundle", run.path, "--out", tmp_path / "nowhere" / "made.zip").line
    out = tmp_path / "made.zip"
    qsync("bundle", run.path, "--out", out)
    assert "of one run" in qsync("check", out, "--engine", "spark").line
    assert qsync("check", out, "--model", "append").code == 64


@pytest.mark.usefixtures("without_pages")
def test_bundles_are_judged_among_others(qsync: Qsync, run: RunFolder, tmp_path: Path) -> None:
    """If it failed, `qsync check *.zip` would refuse each bundle as the file of another tool."""
    folder = tmp_path / "bundles"
    folder.mkdir()
    bundles = [folder / name for name in ("a.zip", "b.zip")]
    for path in bundles:
        assert qsync("bundle", run.path, "--out", path).code == 0
    bundles[1].write_bytes(bundles[1].read_bytes()[:-1])
    done = qsync("check", bundles[0], run.path, bundles[1])
    told = [line.split(": ")[0].split() for line in done.out.splitlines()[:3]]
    assert told == [["valid", str(bundles[0])], ["valid", str(run.path)], ["refused", str(bundles[1])]]
    told = [line.split(":")[0].split() for line in qsync("check", folder).out.splitlines()[:2]]
    assert told == [["valid", str(bundles[0])], ["refused", str(bundles[1])]]
    assert done.code == 3 and "does not end with the seal" in done.out
