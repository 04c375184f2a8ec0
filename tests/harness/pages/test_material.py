"""The content of a run's page: a large record is read as columns, a small or a damaged one line by line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy
import pytest

from checkers.history import jsonl, lines
from harness.pages import load_chart, material, page, run_columns, whole_timeline
from harness.pages.material import Material, _Gathering
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from tests.harness.pages.run_folders import build, write_history
from tests.harness.runs import small

BUG = small(seed=1, bugs=("confirm-early",), faults=("isolate-owner",), time_limit_s=6.0, rate=60.0)


def told(read: Material) -> dict[str, Any]:
    found = {each.name: getattr(read, each.name) for each in fields(read)}
    found["monitor"] = tuple(read.monitor)
    for name in ("load", "columns"):
        columns = found.pop(name)
        for each in fields(columns):
            value = getattr(columns, each.name)
            if each.name == "places":
                value = numpy.stack(value(numpy.arange(len(columns))))
            found[f"{name}.{each.name}"] = value.tolist() if isinstance(value, numpy.ndarray) else value
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = execute(parts_of(BUG), tmp_path_factory.mktemp("results")).folder
    finish(folder, BUG)
    return folder


@pytest.mark.parametrize("near", [5_000, 3])
def test_a_large_record_is_shown_as_a_small_one(
    near: int, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a long run would lack operations, or name others."""
    monkeypatch.setattr(material, "NEIGHBOURS_KEPT", near)
    expected = material.read(run.path)
    assert expected.operations and expected.neighbours, "nothing is compared"
    monkeypatch.setattr(jsonl, "LARGE", 0)
    monkeypatch.setattr(lines, "PIECE_BYTES", 2_000)
    monkeypatch.setattr(_Gathering, "take", None)
    assert told(material.read(run.path)) == told(expected)
    assert told(material.read(run.path, history=jsonl.read(run.history))) == told(expected)


@pytest.mark.parametrize("room", [whole_timeline.ROOM, 40])
def test_the_page_of_a_large_record_is_that_of_a_small_one(
    room: int, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page would draw, count or choose in another way, because the record was read in another way."""
    monkeypatch.setattr(whole_timeline, "ROOM", room)
    monkeypatch.setattr(load_chart, "POINTS_DRAWN", 60 * room)
    expected = page.html(run.path)
    monkeypatch.setattr(jsonl, "LARGE", 0)
    monkeypatch.setattr(lines, "PIECE_BYTES", 2_000)
    monkeypatch.setattr(run_columns, "AT_ONCE", 7)
    monkeypatch.setattr(_Gathering, "take", None)
    assert page.html(run.path) == expected


def test_a_torn_large_record_is_shown_up_to_its_tear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a run that was killed would be on its page."""
    folder = build(tmp_path / "made", "anomaly")
    path = folder / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    expected = material.read(folder)
    assert any("torn" in note for note in expected.notes)
    monkeypatch.setattr(jsonl, "LARGE", 0)
    assert told(material.read(folder)) == told(expected)


def test_a_record_with_times_of_day_says_that_they_are_not_shown(tmp_path: Path) -> None:
    """If it failed, the page of a log that counts from 1970 would say that nothing was recorded."""
    day = 1_764_464_500_000_000_000
    events = [
        {"index": place, "time_ns": day + place, "type": kind, "process": 1, "f": "write", "value": 1}
        for place, kind in enumerate(("invoke", "ok"))
    ]
    write_history(tmp_path, events)
    assert "2 lines are not shown: expected times since the run's beginning" in " ".join(
        material.read(tmp_path).notes
    )
