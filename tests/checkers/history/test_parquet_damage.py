"""A history.parquet that has changed since it was written is refused, wherever it has changed."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from checkers import linearizable
from checkers.history import HistoryError, parquet, sealed_parquet, tables
from checkers.history.foreign import read as read_any
from checkers.history.history import Header, History
from checkers.history.operation import Event

PLACES = 300


def history() -> History:
    """Writes and reads of a few registers, some without an answer, and lines of the harness."""
    chance = random.Random(5)
    events: list[Event] = []

    def record(**fields: Any) -> None:
        events.append(Event(index=len(events), time_ns=1_000 * len(events), **fields))

    for number in range(120):
        key = f"r{chance.randrange(4)}"
        record(process=number, type="invoke", f="write", key=key, value=number, node="n1")
        if chance.random() < 0.9:
            record(process=number, type="ok", f="write", key=key, value=number, node="n1")
        if number % 30 == 0:
            record(process="harness", type="info", f="note", value={"n": number})
    return History.of(Header(system="qsync", nodes=("n1",)), events)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "history.parquet"
    parquet.write(path, history())
    return path


def rows(path: Path) -> Any:
    return parquet.read(path).events


def outcome(take: Callable[[Path], Any], path: Path) -> Any:
    """What is taken of a file, or how it is refused."""
    try:
        return take(path)
    except HistoryError as error:
        return str(error)


def rows_of_keys(path: Path) -> Any:
    return parquet.read_keys(path, ["r1", "r3"]).events


def verdict(path: Path) -> Any:
    found = linearizable.check(parquet.read(path))
    return found.result, found.summary, found.details["operations"]


@pytest.mark.parametrize(("take", "places"), [(rows, PLACES), (rows_of_keys, PLACES), (verdict, 40)])
def test_four_bytes_overwritten_anywhere_never_give_other_rows(
    written: Path, tmp_path: Path, take: Callable[[Path], Any], places: int
) -> None:
    """If it failed, a disk that spoils four bytes would change what a history says, and no reader would notice."""
    whole, before = take(written), written.read_bytes()
    path = tmp_path / "history.parquet"
    chance = random.Random(13)
    at_the_ends = [*range(0, 16, 4), *range(len(before) - 24, len(before) - 3)]
    refused = 0
    for place in [*at_the_ends, *sorted(chance.sample(range(len(before) - 4), places))]:
        changed = bytearray(before)
        changed[place : place + 4] = bytes(
            each ^ chance.randrange(1, 256) for each in before[place : place + 4]
        )
        path.write_bytes(changed)
        told = outcome(take, path)
        assert told == whole or (isinstance(told, str) and "history.parquet" in told), place
        refused += told != whole
    assert refused > places * 0.9


def test_a_file_that_lost_its_end_or_its_beginning_is_refused(written: Path, tmp_path: Path) -> None:
    """If it failed, half a file would be read as a short history."""
    before = written.read_bytes()
    path = tmp_path / "history.parquet"
    for kept in (b"", before[:3], before[:-1], before[: len(before) // 2], before[9:], before + b"x"):
        path.write_bytes(kept)
        with pytest.raises(HistoryError):
            parquet.read(path)


def test_a_file_that_is_cut_off_while_it_is_hashed_is_read_to_its_end() -> None:
    """A reader of a file that is written again meanwhile would hang for ever."""

    class Cut(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            assert self.reads < 9, "it goes on behind the end"
            return super().read(size)

    assert sealed_parquet._digest(Cut(b"cut"), 1000, 1064) == hashlib.sha256(b"cut").digest()


@pytest.mark.parametrize("large", [1, 1_000_000])
def test_a_copy_of_a_torn_record_is_torn(large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a record that is unknown, because its end was lost, would be valid by its own copy."""
    monkeypatch.setattr(parquet, "LARGE", large)
    path = tmp_path / "history.parquet"
    parquet.write(path, replace(history(), torn="line 9 was torn off"))
    readers = (parquet.read, parquet.read_others, lambda path: parquet.read_keys(path, ["r1"]))
    assert {read(path).torn for read in readers} == {"line 9 was torn off"}


def test_a_page_is_verified_by_readers_that_know_no_seal(written: Path, tmp_path: Path) -> None:
    """If it failed, a worker that reads one row group, or another tool, could not notice a spoilt page."""
    data = bytearray(written.read_bytes())
    column = pyarrow.parquet.ParquetFile(written).metadata.row_group(0).column(1)  # time_ns
    middle = column.data_page_offset + column.total_compressed_size // 2
    data[middle] ^= 0xFF
    path = tmp_path / "history.parquet"
    path.write_bytes(data)
    with pytest.raises(OSError, match="CRC"):
        pyarrow.parquet.read_table(path, page_checksum_verification=True)


def test_columns_of_an_earlier_version_are_read_as_they_are(written: Path, tmp_path: Path) -> None:
    """If it failed, every run that was stored before would have to be judged again before anything could read it."""
    old = tmp_path / "history.parquet"
    table = pyarrow.parquet.read_table(written)
    metadata = {name: value for name, value in table.schema.metadata.items() if b"seal" not in name}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), old, compression="zstd")
    assert parquet.read(old).events == history().events
    assert read_any(old).origin == "parquet"


def test_a_file_from_before_a_column_was_added_is_read(written: Path, tmp_path: Path) -> None:
    """If it failed, no stored run from before commit waits could be read from its columns."""
    table = pyarrow.parquet.read_table(written)
    older = table.drop_columns(["wait", "transaction"])
    metadata = {name: value for name, value in table.schema.metadata.items() if name == b"qsync-history"}
    path = tmp_path / "history.parquet"
    pyarrow.parquet.write_table(older.replace_schema_metadata(metadata), path)
    assert rows(path) == rows(written)
    assert linearizable.check(parquet.read(path)).result == linearizable.check(parquet.read(written)).result


def test_a_table_without_a_needed_column_is_refused(written: Path, tmp_path: Path) -> None:
    """If it failed, a file of another tool would end in a traceback, or a defect would be called a damaged file."""
    path = tmp_path / "history.parquet"
    table = pyarrow.parquet.read_table(written)
    metadata = {name: value for name, value in table.schema.metadata.items() if name == b"qsync-history"}
    pyarrow.parquet.write_table(
        table.drop_columns(["actor", "value"]).replace_schema_metadata(metadata), path
    )
    for take in (parquet.read, parquet.read_others, rows_of_keys):
        with pytest.raises(HistoryError, match=r"history\.parquet: a table without the columns actor, value"):
            take(path)


def without_seal(written: Path, folder: Path, change: Callable[[Any], Any]) -> Path:
    """The rows in their order, changed, as another tool writes them."""
    table = pyarrow.parquet.read_table(written)
    metadata = {name: value for name, value in table.schema.metadata.items() if name == b"qsync-history"}
    path = folder / "history.parquet"
    pyarrow.parquet.write_table(change(table).replace_schema_metadata(metadata), path)
    return path


def with_column(table: Any, name: str, values: list[Any]) -> Any:
    return table.set_column(
        table.schema.get_field_index(name), name, pyarrow.array(values, pyarrow.infer_type(values))
    )


@pytest.mark.parametrize(
    ("change", "came"),
    [
        (lambda table: table.take([*range(5, len(table)), *range(5)]), "event 0 at 0 ns behind event"),
        (lambda table: table.slice(4), "rows are missing"),
        (lambda table: table.take([0, 1, *range(4, len(table))]), "rows are missing"),
        (lambda table: with_column(table, "index", [7] * len(table)), "event 7 at .* behind event 7"),
        (lambda table: with_column(table, "time_ns", list(range(len(table), 0, -1))), "behind event 0"),
        (lambda table: with_column(table, "type", ["maybe"] * len(table)), "Invalid enum value 'maybe'"),
        (lambda table: with_column(table, "f", [None] * (len(table) - 1) + ["f"]), "missing required field"),
        (lambda table: with_column(table, "phase", ["late"] * len(table)), "Invalid enum value 'late'"),
        (lambda table: with_column(table, "value", [1] * len(table)), "without texts in the columns value"),
        (lambda table: with_column(table, "key", [1] * len(table)), "without texts in the columns key"),
    ],
)
@pytest.mark.parametrize("large", [1, parquet.LARGE])
def test_rows_that_are_no_record_are_refused(
    written: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], Any],
    came: str,
    large: int,
) -> None:
    """If it failed, rows that another tool had sorted or filtered would be judged as if they were the run."""
    monkeypatch.setattr(parquet, "LARGE", large)
    with pytest.raises(HistoryError, match=came):
        parquet.read(without_seal(written, tmp_path, change))


@pytest.mark.parametrize("large", [1, parquet.LARGE])
def test_texts_of_another_kind_are_texts(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """If it failed, a large file that another tool wrote would be damaged, and a small one be right."""
    monkeypatch.setattr(parquet, "LARGE", large)
    path = without_seal(
        written,
        tmp_path,
        lambda table: table.set_column(
            table.schema.get_field_index("value"), "value", table["value"].dictionary_encode()
        ),
    )
    assert parquet.read(path).operations == parquet.read(written).operations


@pytest.mark.parametrize("column", ["index", "time_ns", "process"])
@pytest.mark.parametrize("made", [lambda number: number + 0.5, str], ids=["fraction", "text"])
def test_odd_numbers_of_a_large_table_are_those_of_a_small_one(
    column: str, made: Callable[[int], Any], written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, process 1.5 would be process 1 from some thousand lines on, and the history valid."""
    path, table = tmp_path / "odd.parquet", pyarrow.parquet.read_table(written)
    place = table.schema.get_field_index(column)
    values = [None if number is None else made(number) for number in table[column].to_pylist()]
    table = table.set_column(place, column, pyarrow.array(values))
    name = b"qsync-history"  # without its seal, as another tool writes it
    pyarrow.parquet.write_table(table.replace_schema_metadata({name: table.schema.metadata[name]}), path)
    told = []
    for large in (10**9, 0):
        monkeypatch.setattr(parquet, "LARGE", large)
        told.append(outcome(lambda file: len(parquet.read(file).operations), path))
    assert told[0] == told[1] and "lost" not in str(told[0])


def test_a_code_without_a_word_is_damage() -> None:
    """If it failed, a spoilt file without a seal would end in a traceback."""
    word = pyarrow.DictionaryArray.from_arrays(pyarrow.array([2]), pyarrow.array(["invoke"]), safe=False)
    numbers = {name: pyarrow.array([0]) for name in ("index", "time_ns", "process")}
    batch = pyarrow.record_batch({**numbers, "value": pyarrow.array(["1"]), "type": word})
    with (
        pytest.raises(HistoryError, match="column type has a code without a word"),
        parquet.damage_refused(Path("history.parquet")),
    ):
        tables.operations_in(batch)


@pytest.mark.parametrize("defect", [KeyError, IndexError, ValueError])
def test_a_defect_of_this_program_is_no_damaged_file(defect: type[Exception]) -> None:
    """If it failed, a defect of a reader would be reported as the disk's."""
    with pytest.raises(defect), parquet.damage_refused(Path("history.parquet")):
        raise defect
