"""Texts and lists that grow by appends, decided as registers, against the plain search."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.linearizable import appends
from checkers.linearizable.decide import decide
from checkers.linearizable.models import ILLEGAL, Action, Model
from checkers.linearizable.objects import Appended, KeyValue
from checkers.linearizable.search import Call, Decision, Limits, search
from tests import examples

TEXTS = ("a", "b", "ab", "c", "a")
MODELS: dict[str, Model] = {"kv": KeyValue(), "list": Appended()}
MOMENTS = st.integers(0, 24)
DRAWN = st.lists(
    st.tuples(
        st.sampled_from(("append", "append", "put", "read", "read")),
        st.integers(0, 4),
        MOMENTS,
        st.integers(0, 8),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=9,
)


def calls_of(model: Model, drawn: list[tuple[str, int, int, int, int]]) -> list[Call]:
    """Calls that took effect in the middle of their time; a read may lie, and what took no time never returns."""
    is_list = model.name == "list"
    state: Any = model.initial
    effects: dict[int, tuple[Action, int, int | None]] = {}
    shown = [state]
    for place in sorted(range(len(drawn)), key=lambda each: 2 * drawn[each][2] + drawn[each][3]):
        word, number, begin, length, luck = drawn[place]
        if word == "read" or (word == "put" and is_list):
            value = state if luck < 8 else shown[number % len(shown)]
            if length:
                action = Action("observe", "read" if is_list else "get", (value,))
                effects[place] = action, begin, begin + length
            continue
        value = number if is_list else TEXTS[number]
        value = "" if word == "put" and luck == 9 else value
        action = Action("update" if word == "append" else "overwrite", word, (value,))
        effects[place] = action, begin, begin + length if length else None
        if length or luck % 2:
            state = model.step(state, action)
            shown.append(state)
    moments = sorted(
        (at, which, place)
        for place, (_, begin, end) in effects.items()
        for which, at in ((0, begin), (1, end))
        if at is not None
    )
    index = {(which, place): event for event, (_, which, place) in enumerate(moments)}
    return [
        Call(action, index[0, place], index.get((1, place)))
        for place, (action, _, _) in sorted(effects.items())
    ]


def replays(model: Model, calls: list[Call], found: Decision) -> bool:
    """Whether the order of a yes holds all that surely happened, is legal, and fits real time."""
    assert found.order is not None
    order, state = list(found.order), model.initial
    placed = set(order)
    assert len(placed) == len(order)
    assert placed >= {place for place, call in enumerate(calls) if call.complete is not None}
    for position, place in enumerate(order):
        after = model.step(state, calls[place].action)
        if after is ILLEGAL:
            return False
        state = after
        later = (calls[each].complete for each in order[position + 1 :])
        if any(end is not None and end < calls[place].invoke for end in later):
            return False
    return True


def compared(model: Model, calls: list[Call]) -> str:
    """The answer, or "none"; asserts that it is that of the plain search."""
    found = appends.decide(model, calls, Limits(), decide) if calls else None
    if found is None:
        return "none"
    plain = search(model, calls, Limits())
    assert found.result == plain.result
    assert found.failing == plain.failing
    assert found.result == "no" or replays(model, calls, found)
    return found.result


@given(st.sampled_from(tuple(MODELS)), DRAWN)
@examples.up_to(500)
def test_appends_are_decided_as_by_the_plain_search(
    name: str, drawn: list[tuple[str, int, int, int, int]]
) -> None:
    """Broken, an order that is there is not found, or one is claimed; or the proof of a no names another call."""
    compared(MODELS[name], calls_of(MODELS[name], drawn))


@pytest.mark.parametrize("count", [600, pytest.param(4_000, marks=pytest.mark.long)])
def test_many_are_decided(count: int) -> None:
    """The test above would compare little."""
    told: Counter[str] = Counter()
    for seed in range(count):
        chance = random.Random(seed)
        model = MODELS[chance.choice(tuple(MODELS))]
        drawn = [
            (
                chance.choice(("append", "append", "put", "read", "read")),
                chance.randrange(5),
                chance.randrange(25),
                chance.randrange(9),
                chance.randrange(10),
            )
            for _ in range(chance.randint(1, 9))
        ]
        told[compared(model, calls_of(model, drawn))] += 1
    assert told["yes"] > count // 4
    assert told["no"] > count * 3 // 40


def test_two_clients_that_append_the_same_are_told_apart_by_time() -> None:
    """A text that a retry doubled would be judged by the slow search, or wrongly."""
    model = KeyValue()
    a, b = (Action("update", "append", (text,)) for text in "ab")
    get = [Action("observe", "get", (text,)) for text in ("a", "ab", "aba")]
    calls = [
        Call(a, 0, 9),
        Call(get[0], 1, 2),
        Call(b, 3, 4),
        Call(get[1], 5, 6),
        Call(a, 7, 8),
        Call(get[2], 10, 11),
    ]
    found = appends.decide(model, calls, Limits(), decide)
    assert found is not None and found.result == "yes"
    late = [*calls[:4], Call(a, 12, 13), calls[5]]
    found = appends.decide(model, late, Limits(), decide)
    assert found is not None
    assert (found.result, found.failing) == ("no", 5)
