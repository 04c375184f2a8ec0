"""No value is special: histories are judged the same whatever numbers their clients write, through each door."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import checkers
from checkers import by_model, compiled, linearizable
from checkers.history import History, foreign, jsonl, parquet
from checkers.history.foreign import jepsen_edn
from checkers.linearizable import promised_linearizable, search_kernels
from tests import examples
from tests.checkers.history.test_columns import record

EXTREMES = (
    *(-(1 << 62), 1 << 62, -(1 << 63), (1 << 63) - 1, -(1 << 63) - 1, 1 << 64, -(1 << 64)),
    *(-(1 << 60), 1 << 60, (1 << 60) + 1, -1, 0, (1 << 31) - 1, -(1 << 31), 10**18, -(10**18)),
)
MODELS = ("register", "cas-register")


def _small(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setattr(jsonl, "LARGE", 1 << 40)
    return jsonl.read(path)


def _large(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setattr(jsonl, "LARGE", 0)
    return jsonl.read(path)


def _parquet(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    history = _small(path, monkeypatch)
    parquet.write(path.with_suffix(".parquet"), history)
    monkeypatch.setattr(parquet, "LARGE", 0)
    return parquet.read(path.with_suffix(".parquet"))


def _edn(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    history = _small(path, monkeypatch)
    return foreign.parse(jepsen_edn.write(history, reads=promised_linearizable).encode())


def _frame(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    return checkers.read(pyarrow.table(_small(path, monkeypatch)))


DOORS: dict[str, Callable[[Path, pytest.MonkeyPatch], History]] = {
    "lines": _small,
    "columns of lines": _large,
    "Parquet": _parquet,
    "EDN": _edn,
    "frame": _frame,
}


def _with(data: bytes, values: dict[int, int]) -> bytes:
    """The record with other values."""

    def renamed(value: Any) -> Any:
        return [renamed(each) for each in value] if isinstance(value, list) else values.get(value, value)

    first, *lines = data.rstrip(b"\n").split(b"\n")
    written = [first]
    for line in lines:
        event = msgspec.json.decode(line)
        if _numbers(event):
            event["value"] = renamed(event["value"])
        written.append(msgspec.json.encode(event))
    return b"\n".join(written) + b"\n"


def _said(history: History, model: str) -> dict[str, str]:
    return {each.checker: each.result for each in by_model.judge(history, model).verdicts}


@pytest.mark.parametrize("door", DOORS)
@given(seed=st.integers(0, 1 << 40))
@examples.up_to(20)
def test_a_verdict_does_not_hang_on_what_was_written(tmp_path_factory: Any, door: str, seed: int) -> None:
    """If it failed, a value that stands for something in a kernel would hide a violation, or make one up."""
    chance = random.Random(seed)
    plain = record(chance, odd=False)
    events = [msgspec.json.decode(line) for line in plain.split(b"\n")[1:-1]]
    # No other tool's file is without operations.
    assume(any(isinstance(event["process"], int) for event in events))
    held = sorted({each for event in events for each in _numbers(event)})
    extremes = chance.sample(EXTREMES, len(EXTREMES))
    values = {
        each: extremes.pop() if extremes and chance.random() < 0.7 else 1_000_000 + each for each in held
    }
    with pytest.MonkeyPatch.context() as patched:
        said = []
        for data in (plain, _with(plain, values)):
            path = tmp_path_factory.mktemp("extremes") / "history.jsonl"
            path.write_bytes(data)
            said.append([_said(DOORS[door](path, patched), model) for model in MODELS])
    assert said[0] == said[1]


def _numbers(event: dict[str, Any]) -> list[int]:
    """Those in the value of a client's event."""
    value = event.get("value") if isinstance(event["process"], int) else None
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("door", DOORS)
def test_a_value_that_nobody_wrote_is_seen(
    tmp_path: Path, door: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a read of the number that stood for nothing would be taken for a read of nothing."""
    events = [
        {"type": "invoke", "process": 0, "f": "read", "key": "x"},
        {"type": "ok", "process": 0, "f": "read", "key": "x", "value": value},
    ]
    lines = [jsonl.header_line(checkers.history.Header(system="s")), *_numbered(events)]
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    history = DOORS[door](path, monkeypatch)
    assert linearizable.check(history).result == "invalid"
    assert cast(Any, by_model.judge(history, "register")).verdicts[0].result == "invalid"


def _numbered(events: list[dict[str, Any]]) -> list[bytes]:
    return [
        msgspec.json.encode({"index": index, "time_ns": 1_000 * index, **event})
        for index, event in enumerate(events)
    ]


def test_small_registers_that_are_decided_together_hold_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a machine without a compiler would warn of overflows on the screen, or give no verdict."""
    monkeypatch.setattr(compiled, "_LOADED", {search_kernels.__name__})
    values = [value for value in EXTREMES if abs(value) <= 1 << 60]
    calls = [
        {"type": outcome, "process": 0, "f": "write", "key": key, "value": value}
        for key in ("x", "y")
        for value in values
        for outcome in ("invoke", "ok")
    ]
    calls += [{"type": "invoke", "process": 0, "f": "read", "key": "x"}]
    calls += [{"type": "ok", "process": 0, "f": "read", "key": "x", "value": values[-1]}]
    lines = [jsonl.header_line(checkers.history.Header(system="s")), *_numbered([*calls, *calls])]
    verdict = linearizable.check(jsonl.parse(b"\n".join(lines) + b"\n"))
    assert (verdict.result, verdict.details["decided_by"]) == ("valid", {"compiled search": 2})


def test_balances_near_the_end_of_floats_are_judged() -> None:
    """If it failed, a sum that no float holds would break the checker: unknown in place of its verdict."""
    lines = (
        '{"type":"invoke","process":0,"f":"read"}',
        '{"type":"ok","process":0,"f":"read","value":{"a":1.7e308,"b":1.7e308,"c":0.5}}',
    )
    judged = by_model.judge(foreign.parse("\n".join(lines).encode()), "bank")
    assert not any("broke" in verdict.summary for verdict in judged.verdicts)
