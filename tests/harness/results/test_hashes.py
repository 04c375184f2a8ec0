"""A run says which files it was judged on; one that has changed since is named, and never judged in silence."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import parquet
from harness.cli.main import main
from harness.errors import StoreError
from harness.pages import page
from harness.results import RunFolder, hashes
from harness.run.finish import finish
from harness.systems.plans import read
from tests.harness.pipeline.stored_runs import store_run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("stored"), 1, rate=40.0, faults=("none",))


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "results" / "nightly" / stored.name)


def files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_the_list_names_what_was_judged_and_what_was_made_of_it(run: Path) -> None:
    """If it failed, a file could change and nothing would know."""
    document = msgspec.json.decode((run / "hashes.json").read_bytes())
    assert (document["format"], document["version"]) == ("qsync-hashes", 2)
    logs = {name for name in files(run) if name.endswith((".xlog", ".snap", "log.jsonl"))}
    assert logs and set(document["files"]) == logs | {
        *("plan.json", "history.jsonl", "history.parquet", "verdict.json", "nodes/effects.jsonl")
    }
    for name, listed in document["files"].items():
        assert listed["bytes"] == (run / name).stat().st_size
    assert hashes.changed(run) == []


CHANGES: dict[str, Callable[[Path], object]] = {
    "history.jsonl has another content": lambda run: _flip(run / "history.jsonl"),
    "plan.json has another content": lambda run: (run / "plan.json").write_bytes(
        (run / "plan.json").read_bytes() + b" "
    ),
    "xlog has another content": lambda run: _flip(next(run.glob("nodes/*/*.xlog"))),
    "xlog is missing": lambda run: next(run.glob("nodes/*/*.xlog")).unlink(),
    "nodes/n9/1.xlog was added": lambda run: _add(run / "nodes" / "n9" / "1.xlog"),
    "hashes.json cannot be read": lambda run: (run / "hashes.json").write_text("{}"),
    "expected qsync-hashes 2, got qsync-hashes 3": lambda run: _number(run, 3),
}


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _number(run: Path, version: int) -> None:
    """The list is of that version."""
    listed = (run / "hashes.json").read_bytes()
    (run / "hashes.json").write_bytes(listed.replace(b'"version": 2', b'"version": %d' % version))


def _add(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"")


@pytest.mark.parametrize("what", CHANGES)
def test_a_run_whose_record_has_changed_is_not_judged_again(
    run: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, `check` would say VALID of another record than the run's."""
    CHANGES[what](run)
    before = files(run)
    assert main(["check", str(run)]) == 3
    assert what in capsys.readouterr().err
    assert main(["check", str(run.parent)]) == 3
    assert what in capsys.readouterr().out
    assert files(run) == before, "what was judged stays"
    (run / "hashes.json").unlink()  # a person says that the record is meant as it is
    main(["check", str(run)])
    assert what not in capsys.readouterr().err


@pytest.fixture(scope="module")
def with_cuts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("stored"), 1, rate=40.0, system="twophase", faults=("none",))


@pytest.mark.parametrize("pattern", ["wal-*.log", "cuts.index", "trace/*.jsonl"])
def test_what_cuts_were_judged_by_is_in_the_list(
    with_cuts: Path, pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, cuts would be judged again by other logs or messages than the run's."""
    run = shutil.copytree(with_cuts, tmp_path / with_cuts.name)
    changed = next(run.glob(f"nodes/*/{pattern}"))
    _flip(changed)
    assert hashes.changed(run) == [f"{changed.relative_to(run)} has another content"]
    assert main(["check", str(run)]) == 3
    assert str(changed.relative_to(run)) in capsys.readouterr().err


def test_what_the_checks_of_the_txlog_judge_is_in_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, eleven checks would judge other logs than the run's, or refuse a run of an earlier day."""
    run = store_run(tmp_path, 1, rate=40.0, system="txlog", faults=("none",))
    listed = msgspec.json.decode((run / "hashes.json").read_bytes())
    earlier = {name: each for name, each in listed["files"].items() if not name.endswith("/txlog.log")}
    assert len(earlier) == len(listed["files"]) - 3
    _flip(run / "nodes" / "n1" / "txlog.log")
    assert main(["check", str(run)]) == 3
    assert "nodes/n1/txlog.log has another content" in capsys.readouterr().err
    (run / "hashes.json").write_bytes(msgspec.json.encode({**listed, "files": earlier}))
    assert hashes.changed(run) == []


def test_a_list_of_the_first_version_does_not_cover_them(with_cuts: Path, tmp_path: Path) -> None:
    """If it failed, runs that an earlier version has judged would count as changed."""
    run = shutil.copytree(with_cuts, tmp_path / with_cuts.name)
    _number(run, 1)
    listed = msgspec.json.decode((run / "hashes.json").read_bytes())
    covered = {name: each for name, each in listed["files"].items() if not _is_of_cuts(name)}
    assert covered.keys() < listed["files"].keys()
    (run / "hashes.json").write_bytes(msgspec.json.encode({**listed, "files": covered}))
    _flip(next(run.glob("nodes/*/wal-*.log")))
    assert hashes.changed(run) == []
    _flip(run / "history.jsonl")
    assert hashes.changed(run) == ["history.jsonl has another content"]


def _is_of_cuts(name: str) -> bool:
    return "/trace/" in name or "/wal-" in name or name.endswith("cuts.index")


def test_what_was_made_of_the_record_is_made_anew(run: Path) -> None:
    """If it failed, a spoilt verdict or spoilt columns could not be mended."""
    _flip(run / "history.parquet")
    _flip(run / "verdict.json")
    assert hashes.changed(run) == ["history.parquet has another content", "verdict.json has another content"]
    assert main(["check", str(run)]) == 0
    assert hashes.changed(run) == []
    assert parquet.read(run / "history.parquet").events


def test_a_run_of_an_earlier_version_is_read_as_it_is(run: Path) -> None:
    """If it failed, whatever was stored before could not be judged again."""
    (run / "hashes.json").unlink()
    assert hashes.changed(run) == []
    assert main(["check", str(run)]) == 0
    assert (run / "hashes.json").exists()


def test_a_copy_of_some_files_is_compared_as_far_as_it_goes(run: Path) -> None:
    """If it failed, a run that is fetched in part would look spoilt, or what is missing of it would not be noticed."""
    (run / "history.jsonl").unlink()
    assert hashes.changed(run, lambda name: name != "history.jsonl") == []
    assert hashes.changed(run) == ["history.jsonl is missing"]


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("module", "name"),
    [(page, "html"), (parquet, "write"), (hashes, "document")],
    ids=["page", "columns", "hashes"],
)
@pytest.mark.parametrize("was_judged", [True, False])
def test_what_was_judged_stays_until_the_new_judgement_is_whole(
    run: Path, module: object, name: str, was_judged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, judging a run again on a full disk would take its verdict away."""
    if not was_judged:
        for made in ("verdict.json", "history.parquet", "hashes.json", "report.html"):
            (run / made).unlink()
    before = files(run)
    monkeypatch.setattr(module, name, _no_space)
    folder = RunFolder(run)
    with pytest.raises(StoreError, match="No space left on device"):
        finish(folder, read(folder.plan_file))
    assert main(["check", str(run)]) == 3
    assert main(["check", str(run.parent)]) == 3
    assert files(run) == before
    assert (folder.read_verdict_outcome() is not None) == was_judged


def test_a_defect_of_the_harness_breaks_one_run_and_keeps_its_verdict(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, one run that cannot be judged would end the judgement of a thousand others."""
    other = shutil.copytree(run, run.parent / "20200101T000000Z-1")
    real = page.html

    def html(folder: Path, *read: Any) -> str:
        if folder == other:
            raise ZeroDivisionError("planted")
        return real(folder, *read)

    monkeypatch.setattr(page, "html", html)
    before = files(other)
    assert main(["check", str(run.parent)]) == 70
    told = capsys.readouterr().out
    assert "planted" in told and "valid" in told
    assert files(other) == before


@pytest.mark.long
def test_an_anomaly_is_kept_even_without_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a full disk would hide an anomaly, or leave a verdict that does not go with its hashes."""
    bug: dict[str, object] = {"bugs": ("confirm-early",), "faults": ("isolate-owner",), "configuration": "C"}
    run = store_run(tmp_path, 3, time_limit_s=10.0, **bug)
    before = (run / "report.html").read_bytes()
    monkeypatch.setattr(page, "html", _no_space)
    assert main(["check", str(run)]) == 1
    verdict = RunFolder(run).read_verdict()
    assert verdict is not None and verdict["outcome"] == "anomaly"
    assert "No space left on device" in str(verdict["findings"])
    assert (run / "report.html").read_bytes() == before
    assert hashes.changed(run) == []
