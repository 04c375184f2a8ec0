"""Transactions that a client computes: the same results as a store that computes them, and nothing in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.clients.client import NotDone
from harness.clients.flat_keys import bounds, dumped, flat, place_of, shown
from harness.clients.operations import (
    Add,
    Append,
    Cas,
    Completion,
    Delete,
    Done,
    Insert,
    Mismatch,
    Read,
    Scan,
    Step,
    Take,
    Write,
)
from harness.clients.optimistic import if_unchanged, is_one_request

A, B = ("s", "a"), ("s", "b")


class Store:
    """Keeps values with a version each; `meanwhile` is what another client writes between the two requests."""

    def __init__(self, there: Mapping[Any, object], meanwhile: Mapping[Any, object] | None = None) -> None:
        self.now = {place: (value, 1) for place, value in there.items()}
        self._meanwhile = meanwhile or {}
        self.writes = 0

    def read(self, places: Sequence[Any]) -> list[tuple[object, object]]:
        found = [self.now.get(place, (None, 0)) for place in places]
        self.now.update({place: (value, 2) for place, value in self._meanwhile.items()})
        return list(found)

    def write(self, versions: Mapping[Any, object], changed: Mapping[Any, object]) -> bool:
        self.writes += 1
        if any(self.now.get(place, (None, 0))[1] != version for place, version in versions.items()):
            return False
        self.now.update({place: (value, 3) for place, value in changed.items()})
        return True

    def do(self, *steps: Step) -> object:
        return if_unchanged(steps, self.read, self.write, "owner")

    @property
    def values(self) -> dict[Any, object]:
        return {place: value for place, (value, _) in self.now.items()}


@pytest.mark.parametrize(
    ("there", "steps", "outcome", "after"),
    [
        ({}, (Append(*A, 1), Read(*A), Append(*A, 2)), Done([True, [1], True], "owner"), {A: [1, 2]}),
        ({A: [1]}, (Read(*B), Append(*A, 2)), Done([None, True], "owner"), {A: [1, 2]}),
        ({A: 1}, (Write(*A, 2), Read(*A), Write(*A, 3)), Done([True, 2, True], "owner"), {A: 3}),
        ({A: [1, 2]}, (Take(*A), Read(*A)), Done([1, [2]], "owner"), {A: [2]}),
        ({}, (Take(*A),), Done([None], "owner"), {}),
        ({A: 5}, (Add(*A, -2, 0), Add(*B, 2)), Done([3, 2], "owner"), {A: 3, B: 2}),
        ({A: 1}, (Add(*B, 2), Add(*A, -2, 0)), Mismatch(1, 1, "owner"), {A: 1}),
        ({A: 1}, (Write(*B, 1), Cas(*A, 2, 3)), Mismatch(1, 1, "owner"), {A: 1}),
        ({A: 1}, (Cas(*A, 1, 3), Insert(*B, 4)), Done([True, True], "owner"), {A: 3, B: 4}),
        ({A: 1}, (Delete(*A), Read(*A)), Done([True, None], "owner"), {A: None}),
        ({}, (Delete(*A),), Done([False], "owner"), {}),
        ({A: 1}, (Insert(*A, 2),), Completion("fail", None, "duplicate-key", "owner"), {A: 1}),
        ({}, (Write(*B, 1), Add(*A, "no")), Completion("fail", None, "illegal-parameters", "owner"), {}),
    ],
)
def test_steps_do_what_the_table_of_steps_says(
    there: dict[Any, object], steps: tuple[Step, ...], outcome: object, after: dict[Any, object]
) -> None:
    """If it failed, a store would be blamed for what its client has computed wrongly."""
    store = Store(there)
    assert store.do(*steps) == outcome
    assert store.values == after


def test_who_was_outrun_has_done_nothing_and_does_not_try_again() -> None:
    """If it failed, an element could be appended twice, or a lost update be taken for the store's."""
    for seen in (A, B):  # also what was only read counts
        store = Store({A: [1], B: [2]}, meanwhile={seen: [9]})
        with pytest.raises(NotDone, match="outrun"):
            store.do(Read(*B), Append(*A, 3))
        assert store.writes == 1
        assert 3 not in (store.values[A], store.values[B])


def test_a_read_that_failed_is_surely_nothing_and_a_write_that_failed_is_not() -> None:
    """If it failed, a write whose answer was lost would be called `fail`: a false alarm when it is seen."""
    store = Store({})

    def breaks(*given: object) -> Any:
        raise ConnectionResetError

    with pytest.raises(NotDone, match="nothing was written"):
        if_unchanged((Append(*A, 1),), breaks, store.write)
    with pytest.raises(ConnectionResetError):
        if_unchanged((Append(*A, 1),), store.read, breaks)


def test_flat_keys_sort_as_keys_do_and_come_back() -> None:
    """If it failed, a read of a set would show another set's elements, or a dump would lack a space."""
    numbers = [0, 9, 10, 10**10, 10**12]
    names = [flat("set", number) for number in numbers]
    assert names == sorted(names)
    assert [place_of(name) for name in (*names, flat("set", "7"))] == [
        *(("set", number) for number in numbers),
        ("set", "7"),
    ]
    first, below = bounds(Scan("set", 10, 10**10))
    assert [name for name in names if first <= name < below] == names[2:3]
    first, below = bounds(Scan("set", None, None))
    assert all(first <= name < below for name in names)
    assert not first <= flat("sets", 1) < below
    assert dumped([(flat("set", 1), "x"), (flat("r", "a"), None)]) == Done(
        [{"spaces": {"set": [[1, "x"]], "r": [["a", None]]}}]
    )


def test_what_rows_show_is_the_result_of_the_step() -> None:
    """If it failed, a client of a flat store would answer a read with another key's value, or a range by flat keys."""
    rows = [(flat("s", 7), "x", "version 3"), (flat("s", "a"), [1], "version 4")]
    assert shown(Scan("s", None, None), rows) == [(7, "x"), ("a", [1])]
    assert (shown(Read("s", 7), rows[:1]), shown(Read("s", 8), [])) == ("x", None)


@pytest.mark.parametrize(
    ("steps", "is_one"),
    [
        ((Write(*A, 1), Read(*B), Write(*B, 2), Read(*A)), True),
        ((Write(*A, 1), Write(*A, 2)), False),
        ((Read(*A), Append(*B, 1)), False),
        ((Cas(*A, 1, 2), Write(*B, 2)), False),
    ],
)
def test_what_needs_a_value_that_the_client_computes_is_not_one_request(
    steps: tuple[Step, ...], is_one: bool
) -> None:
    """If it failed, a store would be asked to append, or to write one key twice in a transaction."""
    assert is_one_request(steps) is is_one
