"""Some keys of a history.parquet are what all of it says about these keys."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import HistoryError, parquet, tables
from checkers.history.history import Header, History
from checkers.history.operation import Event

KEYS = ("a", "b", "None", None)


@st.composite
def records(draw: st.DrawFn) -> list[Event]:
    """Writes of three processes on four keys, of which one is missing; some completions leave out their key."""
    events: list[Event] = []
    running: dict[int, str | None] = {}
    for _ in range(draw(st.integers(0, 14))):
        process = draw(st.integers(0, 2))
        is_invoke = process not in running
        key = draw(st.sampled_from(KEYS)) if is_invoke else running.pop(process)
        if is_invoke:
            running[process] = key
        event = Event(
            index=len(events),
            time_ns=len(events),
            type="invoke" if is_invoke else draw(st.sampled_from(("ok", "fail", "info"))),
            process=process,
            f="write",
            key=key if is_invoke or draw(st.booleans()) else None,
            value=1,
        )
        events.append(event)
        if draw(st.integers(0, 5)) == 0:
            events.append(
                Event(index=len(events), time_ns=len(events), type="info", process="harness", f="note")
            )
    return events


@given(events=records(), keys=st.sets(st.sampled_from(KEYS)))
def test_some_keys_have_the_operations_that_they_have_in_the_whole(
    events: list[Event], keys: set[str | None]
) -> None:
    """If it failed, a key that Spark did not find valid would be judged again without some of its answers."""
    whole = History.of(Header(), events)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.parquet"
        parquet.write(path, whole)
        found = parquet.read_keys(path, keys)
    assert found.operations == tuple(each for each in whole.operations if each.key in keys)
    assert all(event == events[event.index] for event in found.events)


def test_an_answer_on_a_key_that_nothing_asked_for_is_refused(tmp_path: Path) -> None:
    """If it failed, a key would be judged without the answers that do not add up."""
    path = tmp_path / "history.parquet"
    answer = Event(index=0, time_ns=0, type="ok", process=0, f="write", key="a", value=1)
    parquet.write(path, History(header=Header(), events=[answer], operations=()))
    with pytest.raises(HistoryError, match="an open operation of process 0"):
        parquet.read_keys(path, ["a"])


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[int, int, int | None, str]]:
    """(index, time, process, type) of rows, most of which are a record."""
    made: list[tuple[int, int, int | None, str]] = []
    running: set[int] = set()
    for place in range(draw(st.integers(0, 12))):
        process = draw(st.none() | st.integers(0, 3))
        is_odd = draw(st.integers(0, 30)) == 0
        kind = (
            "invoke" if (process not in running) != is_odd else draw(st.sampled_from(("ok", "fail", "info")))
        )
        if process is not None:
            running ^= {process}
        index, time_ns = (place + draw(st.sampled_from((0,) * 30 + (1, -1))) for _ in range(2))
        made.append((index, time_ns, process, kind))
    return made


def do_add_up(made: list[tuple[int, int, int | None, str]]) -> bool:
    running: set[int] = set()
    last_ns = 0
    for place, (index, time_ns, process, kind) in enumerate(made):
        if index != place or time_ns < last_ns:
            return False
        last_ns = time_ns
        if process is not None:
            if (process in running) == (kind == "invoke"):
                return False
            running ^= {process}
    return True


@given(made=rows(), at_once=st.integers(1, 5), is_dictionary=st.booleans())
def test_a_file_adds_up_as_its_rows_do(
    made: list[tuple[int, int, int | None, str]], at_once: int, is_dictionary: bool
) -> None:
    """If it failed, Spark would give a verdict on a file of another tool that is refused without Spark."""
    columns = [*zip(*made, strict=True)] or [()] * 4
    kinds = (*(pyarrow.int64(),) * 3, pyarrow.string())
    arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    if is_dictionary:
        arrays[3] = arrays[3].dictionary_encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.parquet"
        table = pyarrow.table(arrays, ["index", "time_ns", "process", "type"])
        pyarrow.parquet.write_table(table, path, row_group_size=at_once)
        assert tables.add_up(pyarrow.parquet.ParquetFile(path)) == do_add_up(made)
