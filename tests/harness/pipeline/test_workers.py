"""Files of nodes as rows, in batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import pyarrow
import pytest

from harness.pipeline import workers


@pytest.mark.parametrize("lines", [1, 3, 4, 10])
def test_every_row_of_a_file_is_in_a_batch(
    lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, tables would lack all rows of a run behind the first batch, and nothing would say so."""
    monkeypatch.setattr(workers, "ROWS_A_BATCH", 3)

    def read(run: str, path: Path) -> Any:
        with path.open() as file:
            yield from ((run, json.loads(line)) for line in file)

    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{number}\n" for number in range(lines)))
    given = pyarrow.RecordBatch.from_pylist([{"run": "a", "path": str(path)}])
    rows = [
        row
        for batch in workers._rows(iter([given]), read, "run string, number long")
        for row in batch.to_pylist()
    ]
    assert [row["number"] for row in rows] == list(range(lines))


def test_rows_before_one_that_fits_no_column_are_kept(tmp_path: Path) -> None:
    """If it failed, one number beyond 64 bits would take twenty thousand rows with it."""

    def read(run: str, path: Path) -> Any:
        yield from ((run, number) for number in (1, 2, 2**70, 4))

    given = pyarrow.RecordBatch.from_pylist([{"run": "a", "path": str(tmp_path)}])
    batches = workers._rows(iter([given]), read, "run string, number long")
    assert [row["number"] for batch in batches for row in batch.to_pylist()] == [1, 2]


def test_a_value_that_is_too_deep_for_json_ends_the_rows_of_its_file(tmp_path: Path) -> None:
    """msgpack reads 1,024 levels, and JSON is not written so deep: one record would end the job for all runs."""
    deep = msgpack.unpackb(b"\x91" * 1_020 + b"\x01")

    def read(run: str, path: Path) -> Any:
        yield from ((run, *workers._key_and_value(("a", value))) for value in (1, deep, 2))

    given = pyarrow.RecordBatch.from_pylist([{"run": "a", "path": str(tmp_path)}])
    batches = workers._rows(iter([given]), read, "run string, key string, value string")
    assert [row["value"] for batch in batches for row in batch.to_pylist()] == ["1"]


def test_a_log_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """If it failed, one folder in the place of a log would leave all nodes behind it out of the table."""
    (tmp_path / "nodes" / "n1" / "log.jsonl").mkdir(parents=True)
    (tmp_path / "nodes" / "n2").mkdir()
    (tmp_path / "nodes" / "n2" / "log.jsonl").write_text("{}\n")
    given = pyarrow.RecordBatch.from_pylist([{"run": "a", "path": str(tmp_path)}])
    rows = [row for batch in workers.node_log(iter([given])) for row in batch.to_pylist()]
    assert rows == [{"run": "a", "node": "n2", "number": 1, "line": "{}"}]
