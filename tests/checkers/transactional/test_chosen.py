"""Which transactions a promise is about."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.sessions import all_but_dirty
from checkers.transactional.chosen import left_out, selected
from tests.checkers.brute.histories import Line, history_of

READ, WRITE = [["r", "x", None]], [["w", "x", 1], ["r", "x", None]]


@pytest.mark.parametrize(
    ("ended", "value", "mode", "is_kept", "is_named"),
    [
        ("ok", READ, "read-confirmed", True, False),
        ("ok", READ, None, True, False),
        ("ok", READ, "dirty", False, True),
        ("info", READ, "read-confirmed", False, False),
        ("fail", READ, "read-confirmed", False, False),
        ("ok", WRITE, "dirty", True, False),
        ("info", WRITE, "dirty", True, False),
        ("fail", WRITE, "dirty", True, False),
    ],
)
def test_writes_are_kept_and_of_reads_the_answered_ones(
    ended: str, value: Any, mode: str | None, is_kept: bool, is_named: bool
) -> None:
    """If this fails, a dirty read is held to the promise, or a write takes no part because of its mode."""
    history = history_of(
        [Line("invoke", 0, "txn", value), Line(ended, 0, "txn", value, role="owner", mode=mode)]
    )
    chosen = selected(history, all_but_dirty)
    assert bool(chosen.operations) is is_kept
    assert left_out(history, chosen) == (["dirty at owner"] if is_named else [])
