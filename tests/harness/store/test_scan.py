"""What lies under results/."""

from __future__ import annotations

from pathlib import Path

import harness.judge
import harness.store
from harness.store.scan import scan


def make(results: Path, name: str, *files: str) -> Path:
    folder = results / name
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_text("{}\n")
    return folder


WHOLE = ("plan.json", "history.jsonl", "verdict.json")


def test_finished_unfinished_and_foreign_are_told_apart(tmp_path: Path) -> None:
    """If it failed, a run that is going on would be analyzed, or a stranger's file would stop everything."""
    make(tmp_path, "nightly/20261121T010203Z-7", *WHOLE)
    make(tmp_path, "nightly/20261121T010203Z-7-2", *WHOLE)
    make(tmp_path, "nightly/20261121T020000Z-8", "plan.json", "history.jsonl")
    make(tmp_path, "nightly/20261121T030000Z-9", "plan.json")
    make(tmp_path, "nightly/holiday pictures")
    make(tmp_path, "_tables/runs", "x.parquet")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "README.md").touch()
    (tmp_path / "latest").symlink_to("nightly/20261121T010203Z-7")
    found = scan(tmp_path)
    assert [run.name for run in found.runs] == ["nightly/20261121T010203Z-7", "nightly/20261121T010203Z-7-2"]
    assert (found.runs[0].campaign, found.runs[0].date) == ("nightly", "2026-11-21")
    assert [(each.path.name, each.why) for each in found.unfinished] == [
        ("20261121T020000Z-8", "half-written: it has no verdict (yet)"),
        ("20261121T030000Z-9", "half-written: history.jsonl is missing"),
    ]
    assert {each.path.name for each in found.foreign} == {"holiday pictures", "notes.txt"}


def test_the_stamp_changes_when_a_run_is_judged_again(tmp_path: Path) -> None:
    """If it failed, a verdict that was mended would never reach the tables."""
    folder = make(tmp_path, "nightly/20261121T010203Z-7", *WHOLE)
    (before,) = scan(tmp_path).runs
    (same,) = scan(tmp_path).runs
    (folder / "verdict.json").write_text('{"again": 1}\n')
    (after,) = scan(tmp_path).runs
    assert before == same
    assert before.stamp != after.stamp


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    """If it failed, the first analyze of a new checkout would end in a traceback."""
    assert scan(tmp_path / "none").runs == ()


def test_no_name_of_a_package_that_imports_on_use_is_that_of_its_module() -> None:
    """Such a name would be the module wherever that was imported before."""
    for package in (harness.store, harness.judge):
        folder = Path(package.__path__[0])
        assert not {*package._NAMES} & {path.stem for path in folder.iterdir()}
