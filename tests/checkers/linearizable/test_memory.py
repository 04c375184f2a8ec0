"""The searches hold their bound of memory whatever a state weighs, and what they forget changes no result."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from checkers.linearizable import depth_first, forward, search
from checkers.linearizable.models import ILLEGAL, Action, Model, weight
from checkers.linearizable.search import Call, Limits
from checkers.linearizable.table import MODELS
from tests.checkers.linearizable.test_depth_first import NAMES, at_once, is_an_order

SMALL = Limits(configurations=1)


@pytest.fixture
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits hold at a few bytes, too."""
    monkeypatch.setattr(search, "BYTES_MIN", 0)


def on_a_full_stack(pushed: int, together: int) -> list[Call]:
    """Pushes one after the other, some that run together, and a pop that no order allows."""
    calls = [
        Call(Action("update", "push", (place % 10,)), 2 * place, 2 * place + 1) for place in range(pushed)
    ]
    begin = 2 * pushed
    calls += [
        Call(Action("update", "push", (100 + place,)), begin + place, begin + together + place)
        for place in range(together)
    ]
    end = begin + 2 * together
    return [*calls, Call(Action("update", "pop", (5,)), end, end + 1)]


def decided(decide: Callable[..., search.Decision], *given: Any) -> str:
    return decide(*given).result


@pytest.mark.parametrize(
    ("find", "result"),
    [
        (depth_first.find, None),
        (partial(decided, search.search), "unknown"),
        (partial(decided, forward.search), "unknown"),
    ],
    ids=["depth first", "plain", "compiled"],
)
def test_states_of_thousands_of_elements_fit_into_the_memory(
    find: Callable[[Model, Sequence[Call], Limits], object],
    result: str | None,
    no_least: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, nine pushes onto a full stack would take gigabytes, whatever --memory says."""
    monkeypatch.setattr(depth_first, "STEPS", 4_000)
    calls, limits = on_a_full_stack(600, 7), Limits(configurations=20_000)
    forward.search(MODELS["stack"](), calls[:4], Limits())  # what is loaded once is not the search's
    tracemalloc.start()
    try:
        assert find(MODELS["stack"](), calls, limits) == result
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Arrays have the same bound as states, and growing ones stand there twice.
    assert limits.bytes_max == 4_000_000 and most < 2 * limits.bytes_max


@pytest.mark.parametrize("name", NAMES)
def test_an_order_is_met_with_hardly_any_memory(name: str, no_least: None) -> None:
    """If it failed, states that are made again, or known by their hashes, would give an order that is none."""
    met = 0
    for seed in range(20):
        calls = at_once(random.Random(seed), name, 60, 5)
        orders = [depth_first.find(MODELS[name](), calls, limits) for limits in (SMALL, Limits(100_000))]
        if None not in orders:
            assert orders[0] == orders[1], seed
        if orders[0] is not None:
            met += 1
            assert is_an_order(name, calls, orders[0]), seed
    assert met > 10


@pytest.mark.parametrize("name", NAMES)
def test_taken_calls_come_back_with_their_states(name: str) -> None:
    """If it failed, the search would go on from another state than it was in."""
    model = MODELS[name]()
    chance = random.Random(name)
    calls = at_once(chance, name, 80, 1)
    for bytes_max in (0, 500, 1 << 20):
        taken = depth_first._Taken(model, calls, bytes_max)
        states, replayed = [model.initial], 0
        for _ in range(2_000):
            if len(states) <= len(calls) and chance.random() < 0.55:
                after = model.step(states[-1], calls[len(states) - 1].action)
                if after is not ILLEGAL:
                    taken.push(len(states) - 1, states[-1])
                    states.append(after)
                    continue
            if len(states) > 1:
                states.pop()
                place, state, steps = taken.pop()
                replayed += steps
                assert (place, state) == (len(states) - 1, states[-1])
        assert (replayed > 0) == (bytes_max < 1 << 20)


@pytest.mark.parametrize("name", NAMES)
def test_states_that_were_forgotten_change_no_result(
    name: str, no_least: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, numbers of forgotten states would stand for others: a false alarm, or a missed bug."""
    forgot: list[int] = []
    keep = forward._Steps.keep

    def noted(steps: forward._Steps, numbers: Sequence[int]) -> None:
        forgot.append(len(steps.states) - len(numbers))
        keep(steps, numbers)

    monkeypatch.setattr(forward._Steps, "keep", noted)
    results = []
    for seed in range(12):
        chance = random.Random(seed)
        calls = at_once(chance, name, 40, 3)
        if seed % 2:  # two answers change places
            one, other = chance.sample(range(len(calls)), 2)
            actions = [call.action for call in calls]
            actions[one], actions[other] = actions[other], actions[one]
            calls = [
                Call(action, call.invoke, call.complete) for action, call in zip(actions, calls, strict=True)
            ]
        # Room for the states, but hardly for those of a few events: arrays take more.
        monkeypatch.setattr(Limits, "bytes_max", 1 << 24)
        whole = forward.search(MODELS[name](), calls, Limits())
        assert whole.is_decided
        monkeypatch.setattr(forward, "STATE_BYTES", 1 << 18)
        tight = forward.search(MODELS[name](), calls, Limits())
        monkeypatch.setattr(forward, "STATE_BYTES", 100)
        assert tight.result in (whole.result, "unknown"), seed
        assert not tight.is_decided or tight.failing == whole.failing, seed
        results.append(tight.result)
    assert results.count("yes") >= 2 and results.count("no") >= 2 and sum(forgot) > 30


def test_the_weight_of_a_state_is_what_its_parts_take() -> None:
    """If it failed, states of a thousand pairs would count as an empty one."""
    elements = tuple(range(1_000))
    bag = frozenset((element, 1) for element in elements)
    assert 8_000 < weight(elements) < 9_000
    assert weight(frozenset(elements)) < weight(bag) - 70_000
    assert weight((bag, frozenset())) > weight(bag)
    assert weight((elements, (0, 1))) > weight(elements)
    assert weight("x" * 1_000) > 1_000
