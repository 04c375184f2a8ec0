"""Porcupine's operations in JSON: what each form becomes, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkers import by_model
from checkers.guessing import guess
from checkers.history import History, HistoryError, foreign

Json = dict[str, Any]


def operation(client: int, asked: Any, answer: Any, call: int, over: int) -> Json:
    return {
        "ClientId": client,
        "Input": asked,
        "Call": call,
        "Output": answer,
        "Return": over,
        "Metadata": None,
    }


def told(*operations: Json, as_array: bool = True) -> History:
    text = json.dumps(operations) if as_array else "\n".join(json.dumps(one, indent=2) for one in operations)
    return foreign.parse(text.encode())


TEXTS = (
    operation(0, {"Op": 1, "Key": "x", "Value": "a"}, {"Value": ""}, 0, 10),
    operation(1, {"Op": 2, "Key": "x", "Value": "b"}, {"Value": ""}, 5, 20),
    operation(2, {"Op": 0, "Key": "x", "Value": ""}, {"Value": "ab"}, 20, 30),
    operation(2, {"Op": 0, "Key": "y", "Value": ""}, {"Value": ""}, 31, 40),
)


@pytest.mark.parametrize("as_array", [True, False])
def test_texts_of_the_labs(as_array: bool) -> None:
    """Files of the best-known model (0 get, 1 put, 2 append) could not be read, or their reads not be judged."""
    history = told(*TEXTS, as_array=as_array)
    assert guess(history) == "kv" and by_model.judge(history, "kv").result == "valid"
    stale = operation(2, {"Op": 0, "Key": "x", "Value": ""}, {"Value": "ba"}, 20, 30)
    assert by_model.judge(told(*TEXTS[:2], stale), "kv").result == "invalid"


@pytest.mark.parametrize("value", ['"\\ud800"', '["\\ud800"]', "NaN", "1" * 5000])
@pytest.mark.parametrize("as_array", [True, False])
def test_what_is_no_json(as_array: bool, value: str) -> None:
    """Half a surrogate pair, or a number without end, ended the command with a traceback where each operation stands by
    itself; NaN was a value there, and in no other file of JSON."""
    write, read = (
        json.dumps(each) for each in (operation(0, {"op": "write", "value": 7}, None, 0, 10), TEXTS[2])
    )
    lines = (write.replace("7", value), read)
    text = f"[{','.join(lines)}]" if as_array else "\n".join(lines)
    with pytest.raises(HistoryError, match=r"^line 1: expected operations of Porcupine in JSON"):
        foreign.parse(text.encode())


def test_intervals_are_closed() -> None:
    """Operations that meet at one moment are concurrent to Porcupine: an order of them would be a false alarm."""
    write, read = {"op": "write", "value": 7}, {"op": "read"}
    touching = told(operation(0, write, None, 0, 10), operation(1, read, None, 10, 20))
    apart = told(operation(0, write, None, 0, 10), operation(1, read, None, 11, 20))
    assert by_model.judge(touching, "register").result == "valid"
    assert by_model.judge(apart, "register").result == "invalid"


def test_times_are_since_the_first_call() -> None:
    """A clock that counts from 1970 made a history of 54 years. `availability` counts by the second, and took 40 GB."""
    now_ns = 1_700_000_000_000_000_000
    write = operation(0, {"op": "write", "value": 7}, None, now_ns, now_ns + 10)
    history = told(write, operation(1, {"op": "read"}, 7, now_ns + 20, now_ns + 30))
    assert [event.time_ns for event in history.events] == [0, 10, 20, 30]


def test_a_client_with_two_open_operations() -> None:
    """Porcupine does not use ClientId: the file would be refused."""
    history = told(
        operation(0, {"op": "put", "value": 1}, {}, 0, 10), operation(0, {"op": "put", "value": 2}, {}, 5, 20)
    )
    assert len({each.process for each in history.operations}) == 2


def test_cas_and_unknown_outcomes() -> None:
    """A refused cas would count as done, an unknown outcome as an answer."""
    history = told(
        operation(0, {"Op": "cas", "Key": "k", "From": 1, "To": 2}, {"Ok": False}, 0, 1),
        operation(1, {"Op": "read", "Key": "k"}, {"Unknown": True}, 2, 3),
        operation(2, {"Op": "write", "Key": "k", "Value": 1}, {"Err": "timeout"}, 4, 5),
    )
    assert [(each.f, each.type, each.value) for each in history.operations] == [
        ("cas", "fail", [1, 2]),
        ("read", "info", None),
        ("write", "info", 1),
    ]
    assert guess(history) == "cas-register" and history.keys() == {"k"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"Input": {"Op": "get"}, "Call": 1, "Return": 2}, "one without output"),
        (operation(0, {"Op": True, "Value": 1}, {}, 0, 1), "expected an Input of etcd, or with Op"),
        (
            operation(0, {"Op": "put", "Key": "x", "Value": "1", "Version": 3}, {}, 0, 1),
            "expected an Input of etcd",
        ),
        (operation(0, {"Op": 7, "Key": "x"}, {}, 0, 1), "expected an Input of etcd"),
        (operation(0, 12, {}, 0, 1), "expected an Input of etcd"),
        (operation(0, {"Op": "read"}, {"Rows": []}, 0, 1), "expected an Output with Value, Ok"),
        (operation(0, {"Op": "read"}, {"Ok": True}, 0, 1), "as the output of a read"),
        (
            operation(0, {"Op": "read"}, {"Ok": False, "Value": 1}, 0, 1),
            "an Output of read that is no refusal",
        ),
        (
            operation(0, {"Op": "write", "Value": 1}, {"Success": False}, 0, 1),
            "an Output of write that is no",
        ),
        (operation(0, {"Op": "append", "Value": "x"}, False, 0, 1), "an Output of append that is no refusal"),
        (operation(0, {"Op": "write", "Value": 1}, {"Value": 1, "Found": False}, 0, 1), "Output with Value"),
        (operation(0, {"Op": "cas", "Old": 1, "New": 2}, "yes", 0, 1), "as the output of a cas"),
        (operation(0, {"Op": "read"}, 1, 9, 1), "Call 9, Return 1"),
        (operation(0, {"Op": "put", "Key": "x"}, {}, 0, 1), "expected Value in the Input of a write"),
        (operation(0, {"Op": "cas", "New": 2}, True, 0, 1), "expected Old in the Input of a cas"),
    ],
)
def test_what_only_its_model_knows_is_refused(entry: Json, says: str) -> None:
    """A guess at the meaning of an operation would be a verdict on something else."""
    with pytest.raises(HistoryError, match=says):
        told(entry)
    with pytest.raises(HistoryError, match=says):
        told(TEXTS[0], entry)


@pytest.mark.parametrize("indent", [None, 2])
def test_the_line_of_an_operation_in_an_array(indent: int | None) -> None:
    """A message would name a line that is fine, or that the file does not have."""
    text = json.dumps([*TEXTS[:2], {"Input": 1}], indent=indent)
    line = text.count("\n", 0, text.rindex("{")) + 1
    assert (line > 10) == (indent is not None)
    with pytest.raises(HistoryError, match=f"^line {line}: expected an operation of Porcupine"):
        foreign.parse(text.encode())


def test_an_array_that_is_cut_between_operations_is_torn() -> None:
    """A file that lost its last operations would be judged as a whole one."""
    text = json.dumps(TEXTS)
    cut = text[: text.rindex(", {", 0, text.rindex('"Input"'))]
    assert foreign.parse(text.encode()).torn is None
    assert foreign.parse(cut.encode()).torn is not None


def test_a_torn_file() -> None:
    """A file that was cut off would be taken as whole, or a damaged one as cut off."""
    text = "\n".join(json.dumps(one, indent=2) for one in TEXTS)
    history = foreign.parse(text[:-30].encode())
    assert len(history.operations) == 3 and history.torn is not None and "line 43" in history.torn
    with pytest.raises(HistoryError, match="line 18: expected operations of Porcupine in JSON"):
        foreign.parse(text.replace('"Op": 2', '"Op" 2').encode())
