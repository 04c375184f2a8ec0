"""Histories of testers of isolation: what each notation becomes, known verdicts, and that no real time is judged."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model, linearizable, transactional
from checkers.guessing import guess
from checkers.history import History, HistoryError, ModelError, foreign
from checkers.history.foreign import jepsen_edn
from checkers.history.history import TIMELESS
from checkers.transactional import anomalies
from tests import examples
from tests.checkers.brute import isolation, tiny_transactions
from tests.checkers.brute.histories import history_of

HISTORIES = Path(__file__).parents[1] / "histories"
AWDIT = sorted((HISTORIES / "awdit").glob("*/*.txt"))
LEVELS = ("none", "read-committed", "read-atomic", "causal")


def told(text: str | bytes) -> History:
    return foreign.parse(text.encode() if isinstance(text, str) else text)


def shown(history: History) -> list[tuple[int, str, Any]]:
    """(process, type, value) of each transaction, by process."""
    return sorted((each.process, each.type, each.value) for each in history.operations)


# ---- notations

PLUME = "w(0,1,7,10)\nw(1,1,7,10)\nr(0,1,8,11)\nr(1,0,8,11)\nw(0,2,8,12)\nw(0,9,7,-1)\nr(0,9,7,-1)\n"
AWDIT_TEST = "w 0 1\nw 1 1\n=====\nr 0 1\nr 1 0\n-----\nw 0 2\n"
DBCOP_TEXT = "// two sessions\n[0:=1 1:=1]\n---\n[0==1 1==?] [0:=2]\n\n---\n[0:=9]!\n"
EXPECTED = [
    (0, "ok", [["w", 0, 1], ["w", 1, 1]]),
    (1, "ok", [["r", 0, 1], ["r", 1, None]]),
    (1, "ok", [["w", 0, 2]]),
]
ABORTED = (2, "fail", [["w", 0, 9]])


def dbcop_json(*, compact: bool = False) -> list[Any]:
    def event(word: str, key: int, value: int | None) -> Any:
        return [word[0].lower(), key, value] if compact else {word: {"variable": key, "version": value}}

    def one(*events: Any, committed: bool = True) -> Any:
        return {"events": list(events), "committed": committed}

    return [
        [one(event("Write", 0, 1), event("Write", 1, 1))],
        [one(event("Read", 0, 1), event("Read", 1, None)), one(event("Write", 0, 2))],
        [one(event("Write", 0, 9), committed=False)],
    ]


def bincode(sessions: list[list[tuple[list[tuple[bool, int, int, bool]], bool]]]) -> bytes:
    time = b"2022-07-22T23:12:34.386040722+08:00"
    texts = b"".join(struct.pack("<Q", len(text)) + text for text in (b"PostgreSQL", time, time))
    data = struct.pack("<5Q", 0, 2, 10, 2, 2) + texts + struct.pack("<Q", len(sessions))
    for session in sessions:
        data += struct.pack("<Q", len(session))
        for events, success in session:
            data += struct.pack("<Q", len(events)) + b"".join(
                struct.pack("<?QQ?", *event) for event in events
            )
            data += struct.pack("<?", success)
    return data


WITH_SUCCESS = [
    [([(True, 0, 1, True), (True, 1, 1, True), (True, 5, 5, False)], True)],
    [([(False, 0, 1, True), (False, 1, 0, True)], True), ([(True, 0, 2, True)], True)],
    [([(True, 0, 9, True)], False)],
]
BINCODE = bincode(WITH_SUCCESS)
OLD_JSON = {
    "params": {"id": 0, "n_node": 3},
    "info": "generated",
    "data": [
        [
            {
                "events": [
                    dict(zip(("write", "variable", "value", "success"), event, strict=True))
                    for event in events
                ],
                "success": success,
            }
            for events, success in session
        ]
        for session in WITH_SUCCESS
    ],
}
UNSURE = (2, "info", [["w", 0, 9]])


@pytest.mark.parametrize(
    ("text", "aborted"),
    [
        (PLUME, [ABORTED]),
        (AWDIT_TEST, []),
        (DBCOP_TEXT, [ABORTED]),
        (json.dumps(dbcop_json()), [ABORTED]),
        (json.dumps({"params": {}, "info": "generated", "data": dbcop_json(compact=True)}), [ABORTED]),
        (json.dumps({"data": dbcop_json(), "params": {}}), [ABORTED]),
        (BINCODE, [UNSURE]),
        (json.dumps(OLD_JSON), [UNSURE]),
        (json.dumps(OLD_JSON, sort_keys=True, indent=2), [UNSURE]),
        (json.dumps(OLD_JSON["data"]), [UNSURE]),
        (json.dumps(OLD_JSON["data"], sort_keys=True), [UNSURE]),
    ],
)
def test_each_notation_tells_the_same(text: str | bytes, aborted: list[Any]) -> None:
    """A session, a transaction or a value would be taken for another."""
    history = told(text)
    found = [
        (process, type_, [[f, int(key), value] for f, key, value in micros])
        for process, type_, micros in shown(history)
    ]
    assert found == [*EXPECTED, *aborted]
    assert guess(history) == "rw-register" and not history.has_real_time and history.is_foreign


def test_a_written_zero_is_read_as_zero() -> None:
    """A read of a zero that was written would be one of nothing, and the other way round."""
    history = told("w 0 0\n---\nr 0 0\nr 1 0\n")
    assert [each.value for each in history.operations] == [[["w", 0, 0]], [["r", 0, 0], ["r", 1, None]]]


def test_a_folder_of_cobra(tmp_path: Path) -> None:
    """Cobra's logs could not be read, or its reads of the initial state be taken for values from nowhere."""

    def log(*entries: tuple[bytes, tuple[int, ...]]) -> bytes:
        return b"".join(word + struct.pack(f">{len(numbers)}q", *numbers) for word, numbers in entries)

    first = log((b"S", (1,)), (b"W", (70, -5, 99)), (b"C", (1,)))
    begun = (0xBEBEEBEE, 0xBEBEEBEE, 6, 0)
    second = log(
        (b"S", (2,)), (b"R", (1, 70, -5, 99)), (b"R", begun), (b"C", (2,)), (b"S", (3,)), (b"W", (71, -5, 1))
    )
    (tmp_path / "T10.log").write_bytes(first)
    (tmp_path / "T11.log").write_bytes(second)
    history = foreign.read(tmp_path)
    assert shown(history) == [
        (0, "ok", [["w", -5, 70]]),
        (1, "info", [["w", -5, 71]]),
        (1, "ok", [["r", -5, 70], ["r", 6, None]]),
    ]
    assert by_model.judge(history, "rw-register").result == "valid"
    (tmp_path / "T12.log").write_bytes(log((b"S", (4,))))  # a client that was killed
    for other in ((1, 70, -5, 100), (9, 70, -5, 99), (1, 70, -6, 99)):
        (tmp_path / "T13.log").write_bytes(log((b"S", (5,)), (b"R", other), (b"C", (5,))))
        assert by_model.judge(foreign.read(tmp_path), "rw-register").result == "invalid", "no such write"
    (tmp_path / "T13.log").write_bytes(b"")
    with pytest.raises(HistoryError, match=r"got nothing in T13.log"):
        foreign.read(tmp_path)
    (tmp_path / "T13.log").unlink()
    (tmp_path / "T11.log").write_bytes(second[:-3])
    with pytest.raises(HistoryError, match=r"expected a log of Cobra .* got cut off at byte \d+ of T11.log"):
        foreign.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PLUME + "x(1,2,3,4)\n", "line 8: expected r"),
        ("w(0,1,7,10)\nw(0,1,7)\n", "line 2: expected r"),
        (AWDIT_TEST + "r 1\n", "line 8: expected r KEY VALUE"),
        ("[x:=1]\n[x=2]\n", "line 2: expected x:=VERSION"),
        ("[x:=1] y\n", "line 1: expected"),
        (f"w(0,{'9' * 5_000},1,1)\n", "line 1: expected r"),
        (f"w 0 {'9' * 5_000}\n", "line 1: expected r KEY VALUE"),
        (f"[x:={'9' * 5_000}]\n", "line 1: expected x:=VERSION"),
        (f"[x:=1]\n[{' ' * 20_000}y\n", "line 2: expected"),
        ("---\n\n" * 60 + "x\n", "Plume, PolySI, AWDIT"),  # each of these lines could end in two places
        (json.dumps([[{"events": [{"Scan": {}}], "committed": True}]]), "an event of dbcop"),
        (json.dumps([[{"events": [], "committed": "yes"}]]), "committed as true or false"),
        (json.dumps([[{"events": [], "success": 1}]]), "success as true or false, got 1"),
        (json.dumps([[{"events": [{"write": 1}], "success": True}]]), "an event of dbcop"),
        (BINCODE[:-4], "of which the last ones are cut off"),
        (BINCODE + b"\0", "1 bytes behind its end"),
    ],
)
def test_a_damaged_file_is_one_line(text: str | bytes, says: str) -> None:
    """A file that was damaged would be judged in part, or end in a traceback."""
    with pytest.raises(HistoryError, match=says):
        told(text)


def test_a_torn_text_is_refused() -> None:
    """If it failed, reads of what the missing sessions wrote would be garbage: an anomaly of a store that has none."""
    with pytest.raises(HistoryError, match=r"expected a whole file, because sessions .*got a torn line 8"):
        told(PLUME + "w(0,3,7")


# ---- verdicts


@pytest.mark.parametrize("path", AWDIT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_levels_of_awdit(path: Path) -> None:
    """Our verdict would differ from the known one."""
    history = foreign.read(path)
    level = LEVELS.index(path.parent.name)
    for least, model in enumerate(
        ("strong-session-read-committed", "strong-session-read-atomic", "causal"), 1
    ):
        judged = by_model.judge(history, "rw-register", promise=model)
        assert judged.result == ("valid" if level >= least else "invalid"), (
            model,
            judged.verdicts[0].summary,
        )


def test_there_are_histories_of_each_level() -> None:
    """The test above would pass without histories."""
    assert {path.parent.name for path in AWDIT} == {*LEVELS}


@pytest.mark.parametrize("name", ["galera", "yugabyte"])
def test_the_violations_of_polysi(name: str) -> None:
    """A real violation of snapshot isolation would be missed."""
    history = foreign.read(HISTORIES / "polysi" / f"{name}.txt")
    assert by_model.judge(history, "rw-register", promise="snapshot-isolation").result == "invalid"
    assert by_model.judge(history, "rw-register", promise="read-committed").result == "valid"


# ---- no real time


def test_what_needs_real_time_is_not_judged() -> None:
    """A verdict would stand on the order of the lines."""
    history = told("w(0,1,1,1)\nr(0,0,2,2)\n")
    judged = by_model.judge(history, "rw-register")
    assert (judged.result, judged.promise, judged.strongest) == (
        "valid",
        *["strong-session-serializable"] * 2,
    )
    assert not any("realtime" in name for name in judged.verdicts[0].details["anomalies"])
    with pytest.raises(KeyError, match="without real time"):
        by_model.judge(history, "rw-register", promise="strict-serializable")
    with pytest.raises(KeyError, match="without real time"):
        by_model.judge(history, "multi-register")
    with pytest.raises(ModelError, match="without real time"):
        transactional.check(history, workload="rw-register", model="strict-serializable")
    with pytest.raises(ModelError, match="real time"):
        linearizable.check(history, model="multi-register")
    with pytest.raises(ValueError, match="real time"):
        history.happened_before()


def test_the_order_of_the_lines_is_not_exported() -> None:
    """Elle would be given an order of real time that nobody recorded."""
    history = told("w(0,1,1,1)\nr(0,0,2,2)\n")
    copied = foreign.parse(jepsen_edn.write(history).encode())
    assert by_model.judge(copied, "rw-register", promise="strict-serializable").result == "valid"


@given(
    st.integers(0, 1 << 30),
    st.sampled_from([name for name in anomalies.MODELS if anomalies.MODELS[name][1] < 2]),
)
@examples.up_to(1_000)
def test_models_without_real_time_need_none(seed: int, model: str) -> None:
    """The verdict on a record without real time would differ from the definition."""
    history = history_of(tiny_transactions.drawn(seed, workload="rw-register"))
    header = msgspec.structs.replace(history.header, extra={TIMELESS: True})
    timeless = replace(history, header=header)
    with_time = transactional.check(history, workload="rw-register", model=model)
    without = transactional.check(timeless, workload="rw-register", model=model)
    assert without.result == with_time.result
    if without.result != "unknown":
        assert (without.result == "valid") is isolation.allows(model, history, workload="rw-register")
    models = {name for part in ("held", "left", "ruled_out") for name in without.details[part]}
    assert all(anomalies.MODELS[name][1] < 2 for name in models)
