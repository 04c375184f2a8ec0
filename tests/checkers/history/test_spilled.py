"""Large columns lie in files that are mapped: the same columns, wherever they lie."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy
import pytest

from checkers.history import jsonl, spilled
from checkers.history.spilled import Rooms
from checkers.history.stored import StoredOperations
from tests.checkers.random_runs import Run


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.parametrize("seed", range(20))
def test_a_record_is_the_same_in_memory_and_in_files(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict on a run of hours would rest on other operations."""
    run = Run(seed)
    path = tmp_path / "history.jsonl"
    jsonl.write(path, run.header, run.events)
    monkeypatch.setattr(jsonl, "LARGE", 0)
    in_memory = jsonl.read(path)
    monkeypatch.setattr(spilled, "LARGE", 0)
    monkeypatch.setattr(spilled, "_free_bytes", lambda folder: 1 << 40)
    in_files = jsonl.read(path)
    assert isinstance(in_files.operations, StoredOperations) and is_mapped(in_files.operations.columns.invoke)
    assert isinstance(in_memory.operations, StoredOperations)
    assert not is_mapped(in_memory.operations.columns.invoke)
    assert in_files == in_memory


def test_a_disk_without_room_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process would end without a word when a page of a column finds no place."""
    rows = spilled.LARGE
    monkeypatch.setattr(spilled, "_free_bytes", lambda folder: rows * spilled.BYTES_OF_A_ROW)
    assert is_mapped(Rooms(rows).empty((2, rows), numpy.int8))
    assert not is_mapped(Rooms(rows - 1).empty((2, rows), numpy.int8))
    monkeypatch.setattr(spilled, "_free_bytes", lambda folder: rows * spilled.BYTES_OF_A_ROW - 1)
    assert not is_mapped(Rooms(rows).empty((2, rows), numpy.int8))


def test_another_folder_stands_in_for_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without /var/tmp could judge no long run."""
    monkeypatch.setattr(spilled, "FOLDER", tmp_path / "none")
    monkeypatch.setattr(spilled, "_free_bytes", lambda folder: 1 << 40)
    assert is_mapped(Rooms(spilled.LARGE).empty(spilled.LARGE, numpy.int8))
