"""Which transactions the answers of clients show."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.operation import Operation
from harness.systems.twophase.seen import Writers


def committed(xid: str, *writes: tuple[str, object]) -> list[Any]:
    rows = [["register", key, value, version] for version, (key, value) in enumerate(writes, 1)]
    return ["committed", xid, None, False, [], rows]


RECORDS = {
    "n1": [
        committed("t1", ("x", 1), ("y", 1)),
        ["rolled-back", "t0"],
        committed("t2", ("x", 2)),
        committed("t3", ("l", [1, 2])),
        committed("t4", ("x", 7)),
    ],
    "n2": [committed("t1", ("x", 1), ("y", 1)), committed("t5", ("x", 7)), committed("t6", ("z", None))],
}


def operation(ended: Any, f: str, key: str | None, value: Any, xid: str | None = None) -> Operation:
    return Operation(
        type=ended,
        process=1,
        f=f,
        key=key,
        value=value,
        invoke_index=0,
        invoke_ns=1,
        complete_index=1,
        complete_ns=2,
        transaction=xid,
    )


@pytest.mark.parametrize(
    ("asked", "shows"),
    [
        (operation("ok", "read", "x", 2), ["t2"]),
        (operation("ok", "read", "y", 1), ["t1"]),
        (operation("ok", "read", "y", 2), []),
        (operation("ok", "read", "x", None), []),
        (operation("ok", "read", "z", None), []),
        (operation("ok", "read", "x", 7), []),
        (operation("info", "read", "x", 2), []),
        (operation("ok", "cas", "x", [2, 9]), ["t2"]),
        (operation("ok", "cas", "x", (2, 9)), ["t2"]),
        (operation("fail", "cas", "x", [9, 8, 1]), ["t1"]),
        (operation("fail", "cas", "x", [1, 2]), []),
        (operation("info", "cas", "x", [1, 2]), []),
        (operation("ok", "write", "x", 2), []),
        (operation("ok", "txn", None, [["r", "x", 1], ["w", "x", 5], ["r", "l", [1, 2]]]), ["t1", "t3"]),
        (operation("ok", "txn", None, [["w", "x", 2], ["r", "x", 2]], "t2"), []),
        (operation("ok", "read", None, {"a": 1}), []),
    ],
)
def test_a_value_shows_the_one_transaction_that_wrote_it(asked: Operation, shows: list[str]) -> None:
    """If it failed, a client would count as knowing what it never saw, or what it read would not count."""
    assert Writers(RECORDS).shown_by(asked) == shows
