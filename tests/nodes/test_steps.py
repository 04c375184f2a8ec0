"""Steps of clients: what is refused, and which values are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.steps import Step, WrongSteps, checked, is_same
from nodes.twophase import evaluation as twophase
from nodes.txlog import evaluation as txlog

LEAVES: list[Any] = [None, True, False, 0, 1, 1.0, "", "a", b"a"]
VALUES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(LEAVES), inner)),
    max_leaves=4,
)


def are_alike(value: Any, other: Any) -> bool:
    """The plain twin."""
    if type(value) is not type(other):
        return False
    if isinstance(value, list):
        return len(value) == len(other) and all(map(are_alike, value, other))
    if isinstance(value, dict):
        return len(value) == len(other) and all(
            any(are_alike(key, there) and are_alike(value[key], other[there]) for there in other)
            for key in value
        )
    return bool(value == other)


@given(VALUES, VALUES)
def test_values_are_the_same_if_their_parts_are(value: object, other: object) -> None:
    """If it failed, `cas` would change a value that a client did not name, or refuse the one that it named."""
    assert is_same(value, other) == are_alike(value, other)
    assert is_same(value, value)


@pytest.mark.parametrize(
    ("value", "other"), [(1, True), ([1], [1.0]), ({1: 0}, {True: 0}), ({"a": 0}, {"a": False}), (0.0, -0.0)]
)
def test_what_only_python_calls_equal_is_not_the_same(value: object, other: object) -> None:
    """If it failed, `cas` would change a value that a client did not name."""
    assert value == other
    assert not is_same(value, other)


def test_the_order_of_a_map_and_what_is_no_number_are_the_same() -> None:
    """If it failed, `cas` would refuse the value that a client has read."""
    assert is_same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert is_same(float("nan"), float("nan"))


def nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


def in_maps(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = {"a": value}
    return value


WRONG = {
    "no list": ("read", "expected a list of steps, got 'read'"),
    "no steps": ([], r"expected a list of steps, got \[\]"),
    "a step that is no list": ([{}], r"expected a step such as .*, got {}"),
    "an unknown word": ([["jump", "r", 1]], r"expected a step such as .*, got \['jump', 'r', 1\]"),
    "a key that equals a number": ([["read", "r", True]], "expected a step such as .*, got .*True"),
    "a deep value": ([["write", "r", 1, nested(99)]], "expected at most 100 lists and maps"),
    "a deep map": ([["write", "r", 1, in_maps(99)]], "expected at most 100 lists and maps"),
    "a very deep one": (nested(100_000), "expected at most 100 lists and maps"),
}


@pytest.mark.parametrize(("steps", "why"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("is_known", [twophase.is_known, txlog.is_known], ids=["twophase", "txlog"])
def test_what_no_store_can_do_is_refused(is_known: Callable[[Step], bool], steps: object, why: str) -> None:
    """If it failed, a request would end a node, or a key would have two places."""
    with pytest.raises(WrongSteps, match=why):
        checked(steps, is_known)
    for deepest in ([["write", "r", 1, nested(98)]], [["write", "r", 1, in_maps(98)]]):
        assert checked(deepest, is_known) == deepest


@pytest.mark.parametrize("bound", [1.5, True, [1]])
def test_the_bound_of_a_scan_is_a_key_or_nothing(bound: object) -> None:
    """If it failed, every master would end that executes the scan."""
    for step in (["scan", "r", bound, None], ["scan", "r", None, bound]):
        with pytest.raises(WrongSteps, match="expected a step such as"):
            checked([step], txlog.is_known)
