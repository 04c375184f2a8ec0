"""Tables without their state: what is whole is found by looking into the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from harness.pipeline.stock import State, taken_stock

NAME = "runs/1-a.parquet"


@pytest.mark.parametrize("name", [b"rux", b"r\xffn"], ids=["other", "no text"])
def test_a_file_of_runs_with_a_damaged_schema_is_damaged(tmp_path: Path, name: bytes) -> None:
    """If it failed, one bit in a file would end `analyze --anew`, which is the way out, with a KeyError."""
    file = tmp_path / NAME
    file.parent.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"run": ["a/1"]}), file, store_schema=False)
    assert [*taken_stock([NAME], State(), lambda name: tmp_path / name).state.runs] == ["a/1"]
    file.write_bytes(file.read_bytes().replace(b"run", name))
    assert taken_stock([NAME], State(), lambda name: tmp_path / name).damaged == (NAME,)
