"""Segments of a long history: the same answer as the whole, whatever crashed on the way."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from checkers.history import Header, History
from checkers.history.operation import NOTHING_THERE, Operation
from checkers.linearizable import check
from checkers.linearizable.segments import segments


def simulated(seed: int, count: int, *, lie: bool) -> list[Operation]:
    """Operations of a few clients on one register: crashes, refused compares, times of quiet; and perhaps a lie."""
    chance = random.Random(seed)
    value: Any = None
    event = 0
    found: list[Operation] = []
    pending: list[tuple[int, int, str, Any]] = []
    crashed: list[Any] = []
    asked = 0
    while asked < count or pending:
        if crashed and chance.random() < 0.03:
            value = crashed.pop(chance.randrange(len(crashed)))  # it takes effect late
        if asked < count and (not pending or (len(pending) < 3 and chance.random() < 0.4)):
            f = chance.choice(["read", "write", "cas", "delete"])
            new = None if f == "delete" else chance.randrange(6)
            pending.append((event, asked, f, [chance.choice([value, new]), new] if f == "cas" else new))
            asked += 1
        else:
            invoked, number, f, what = pending.pop(chance.randrange(len(pending)))
            outcome, error = "ok", None
            if f == "read":
                what = chance.choice([None, *range(6)]) if lie and chance.random() < 0.1 else value
            elif f == "cas" and what[0] != value:
                outcome, error = "fail", "mismatch"
            elif f == "delete" and value is None:
                outcome, error = "fail", NOTHING_THERE
            elif chance.random() < 0.08:
                outcome = "info"
                if chance.random() < 0.5:
                    value = what[1] if f == "cas" else what
                elif f != "cas":
                    crashed.append(what)
            else:
                value = what[1] if f == "cas" else what
            found.append(
                Operation(
                    type=outcome,
                    process=number,
                    f="write" if f == "delete" else f,
                    key="k",
                    value=what,
                    invoke_index=invoked,
                    invoke_ns=invoked,
                    complete_index=event,
                    complete_ns=event,
                    error=error,
                    role="owner",
                )  # type: ignore[arg-type]  # one of the outcomes
            )
        event += 1
    return sorted(found, key=lambda operation: operation.invoke_index)


def result(operations: Any) -> str:
    return check(History(header=Header(), events=(), operations=tuple(operations))).result


@pytest.mark.parametrize("lie", [False, True])
@given(seed=st.integers(0, 100_000), count=st.integers(1, 40))
def test_all_segments_have_an_order_exactly_if_the_whole_has_one(lie: bool, seed: int, count: int) -> None:
    """If it failed, a check that is spread over workers would miss an anomaly, or see one that is none."""
    operations = simulated(seed, count, lie=lie)
    parts = segments(operations, 1)
    whole = result(operations)
    if whole == "unknown":  # nothing was observed
        return
    answers = {result(part.operations) for part in parts} - {"unknown"}
    assert ("invalid" in answers) == (whole == "invalid")


def test_quiet_histories_are_cut_and_crashes_that_may_be_seen_keep_them_whole() -> None:
    """If it failed, segments would be found nowhere (and nothing spread), or everywhere."""
    quiet = [
        Operation(
            type="ok",
            process=0,
            f="write",
            key="k",
            value=number,
            invoke_index=2 * number,
            invoke_ns=0,
            complete_index=2 * number + 1,
            complete_ns=0,
        )
        for number in range(10)
    ]
    assert [len(part.operations) for part in segments(quiet, 3)] == [3, 4, 4, 2]
    crashed = [structs.replace(quiet[0], type="info"), *quiet[1:]]
    assert len(segments(crashed, 3)) == 4  # nobody ever sees it
    seen = [*crashed[:-1], structs.replace(crashed[-1], f="read", value=0)]
    assert len(segments(seen, 3)) == 1
    changed = structs.replace(crashed[-1], f="cas", value=[0, 5])
    assert len(segments([*crashed[:-1], changed], 3)) == 1
    assert len(segments([*crashed[:-1], structs.replace(changed, type="info")], 3)) == 1
    unanswered = structs.replace(crashed[-1], f="read", type="info", value=0)
    assert len(segments([*crashed[:-1], unanswered], 3)) == 4
    refused = [
        *crashed[:-1],
        structs.replace(crashed[-1], f="cas", type="fail", value=[5, 6], error="mismatch"),
    ]
    assert len(segments(refused, 3)) == 1
    deleted = [structs.replace(quiet[0], type="info", value=None), *quiet[1:]]
    nothing = structs.replace(quiet[-1], type="fail", value=None, error=NOTHING_THERE)
    assert len(segments(deleted, 3)) == 4
    assert len(segments([*deleted[:-1], nothing], 3)) == 1
    assert len(segments([structs.replace(each, f="append") for each in quiet], 3)) == 1


def test_values_of_every_kind_have_segments() -> None:
    """A long key with objects as values could not be spread over workers: the cutting would break."""
    written = [
        Operation(
            type="info" if number == 1 else "ok",
            process=number,
            f="cas" if number == 3 else "write",
            key="k",
            value=[{"n": 2}, {"n": 3}, {"n": 2}] if number == 3 else {"n": number},
            invoke_index=2 * number,
            invoke_ns=0,
            complete_index=2 * number + 1,
            complete_ns=0,
        )
        for number in range(5)
    ]
    assert [len(part.operations) for part in segments(written, 3)] == [3, 3]
    assert segments(written, 4)[1].operations[0].value == {"n": 3}
