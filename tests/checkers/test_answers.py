"""A completion that answers another question is refused: its process number is shared, or a store mixed answers up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import Header, History, HistoryError, jsonl, parquet
from checkers.history.foreign import parse
from checkers.history.jsonl import parse as parse_ours
from checkers.history.operation import Event, answers
from checkers.history.stored import StoredOperations
from tests.examples import up_to

Lines = list[dict[str, Any]]
ASKED: list[tuple[str, Any, Any]] = [
    ("write", 1, 2),
    ("write", "a", "b"),
    ("write", [1], [2]),
    ("append", 1, 2),
    ("put", "x", "y"),
    ("enqueue", 1, 2),
    ("add", 3, 4),
    ("cas", [1, 2], [1, 3]),
    ("cas", [1, 2], [3, 2]),
    ("txn", [["append", 3, 1], ["r", 3, None]], [["append", 3, 1], ["r", 4, None]]),
    ("txn", [["append", 3, 1]], [["append", 3, 2]]),
    ("txn", [["r", 3, None], ["append", 4, 1]], [["r", 3, [1]]]),
    ("txn", [["r", 3, None]], [["append", 3, [1]]]),
    ("txn", [["w", 1, 1], ["w", 2, 1]], [["w", 2, 1], ["w", 1, 1]]),
]
"""f, what is asked, and an answer that is about something else."""


def lines(f: str, asked: Any, told: Any, kind: str = "ok", **more: Any) -> Lines:
    return [
        {"index": 0, "time_ns": 0, "type": "invoke", "process": 0, "f": f, "value": asked, **more},
        {"index": 1, "time_ns": 1, "type": kind, "process": 0, "f": f, "value": told, **more},
    ]


def foreign(each: Lines) -> History:
    return parse(b"\n".join(map(msgspec.json.encode, each)))


def ours(each: Lines) -> History:
    return parse_ours(b'{"format":"qsync-history","version":1}\n' + b"".join(map(_line, each)))


def _line(each: dict[str, Any]) -> bytes:
    return msgspec.json.encode(each) + b"\n"


@pytest.mark.parametrize("read", [foreign, ours])
@pytest.mark.parametrize(("f", "asked", "told"), ASKED, ids=str)
def test_an_answer_to_something_else_is_refused(
    read: Callable[[Lines], History], f: str, asked: Any, told: Any
) -> None:
    """If it failed, a write of 1 that answers with 2 would be judged as a write of 2, and be valid."""
    with pytest.raises(HistoryError, match="expected the end of"):
        tuple(read(lines(f, asked, told)).operations)  # objects are made when they are asked for
    assert read(lines(f, asked, asked)).operations[0].value == asked
    if f == "txn" and any(word == "r" for word, *_ in asked):
        with pytest.raises(HistoryError, match="with value nothing"):
            tuple(read(lines(f, asked, None)).operations)  # what it read is lost
    else:
        assert read(lines(f, asked, None)).operations[0].value == asked


@pytest.mark.parametrize("read", [foreign, ours])
def test_numbers_in_columns_are_refused_when_they_are_read(read: Callable[[Lines], History]) -> None:
    """If it failed, a record of a million lines would be judged before anybody looks at an object."""
    with pytest.raises(HistoryError, match="with value 2"):
        read(lines("write", 1, 2))
    with pytest.raises(HistoryError, match="key b"):
        read([lines("write", 1, 1, key="a")[0], lines("write", 1, 1, key="b")[1]])


def test_an_error_may_stand_in_place_of_the_value() -> None:
    """If it failed, older Jepsen logs (`:info :write :timed-out`) would be refused."""
    for kind in ("fail", "info"):
        assert foreign(lines("write", 1, "timed-out", kind)).operations[0].value == 1
        with pytest.raises(HistoryError):
            foreign(lines("write", 1, 2, kind))
    assert ours(lines("cas", [1, 2], [1, 2, 7], "fail")).operations[0].value == [1, 2]


@pytest.mark.parametrize("kind", ["ok", "fail", "info"])
@pytest.mark.parametrize("name", ["history.jsonl", "history.parquet"])
def test_columns_refuse_what_objects_refuse(
    tmp_path: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a long record in which answers are mixed up would be judged, and a short one refused."""
    for module in (jsonl, parquet):
        monkeypatch.setattr(module, "LARGE", 0)
    drawn = st.none() | st.integers(0, 2) | st.lists(st.none() | st.integers(0, 2), min_size=1, max_size=3)

    @up_to(150)
    @given(st.sampled_from(["cas", "write", "enqueue", "read"]), drawn, drawn)
    def compared(f: str, asked: Any, told: Any) -> None:
        data = jsonl.header_line(Header()) + b"\n" + b"".join(map(_line, lines(f, asked, told, kind)))
        try:
            expected = [*jsonl.parse(data).operations]
        except HistoryError:
            expected = None
        path = tmp_path / name
        if path.suffix == ".jsonl":
            path.write_bytes(data)
        else:
            events = [msgspec.convert(each, Event) for each in lines(f, asked, told, kind)]
            held = replace(jsonl.parse(jsonl.header_line(Header()) + b"\n"), events=events)
            parquet.write(path, held)
        try:
            found = (jsonl if path.suffix == ".jsonl" else parquet).read(path).operations
        except HistoryError:
            found = None
        assert (found is None) == (expected is None)  # before objects are made, for a verdict may need none
        assert expected is None or [*found] == expected

    compared()


def test_a_store_may_add_to_an_answer() -> None:
    """If it failed, rows that get a timestamp, and scans, would be refused."""
    assert foreign(lines("add", 1, {"val": 1, "sts": 7})).operations[0].type == "ok"
    scan = [["rp", "x", 1], ["rp", "y", 2], ["w", "x", 3]]
    assert foreign(lines("txn", [["rp", "all", None], ["w", "x", 3]], scan)).operations[0].value == scan


values = st.one_of(st.integers(-2, 2), st.sampled_from(["a", "1"]), st.lists(st.integers(0, 1), max_size=2))


@up_to(150)
@given(st.sampled_from(["write", "enqueue", "append", "read", "dequeue"]), values, values)
def test_what_is_asked_with_a_value_is_answered_with_it(f: str, asked: Any, told: Any) -> None:
    """The plain rule: JSON texts are equal, unless the operation asks for a value."""
    is_same = msgspec.json.encode(asked) == msgspec.json.encode(told) or f in ("read", "dequeue")
    one, other = (msgspec.convert(each, Event) for each in lines(f, asked, told))
    assert answers(one, other) == is_same


def test_parquet_refuses_the_same(tmp_path: Path) -> None:
    """If it failed, the same history would be refused as lines, and judged as a table."""
    history = ours(lines("write", 1, 1))
    asked, answered = history.events
    wrong = [asked, msgspec.structs.replace(answered, value=2)]
    parquet.write(tmp_path / "h.parquet", msgspec_history(history, wrong))
    with pytest.raises(HistoryError, match="with value 2"):
        parquet.read(tmp_path / "h.parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "LARGE", 0)
        with pytest.raises(HistoryError, match="with value 2"):
            parquet.read(tmp_path / "h.parquet")
        parquet.write(tmp_path / "good.parquet", history)
        assert isinstance(parquet.read(tmp_path / "good.parquet").operations, StoredOperations)


def msgspec_history(history: History, events: list[Event]) -> History:
    """A history that was never paired."""
    return History(header=history.header, events=events, operations=())
