"""The state of a master, forwards and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.txlog import evaluation
from nodes.txlog.evaluation import State

KEYS = st.sampled_from(["a", "b", 1])
VALUES = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.just("s"), KEYS, VALUES),
        st.tuples(st.just("insert"), st.just("s"), KEYS, VALUES),
        st.tuples(st.just("cas"), st.just("s"), KEYS, VALUES, VALUES),
    ).map(list),
    min_size=1,
    max_size=3,
)


def after(transactions: list[list[list[Any]]]) -> State:
    state = State()
    for number, steps in enumerate(transactions):
        state.apply(f"n1-1-{number}", steps, lambda value: value)
    return state


@given(st.lists(STEPS, max_size=8), st.data())
def test_a_state_taken_back_is_the_state_that_was(transactions: list[list[list[Any]]], data: Any) -> None:
    """If it failed, a backup would hold what no master ever had, and a restore would bring it everywhere."""
    index = data.draw(st.integers(0, len(transactions)))
    state = after(transactions)
    now = state.to_list()
    found = state.before(index)
    assert found is not None and found.to_list() == after(transactions[:index]).to_list()
    assert state.to_list() == now


def test_a_state_that_is_too_long_ago_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a backup of a long time ago would hold values that came later."""
    monkeypatch.setattr(evaluation, "UNDO_MAX", 2)
    state = after([[["write", "s", "a", number]] for number in range(5)])
    assert state.before(2) is None
    found = state.before(3)
    assert found is not None and found.values == {("s", "a"): 2}


def test_a_scan_takes_numbers_before_strings() -> None:
    """If it failed, a scan over keys of both kinds would end every master."""
    state = after([[["write", "s", key, key] for key in ("b", 2, "a", 1)]])
    for first, below, keys in (
        (None, None, [1, 2, "a", "b"]),
        (2, "b", [2, "a"]),
        ("a", None, ["a", "b"]),
        (None, 2, [1]),
    ):
        told, _ = evaluation.evaluated([["scan", "s", first, below]], state.values)
        assert told["results"] == [[[key, key] for key in keys]]


def test_a_comparison_takes_true_for_no_number() -> None:
    """If it failed, clients would see a comparison succeed with a value that is not there."""
    state = after([[["write", "s", "a", 1]]])
    told, _ = evaluation.evaluated([["cas", "s", "a", True, 2]], state.values)
    assert told == {"type": "mismatch", "step": 0, "found": 1}
