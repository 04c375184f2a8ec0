"""Partial orders and possible values, against the plain way: every sequence, every value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from checkers.linearizable.models import ILLEGAL, Action, Register, State
from checkers.linearizable.partial import longest_orders, possible_values
from checkers.linearizable.search import Call
from tests.checkers.linearizable import all_orders

MODEL = Register()


def write(value: int, invoke: int, complete: int | None) -> Call:
    return Call(Action("overwrite", "write", (value,)), invoke, complete)


def read(value: int | None, invoke: int, complete: int) -> Call:
    return Call(Action("observe", "read", (value,)), invoke, complete)


def cas(old: int, new: int, invoke: int, complete: int | None) -> Call:
    return Call(Action("update", "cas", (old, new)), invoke, complete)


@st.composite
def few_calls(draw: st.DrawFn) -> list[Call]:
    count = draw(st.integers(1, 5))
    events = draw(st.permutations([number for place in range(count) for number in (place, place)]))
    calls = []
    for place in range(count):
        invoke, complete = (at for at, each in enumerate(events) if each == place)
        kind = draw(st.sampled_from(["write", "read", "cas"]))
        ends = complete if kind == "read" or draw(st.booleans()) else None
        a, b = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        match kind:
            case "write":
                calls.append(write(a, invoke, ends))
            case "read":
                calls.append(read(draw(st.none() | st.just(a)), invoke, complete))
            case _:
                calls.append(cas(a, 3 + b, invoke, ends))
    return calls


def all_partial(calls: Sequence[Call], order: tuple[int, ...], state: State) -> Iterator[tuple[int, ...]]:
    """Every legal sequence within real time, also those that could go on."""
    yield order
    left = [place for place in range(len(calls)) if place not in order]
    for place in left:
        if any((calls[other].complete or 10**9) < calls[place].invoke for other in left):
            continue
        after = MODEL.step(state, calls[place].action)
        if after is not ILLEGAL:
            yield from all_partial(calls, (*order, place), after)


BRANCHES = [
    Call(Action("update", "cas", change), at, 9 + at)
    for at, change in enumerate([(None, 1), (1, 2), (None, 3)])
]
"""The longest order has the first two; the last one has an order without them."""


@example(calls=BRANCHES)
@given(calls=few_calls())
def test_the_longest_orders_are_those_of_all_sequences(calls: list[Call]) -> None:
    """If it failed, the page would show an order as the longest that is not, or one that cannot be."""
    found = longest_orders(MODEL, calls, None)
    assert found is not None
    every = set(all_partial(calls, (), None))
    for partial in found:
        assert partial.order in every
        state: State = None
        for place, told in zip(partial.order, partial.states, strict=True):
            after = MODEL.step(state, calls[place].action)
            assert after == told
            state = after
        assert all(MODEL.step(state, calls[place].action) is ILLEGAL for place in partial.refused)
    assert len(found[0].order) == max(map(len, every))
    for place in range(len(calls)):
        longest = max((len(order) for order in every if place in order), default=0)
        assert longest == max((len(each.order) for each in found if place in each.order), default=0)


@given(calls=few_calls(), start=st.none() | st.integers(0, 2))
def test_possible_values_are_those_with_which_an_order_exists(calls: list[Call], start: int | None) -> None:
    """If it failed, the page would tell a developer that the store could have answered what it must not."""
    model = Register(initial=start)
    for place, call in enumerate(calls):
        if call.action.word != "read":
            continue
        possible = possible_values(model, calls, place, start)
        assert possible is not None
        for value in (None, *range(7)):
            answered = replace(call, action=Action("observe", "read", (value,)))
            others = [*calls[:place], answered, *calls[place + 1 :]]
            assert (value in possible) == all_orders.linearizable(model, others)


def test_a_stale_read_by_hand() -> None:
    """If it failed, the page would not tell what is wrong in the simplest anomaly."""
    calls = [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]
    found = longest_orders(MODEL, calls, None)
    assert found is not None
    assert [(each.order, each.states, each.refused) for each in found] == [((0, 1), (1, 2), (2,))]
    assert possible_values(MODEL, calls, 2, None) == (2,)


def test_too_many_orders_are_not_walked_through() -> None:
    """If it failed, a witness of thirty concurrent writes would keep the page from being written."""
    calls = [write(number, number, 100 + number) for number in range(30)]
    assert longest_orders(MODEL, calls, None) is None
    assert longest_orders(MODEL, calls[:2], None, steps=1) is None
    many = [write(number, number, 100 + number) for number in range(60)]
    assert possible_values(MODEL, [*many, read(3, 70, 200)], 60, None) is None
