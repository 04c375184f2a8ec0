"""The linearizability checker as a whole: which reads, which limits, what it says."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

import pytest

from checkers import linearizable
from checkers.history import Event, Header, History, ModelError, jsonl
from checkers.limits import OutOfTime

FOLDER = Path(__file__).parents[1] / "histories" / "linearizable"


def history_of(*operations: tuple[str, str, object], key: str = "r1") -> list[tuple[str, str, object, str]]:
    return [(*operation, key) for operation in operations]


def built(lines: list[tuple[str, str, object, str]]) -> History:
    """One operation after the other, each by a process of its own; "write?" never ends."""
    events: list[Event] = []
    for process, (f, outcome, value, key) in enumerate(lines):
        first = Event(
            index=len(events), time_ns=len(events), type="invoke", process=process, f=f, key=key,
            value=None if f == "read" else value,
        )  # fmt: skip
        events.append(first)
        if outcome != "open":
            events.append(
                Event(
                    index=len(events), time_ns=len(events), type=outcome, process=process, f=f, key=key,  # type: ignore[arg-type]  # ok, fail or info
                    value=value,
                )
            )  # fmt: skip
    return History.of(Header(), events)


def exploding(key: str) -> list[tuple[str, str, object, str]]:
    """A key with more configurations than a small limit allows: any of the open writes explains the mismatch."""
    lines: list[tuple[str, str, object, str]] = [("write", "open", value, key) for value in range(50, 90)]
    return [*lines, ("cas", "fail", [None, 1], key), ("read", "ok", 50, key)]


def mismatched(history: History) -> History:
    """The same with every failure being a mismatch."""
    events = [
        Event(**{**{name: getattr(event, name) for name in Event.__struct_fields__}, "error": "mismatch"})
        if event.type == "fail"
        else event
        for event in history.events
    ]
    return History.of(history.header, events)


def test_an_undecided_key_does_not_hide_an_anomaly() -> None:
    """A run with an anomaly on one key would pass as undecided because another key exploded."""
    stale = history_of(("write", "ok", 1), ("write", "ok", 2), ("read", "ok", 1), key="r9")
    verdict = linearizable.check(mismatched(built([*exploding("r1"), *stale])), memory_limit=1)
    assert verdict.result == "invalid"
    assert verdict.details["keys_invalid"] == ["r9"]
    assert list(verdict.details["keys_undecided"]) == ["r1"]


def test_an_undecided_key_makes_the_verdict_unknown() -> None:
    """A key that nobody could decide would count as valid."""
    good = history_of(("write", "ok", 1), ("read", "ok", 1), key="r9")
    verdict = linearizable.check(mismatched(built([*exploding("r1"), *good])), memory_limit=1)
    assert verdict.result == "unknown"
    assert "1 key of 2 could not be decided: more than 1 configurations" in verdict.summary


def test_the_time_limit_is_for_all_keys() -> None:
    """A check with many keys would take many times what it was given."""
    ticks = count()
    lines = [
        line
        for key in range(200)
        for line in history_of(("write", "ok", 1), ("read", "ok", 1), key=f"k{key}")
    ]
    verdict = linearizable.check(built(lines * 30), timeout_s=50, clock=lambda: float(next(ticks)))
    assert next(ticks) < 5_000
    assert verdict.result in ("valid", "unknown")


def test_an_exploding_key_leaves_time_for_the_others() -> None:
    """The first key would use up the time and the anomaly on the last one would never be looked at."""
    history = jsonl.read(FOLDER / "wrong-among-many-keys.jsonl")
    # However busy the machine is.
    verdict = linearizable.check(history, timeout_s=0.5, clock=time.process_time)
    assert verdict.details["keys_invalid"] == ["r2"]


def test_reads_that_are_not_judged_are_told() -> None:
    """A run whose reads were all left out would look as well judged as any other."""
    verdict = linearizable.check(jsonl.read(FOLDER / "replica-and-dirty-reads-left-out.jsonl"))
    assert verdict.details["reads_not_judged"] == {"dirty at owner": 1, "read-confirmed at replica": 1}


def test_the_caller_chooses_the_reads() -> None:
    """A stricter promise could not be judged."""
    history = jsonl.read(FOLDER / "replica-and-dirty-reads-left-out.jsonl")
    assert linearizable.check(history, reads=lambda role, mode: True).result == "invalid"


def test_an_unknown_operation_is_no_green_light() -> None:
    """A function that changes a key behind the model's back would be ignored."""
    with pytest.raises(ModelError, match="append"):
        linearizable.check(built([("append", "ok", 1, "r1")]))
    with pytest.raises(ModelError, match="old, new"):
        linearizable.check(built([("cas", "ok", 1, "r1")]))
    with pytest.raises(ModelError, match=r"\[r, key, value\]"):
        linearizable.check(built([("txn", "ok", [[["r"], "x", 1]], "r1")]), model="multi-register")


@pytest.mark.parametrize("value", [True, 1.5, [1, 2], {"a": 1}, "1"])
def test_any_json_value_can_be_a_register_value(value: object) -> None:
    """true would pass for 1, or a list break the checker."""
    assert (
        linearizable.check(built([("write", "ok", value, "r1"), ("read", "ok", value, "r1")])).result
        == "valid"
    )
    assert (
        linearizable.check(built([("write", "ok", 1, "r1"), ("read", "ok", value, "r1")])).result == "invalid"
    )


def test_a_witness_of_a_long_history_is_small() -> None:
    """A person would be shown thousands of operations."""
    lines: list[tuple[str, str, object]] = []
    for value in range(1, 400):
        lines += [("write", "ok", value), ("read", "ok", value)]
    lines.append(("read", "ok", 200))
    (witness,) = linearizable.check(built(history_of(*lines))).witnesses
    assert witness.rule == "stale-read"
    assert len(witness.events) == 6
    assert "read 200" in witness.summary


def test_a_cas_answered_with_what_was_there_is_named_in_a_sentence() -> None:
    """An anomaly would be lost: the checker would break over the words of its witness."""
    lines = history_of(
        ("write", "ok", 1),
        ("write", "ok", 1),
        ("cas", "ok", [1, 2, 1]),
        ("write", "ok", 3),
        ("read", "ok", 2),
    )
    verdict = linearizable.check(built(lines))
    assert verdict.result == "invalid"
    swapped = linearizable.check(built([*lines[:3], ("cas", "ok", [2, 3, 2], "r1"), ("read", "ok", 2, "r1")]))
    assert "although the change of 2 to 3 by process 3 had completed" in swapped.summary


def test_a_write_that_failed_without_an_error_has_none_in_its_sentence() -> None:
    """A person would read "(it failed): None." of a log whose lines name no errors."""
    verdict = linearizable.check(built(history_of(("write", "fail", 1), ("read", "ok", 1))))
    assert verdict.witnesses[0].explanation[0] == "Process 0 asked to write 1 (it failed)."


def test_a_write_that_failed_was_asked_for() -> None:
    """A person would read that no client asked for a deletion which stands in the history."""
    lines = history_of(("write", "ok", 1), ("write", "fail", None), ("read", "ok", None))
    (witness,) = linearizable.check(built(lines)).witnesses
    assert witness.rule == "stale-read"
    assert witness.explanation[1] == "No deletion took effect: nothing is the value before the first write."


def test_what_fixed_the_value_is_named_as_what_it_was() -> None:
    """A person would look for a write by the process that read the value."""
    lines: list[tuple[str, str, object]] = [("write", "ok", 999)]
    for value in range(1, 1_010):
        lines += [("write", "ok", value % 7), ("read", "ok", value % 7)]
    verdict = linearizable.check(built(history_of(*lines, ("read", "ok", 999))))
    (witness,) = verdict.witnesses
    assert witness.rule == "stale-read"
    assert "although the read of 1 by process 2018 had completed" in witness.summary
    refused = history_of(("cas", "fail", [3, 4]), ("read", "ok", 999))
    verdict = linearizable.check(mismatched(built([*history_of(*lines), *refused])))
    assert "the value surely was 1." in verdict.witnesses[0].explanation[2], "not 3, which it was not"
    # The operation that left the value which a read shows did not overwrite it: the cas had been told that it was gone.
    gone = history_of(("write", "open", 77), ("cas", "fail", [1, 4]), ("read", "ok", 1))
    (witness,) = linearizable.check(mismatched(built([*history_of(*lines), *gone]))).witnesses
    assert witness.summary.endswith("read 1, which fits into no order with the other answers")


@pytest.mark.parametrize(
    "lines",
    [
        history_of(("write", "ok", 1), ("write", "ok", 2), ("read", "ok", 1)),
        history_of(("write", "ok", 1), ("write", "ok", 2), ("cas", "fail", [2, 3])),
    ],
)
def test_a_witness_without_time_says_only_what_is_known(
    lines: list[tuple[str, str, object, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person would read that no client wrote a value which one did write, or that it was there all the time."""

    def late(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr("checkers.linearizable.checker.shrunk", late)
    (witness,) = linearizable.check(mismatched(built(lines))).witnesses
    assert witness.rule == "not-linearizable"
    assert witness.summary.endswith(", which fits into no order with the other answers")


@pytest.mark.parametrize(
    ("lines", "options", "rule"),
    [
        (
            [("write", "ok", 5), ("write", "ok", 6), ("read", "ok", 5), ("write", "ok", 5)],
            {},
            "not-linearizable",
        ),
        ([("read", "ok", 5), ("write", "ok", 5)], {}, "read-from-the-future"),
        ([("read", "ok", None)], {"initial": 3}, "never-written"),
        ([("write", "ok", None), ("write", "ok", 4), ("read", "ok", None)], {"initial": 3}, "stale-read"),
        ([("add", "ok", 1), ("read", "ok", [2])], {"model": "set"}, "not-linearizable"),
    ],
)
def test_a_witness_is_named_by_what_all_writers_of_its_value_did(
    lines: list[tuple[str, str, object]], options: dict[str, object], rule: str
) -> None:
    """A person would read that no client had asked for a value yet, or ever, which one had written before."""
    (witness,) = linearizable.check(built(history_of(*lines)), **options).witnesses  # type: ignore[arg-type]
    assert witness.rule == rule
    assert not any("not listed" in line for line in witness.explanation)
