"""The two views of a space, against a list of versions for each key."""

from __future__ import annotations

import math
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.qsync.bugs.confirm_early import EarlyView
from nodes.qsync.configuration import SpaceDefinition
from nodes.qsync.definitions import FieldDefinition, IndexDefinition
from nodes.qsync.keys import Part, Rejected, has_type, order_of_key
from nodes.qsync.selection import Iterator, selected
from nodes.qsync.spaces import Change, Space, Transaction, commit, prepare, roll_back

KEYS = ("a", "b")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("prepare"),
            st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=3),
        ),
        st.tuples(st.sampled_from(("commit", "roll back", "show")), st.just([])),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_confirmed_and_prepared_views(steps: list[tuple[str, list[tuple[str, bool]]]]) -> None:
    """Broken, a commit or rollback among several on one key leaves a value that no transaction wrote there; with
    rows shown early (a seeded bug), the confirmed view is then wrong for good."""
    space = Space(SpaceDefinition(id=1, name="s", is_sync=True))
    view, shown = EarlyView(space), set[Transaction]()
    committed: list[Transaction] = []
    waiting: deque[Transaction] = deque()
    for number, (step, changes) in enumerate(steps):
        if step == "prepare":
            made = tuple(
                Change(space, key, (key, number, i) if full else None)
                for i, (key, full) in enumerate(changes)
            )
            waiting.append(Transaction(made))
            prepare(waiting[-1])
        elif step == "commit" and waiting:
            committed.append(waiting.popleft())
            commit(committed[-1])
        elif step == "roll back" and waiting:
            roll_back(waiting.pop())
        elif step == "show" and (hidden := [t for t in waiting if t not in shown]):
            shown.add(hidden[0])  # in the order of submission, as rows are written
            for change in hidden[0].changes:
                view.show(hidden[0], change.key)
        early = [transaction for transaction in waiting if transaction in shown]
        for key in KEYS:
            assert space.confirmed.get(key) == _newest(key, [*committed, *early]), (key, step)
            assert space.prepared_version(key)[0] == _newest(key, [*committed, *waiting]) or early
        if not early:
            assert view.beneath == {}
    if not waiting:
        assert space.prepared == {}


def _newest(key: str, transactions: list[Transaction]) -> object:
    values = [change.tuple for t in transactions for change in t.changes if change.key == key]
    return values[-1] if values else None


def test_tuples_come_in_the_order_of_their_keys() -> None:
    """Broken, two nodes with the same data dump it differently, or a scan over keys of two types raises."""
    keys: list[bool | int | float | str | bytes | None] = [b"b", "a", 2, 1.5, True, False, None]
    assert sorted(keys, key=order_of_key) == [None, False, True, 1.5, 2, "a", b"b"]


def test_a_key_that_is_no_number_is_not_minus_infinity() -> None:
    """Broken, a read of the tuples at -inf returns those at NaN as well, and the other way round."""
    by_value = IndexDefinition(1, "by value", (Part(1, "number"),), is_unique=False)
    space = Space(SpaceDefinition(id=600, name="s", indexes=(IndexDefinition(), by_value)))
    lowest, undefined, low = (1, -math.inf), (2, math.nan), (3, -1e308)
    space.confirmed = {1: lowest, 2: undefined, 3: low}
    assert selected(space, 1, Iterator.EQ, (-math.inf,), 0, 9) == [lowest]
    assert selected(space, 1, Iterator.EQ, (math.nan,), 0, 9) == [undefined]
    assert selected(space, 1, Iterator.ALL, (), 0, 9) == [undefined, lowest, low]


@pytest.mark.parametrize(
    ("iterator", "firsts"),
    [
        (Iterator.EQ, [4, 2]),
        (Iterator.REQ, [4, 2][::-1]),
        (Iterator.ALL, [4, 2, 3]),
        (Iterator.GE, [4, 2, 3]),
        (Iterator.GT, [3]),
        (Iterator.LE, [2, 4, 1]),
        (Iterator.LT, [1]),
    ],
)
def test_each_iterator_finds_its_side_of_a_key(iterator: Iterator, firsts: list[int]) -> None:
    """Broken, a client reads too much or too little, or in the wrong order; tuples of one key go by the primary."""
    by_value = IndexDefinition(1, "by value", (Part(1, "unsigned"), Part(0, "integer")), is_unique=False)
    space = Space(SpaceDefinition(id=600, name="s", indexes=(IndexDefinition(), by_value)))
    found = {1: (1, 5), 4: (-4, 6), 2: (2, 6), 3: (3, 7)}
    space.confirmed = {value[0]: value for value in found.values()}
    expected = [found[first] for first in firsts]
    assert selected(space, 1, iterator, (6,), 0, 9) == expected
    assert selected(space, 1, iterator, (6,), 1, 1) == expected[1:2]


CHAIN = ("any", "scalar", "number", "integer", "unsigned")
VALUES = (None, True, 5, -5, 1.5, "a", b"a", [1], {"a": 1})


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("in_format", CHAIN)
@pytest.mark.parametrize("in_index", CHAIN[1:])
def test_a_key_has_the_type_of_the_format_and_that_of_the_index(
    in_format: str, in_index: str, value: object
) -> None:
    """Broken, an index over integers takes what the format refuses, or a node takes a key that it cannot find."""
    index = IndexDefinition(parts=(Part(0, in_index),))
    format_ = (FieldDefinition("a", in_format),)
    space = Space(SpaceDefinition(id=600, name="s", format=format_, indexes=(index,)))
    if has_type(value, in_format) and has_type(value, in_index):
        assert space.key_of((value, 1)) is not None
    else:
        with pytest.raises(Rejected):
            space.key_of((value, 1))


def test_a_field_of_any_type_may_be_nil_and_not_missing() -> None:
    """Broken, a node takes a tuple that Tarantool 2.6.0 refuses: a real one that follows it stops at this row."""
    format_ = FieldDefinition("id", "unsigned"), FieldDefinition("what")
    made = Space(SpaceDefinition(id=512, name="s", format=format_))
    assert made.key_of((1, None)) == 1
    with pytest.raises(Rejected, match="Tuple field 2 required by space format is missing"):
        made.key_of((1,))
