"""Logs and clients as tables: the verdicts are those of the objects, and tables that cannot be are refused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy
import pyarrow
import pyarrow.parquet
import pytest

from bench import txlog_tables as tables
from checkers.history.errors import HistoryError
from checkers.logs.txlog import Given, check, log_of
from tests.checkers.logs.txlog.random_logs import RandomLogs


def written(folder: Path, seed: int) -> Given:
    """The material of a seed, as objects; its tables are in the folder."""
    made = RandomLogs(Random(seed), 8)
    logs = {name: log_of(name, records) for name, records in made.logs.items()}
    told, fields = made.history(), made.configured()
    given = Given(masters=("n1", "n2", "n3"), logs=logs, history=told, **fields)
    tables.write(folder, given.columns, told)
    return given


@pytest.mark.parametrize("seed", range(12))
def test_tables_say_what_objects_say(tmp_path: Path, seed: int) -> None:
    given = written(tmp_path, seed)
    fields = (
        "masters",
        "late",
        "strategy",
        "split_ns",
        "max_peer_lag_ns",
        "agrees_within_ns",
        "executes_within_ns",
        "is_deterministic",
    )
    read = tables.read(tmp_path, **{name: getattr(given, name) for name in fields})
    ours, theirs = check(read), check(given)
    for name, verdict in theirs.items():
        assert ours[name].to_json() == verdict.to_json(), name


def changed(path: Path, column: str, row: int, value: int) -> None:
    """The table with another number in one place."""
    table = pyarrow.parquet.read_table(path)
    numbers = table[column].to_numpy().copy()
    numbers[row] = value
    place = table.schema.get_field_index(column)
    table = table.set_column(place, column, pyarrow.array(numbers, table.schema.field(column).type))
    pyarrow.parquet.write_table(table, path)


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        ("transactions.parquet", "id", 1_000),
        ("transactions.parquet", "origin", -1),
        ("transactions.parquet", "ts", -1),
        ("n1/records.parquet", "kind", 99),
        ("n1/records.parquet", "name", 1_000),
        ("n1/records.parquet", "number", -5),
        ("n1/records.parquet", "count", 7_000),
        ("n1/listed.parquet", "listed", 1_000),
    ],
)
def test_numbers_that_the_tables_have_not_are_refused(
    tmp_path: Path, file: str, column: str, value: int
) -> None:
    """Else a kernel would read what is behind the end of an array."""
    written(tmp_path, 3)
    row = 0
    if column == "name":
        kind = pyarrow.parquet.read_table(tmp_path / file)["kind"].to_numpy()
        row = int(numpy.flatnonzero(kind == 1)[0])
    changed(tmp_path / file, column, row, value)
    with pytest.raises(HistoryError, match=file.rpartition("/")[2].replace("listed.p", "records.p")):
        tables.read(tmp_path, masters=("n1", "n2", "n3"))


def test_a_transaction_with_two_numbers_is_refused(tmp_path: Path) -> None:
    """Else two masters with the same queue would differ."""
    written(tmp_path, 3)
    path = tmp_path / "transactions.parquet"
    table = pyarrow.parquet.read_table(path)
    twice = pyarrow.concat_tables([table, table.slice(0, 1)]).replace_schema_metadata(table.schema.metadata)
    pyarrow.parquet.write_table(twice, path)
    with pytest.raises(HistoryError, match="each transaction once"):
        tables.read(tmp_path, masters=("n1", "n2", "n3"))


def test_hashes_of_other_lengths_are_refused(tmp_path: Path) -> None:
    logs = {"n1": log_of("n1", [["executed", 1, "n1-1", b"short"]])}
    with pytest.raises(ValueError, match="8 bytes"):
        tables.write(tmp_path, Given(masters=("n1",), logs=logs).columns)
