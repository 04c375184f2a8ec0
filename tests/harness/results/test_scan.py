"""What lies under results/."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import harness.judge
import harness.results
from harness.results.scan import scan


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


@pytest.mark.parametrize(
    "moment",
    [
        "99999999T999999Z",
        "20260230T000000Z",
        "20261301T000000Z",
        "20261121T250000Z",
        "20261121T235960Z",
        "00000101T000000Z",
    ],
)
def test_a_run_of_no_moment_is_named_and_hides_no_other(tmp_path: Path, moment: str) -> None:
    """If it failed, one such folder would end the analysis of all runs."""
    make(tmp_path, f"nightly/{moment}-7", *WHOLE)
    make(tmp_path, "nightly/20261121T010203Z-7", *WHOLE)
    found = scan(tmp_path)
    assert [run.name for run in found.runs] == ["nightly/20261121T010203Z-7"]
    (left_out,) = found.unfinished
    assert left_out.why == f"damaged: expected a name that begins with a time, got {moment}-7"


def test_names_that_are_no_text_and_links_in_a_circle_hide_no_run(tmp_path: Path) -> None:
    """If it failed, one such entry would end the analysis of all runs, or a page with its name could not be written."""
    make(tmp_path, "nightly/20261121T010203Z-7", *WHOLE)
    make(tmp_path, os.fsdecode(b"nightly\xff/20261121T010203Z-7"), *WHOLE)
    make(tmp_path, "nightly/٢٠261121T010203Z-7", *WHOLE)
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nightly" / "circle").symlink_to("circle")
    found = scan(tmp_path)
    assert [run.name for run in found.runs] == ["nightly/20261121T010203Z-7"]
    assert [each.place for each in found.unfinished] == [f"{tmp_path}/nightly\\xff/20261121T010203Z-7"]
    assert [Path(each.place).name for each in found.foreign] == ["circle", "circle", "٢٠261121T010203Z-7"]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    """If it failed, the first analyze of a new checkout would end in a traceback."""
    assert scan(tmp_path / "none").runs == ()


def test_no_name_of_a_package_that_imports_on_use_is_that_of_its_module() -> None:
    """Such a name would be the module wherever that was imported before."""
    for package in (harness.results, harness.judge):
        folder = Path(package.__path__[0])
        assert not {*package._NAMES} & {path.stem for path in folder.iterdir()}
