"""Histories as data frames: a reader of Arrow gets all operations, and a frame is judged as the history of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pyarrow
import pytest

import checkers
from checkers import by_model
from checkers.history import Event, Header, History, HistoryError, foreign, jsonl
from checkers.history.stored import StoredOperations
from tests.checkers.history.test_columns import record

FOLDER = Path(__file__).parents[1] / "histories"
ETCD = FOLDER / "porcupine" / "etcd_002.log"
api = cast(Any, checkers)


PLACES = {"invoke_index": [0], "complete_index": [1]}


class Frame:
    """Stands for polars, pandas and DuckDB: no name of theirs, metadata or dictionary survives."""

    def __init__(self, table: Any) -> None:
        plain = {name: table[name].to_pylist() for name in table.column_names}
        self._table = pyarrow.table(plain)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_history_is_a_table() -> None:
    """If it failed, a person with a data frame would have to parse our files."""
    history = checkers.read(ETCD)
    table = pyarrow.table(history)
    assert len(table) == len(history.operations)
    assert table["invoke_index"].to_pylist() == [each.invoke_index for each in history.operations]
    assert table["key"].to_pylist() == [each.key for each in history.operations]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("large", [0, 1 << 40])
def test_what_a_frame_gives_back_is_the_history(
    tmp_path: Path, seed: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the same run would have two verdicts."""
    monkeypatch.setattr(jsonl, "LARGE", large)
    path = tmp_path / "history.jsonl"
    path.write_bytes(record(random.Random(seed), odd=False))
    history = jsonl.read(path)
    assert isinstance(history.operations, StoredOperations) == (large == 0)
    again = checkers.read(Frame(pyarrow.table(history)))
    assert list(again.operations) == list(history.operations)
    assert again.failed_cas_observes == history.failed_cas_observes


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (FOLDER / "porcupine").glob("etcd_00*.log"))[:6]
)
def test_a_frame_is_judged_as_its_file(name: str) -> None:
    """If it failed, a frame would be another door with rules of its own."""
    path = FOLDER / "porcupine" / name
    of_file = api.linearizable(path, model="cas-register")
    of_frame = api.linearizable(Frame(pyarrow.table(checkers.read(path))), model="cas-register")
    assert (of_file.result, of_file.summary) == (of_frame.result, of_frame.summary)
    judged = by_model.judge(cast(Any, path), "cas-register")
    assert judged.verdicts[0].result == of_file.result


def test_values_may_be_numbers_and_lists_of_the_frame() -> None:
    """If it failed, a person's own columns would have to be turned into JSON first."""
    told = {
        "type": ["invoke", "ok", "invoke", "ok"],
        "process": [0.0, 0.0, 1.0, 1.0],
        "f": ["write", "write", "read", "read"],
        "value": [3, 3, None, 3],
    }
    frame = Frame(pyarrow.table(told))
    assert api.linearizable(frame).result == "valid"
    categories = pyarrow.table({**told, "value": pyarrow.array(told["value"]).dictionary_encode()})
    assert api.linearizable(categories).result == "valid"
    told["value"] = [3, 3, None, 4]
    assert api.linearizable(Frame(pyarrow.table(told))).result == "invalid"
    lists = {
        **told,
        "f": ["txn"] * 4,
        "value": ['[["append", "x", 1]]'] * 2 + ['[["r", "x", null]]', '[["r", "x", [1]]]'],
    }
    assert api.transactional(Frame(pyarrow.table(lists)), workload="append").result == "valid"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"a": [1]}, "a frame with the columns type, process"),
        (
            {"type": ["ok"], "process": [0], "f": ["read"], "value": ["no JSON"]},
            "JSON text in the column value",
        ),
        (
            {
                "type": ["maybe"],
                "process": [0],
                "f": ["read"],
                "value": [1],
                "invoke_index": [0],
                "complete_index": [1],
            },
            "an operation in each row",
        ),
        (
            {"type": ["ok"], "process": [0], "f": ["read"], "value": [1], **PLACES, "complete_index": [None]},
            "type ok without a complete_index in row 0",
        ),
        (
            {"type": ["ok"], "process": [0], "f": ["read"], "value": [1], **PLACES, "invoke_index": [1]},
            "two events with index 1",
        ),
        (
            {"type": ["ok"], "process": [0], "f": ["read"], "value": [1], **PLACES, "invoke_index": [-1]},
            "`int` >= 0",
        ),
        ({name: [] for name in ("type", "process", "f", "value", *PLACES)}, "a frame without rows"),
        (
            {"type": ["ok"], "process": [0], "f": ["w"], "value": ["[" * 200 + "]" * 200], **PLACES},
            "at most 100",
        ),
        ({"type": ["ok"], "process": [0], "f": ["w"], "value": ["[" * 20_000], **PLACES}, "JSON text"),
        ({"type": ["ok"], "process": [0.5], "f": ["w"], "value": [1]}, "the process of a client, .* got 0.5"),
    ],
)
def test_a_frame_that_is_no_history_is_refused(told: dict[str, list[Any]], expected: str) -> None:
    """If it failed, another table of the notebook would be judged, or end in a traceback."""
    with pytest.raises(HistoryError, match=expected):
        checkers.read(Frame(pyarrow.table(told)))


@pytest.mark.parametrize("value", ["[5]", "[[]]", '"x"'])
def test_a_transaction_of_something_else_is_for_its_checker(value: str) -> None:
    """If it failed, it would end in a traceback where a file with the same value is unknown."""
    told = {"type": ["ok"], "process": [0], "f": ["txn"], "value": [value], **PLACES}
    assert by_model.judge(cast(Any, Frame(pyarrow.table(told))), "append").result == "unknown"


def test_a_frame_with_a_column_twice_is_refused() -> None:
    """It would be judged by one of the two, or end in a KeyError."""
    names = ("type", "process", "f", "value", "value")
    frame = pyarrow.table([["ok"], [0], ["read"], ["1"], ["2"]], names=names)
    with pytest.raises(
        HistoryError,
        match=r"expected a frame with the columns .* got the columns type, process, f, value, value",
    ):
        checkers.read(frame)


def test_sessions_without_real_time_have_none_in_a_frame() -> None:
    """If it failed, the order in which sessions are interleaved here would count as that of real time."""
    history = foreign.parse(b"[x:=1] [x:=2]\n---\n[x==?] [x==1]\n")
    again = checkers.read(Frame(pyarrow.table(history)))
    assert list(again.operations) == list(history.operations)
    assert not again.has_real_time and checkers.read(Frame(pyarrow.table(checkers.read(ETCD)))).has_real_time


def test_a_start_is_given_with_a_frame() -> None:
    """If it failed, registers that begin with 0 would be anomalies in frames alone."""
    data = b"{:type :invoke :process 0 :f :read} {:type :ok :process 0 :f :read :value 0}"
    frame = Frame(pyarrow.table(foreign.parse(data)))
    assert api.linearizable(checkers.read(frame)).result == "invalid"
    assert api.linearizable(checkers.read(frame, initial="0")).result == "valid"


def test_a_part_of_a_frame_keeps_the_times_of_its_witnesses() -> None:
    """If it failed, a witness in part of a frame would have the times of other events, or none."""
    events = [
        Event(
            index=2 * place + half,
            time_ns=1_000 * (2 * place + half),
            type=kind,
            process=0,
            f="txn",
            value=value,
        )
        for place, value in enumerate(([["w", "x", 0]], [["w", "y", 1]], [["r", "y", None]]))
        for half, kind in enumerate(("invoke", "ok"))
    ]
    part = pyarrow.table(History.of(Header(), events)).slice(1)
    verdict = api.transactional(Frame(part), workload="rw-register", model="strict-serializable")
    (witness,) = verdict.witnesses
    assert witness.events == (2, 3, 4, 5)
    assert (witness.start_ns, witness.end_ns) == (2_000, 5_000)
