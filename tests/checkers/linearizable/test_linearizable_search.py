"""The search for a linearization against its slow twin, and its limits."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from checkers import limits
from checkers.history import Operation
from checkers.limits import OutOfTime, within
from checkers.linearizable.models import Action, State
from checkers.linearizable.search import Call, Limits, search
from checkers.linearizable.shrinking import Subject, shrunk
from tests import examples
from tests.checkers.linearizable import all_orders
from tests.checkers.strategies import REGISTER, calls

NO_LIMITS = Limits()
SEEN: Counter[str] = Counter()


def read(value: State) -> Action:
    return Action("observe", "read", (value,))


def write(value: State) -> Action:
    return Action("overwrite", "write", (value,))


def is_not(value: State) -> Action:
    return Action("observe", "is-not", (value,))


def cas(old: State, new: State) -> Action:
    return Action("update", "cas", (old, new))


def subjects(drawn: list[Call]) -> list[Subject]:
    """Calls with operations that nobody looks at."""
    return [
        Subject(
            Operation(
                type="ok",
                process=position,
                f=call.action.word,
                key="r1",
                value=None,
                invoke_index=call.invoke,
                invoke_ns=call.invoke,
                complete_index=call.complete,
                complete_ns=call.complete,
            ),
            call,
        )
        for position, call in enumerate(drawn)
    ]


@examples.up_to(3_000)
@given(calls())
def test_search_agrees_with_trying_every_order(drawn: list[Call]) -> None:
    """The search would raise a false alarm or miss an anomaly in some tiny history."""
    found = search(REGISTER, drawn, NO_LIMITS)
    SEEN[found.result] += 1
    assert found.result == ("yes" if all_orders.linearizable(REGISTER, drawn) else "no")


def test_both_answers_were_compared() -> None:
    """The comparison above would prove little: all its histories would be legal, or none."""
    if not SEEN:
        test_search_agrees_with_trying_every_order()
    assert min(SEEN["yes"], SEEN["no"]) > SEEN.total() // 4, SEEN


@examples.up_to(1_200)
@given(calls())
def test_the_failing_call_is_the_first(drawn: list[Call]) -> None:
    """A witness would name an operation that is not the one at which it went wrong."""
    found = search(REGISTER, drawn, NO_LIMITS)
    if found.result != "no":
        return
    assert found.failing is not None
    end = drawn[found.failing].complete
    assert end is not None
    before = [
        call if call.complete is not None and call.complete < end else replace(call, complete=None)
        for call in drawn
        if call.invoke < end
    ]
    assert all_orders.linearizable(
        REGISTER, [call for call in before if call.complete or call.action.kind != "observe"]
    )


@examples.up_to(1_200)
@given(calls(9))
def test_a_proof_proves(drawn: list[Call]) -> None:
    """The operations shown to a person would not be illegal by themselves."""
    found = search(REGISTER, drawn, NO_LIMITS)
    if found.result != "no":
        return
    proof = shrunk(REGISTER, subjects(drawn), found, NO_LIMITS)
    assert not all_orders.linearizable(
        replace(REGISTER, initial=proof.start), [s.call for s in proof.subjects]
    )
    assert proof.failing in proof.subjects
    assert len(proof.subjects) <= len(drawn)


@examples.up_to(1_200)
@given(calls())
def test_quiet_states_are_the_only_ones(drawn: list[Call]) -> None:
    """A proof would begin in a state that another order of the operations before it does not lead to."""
    for event, state in search(REGISTER, drawn, NO_LIMITS).quiet.items():
        before = [call for call in drawn if call.invoke <= event]
        for other in (None, 1, 2, 3):
            ends_there = [*before, Call(read(other), event + 1, event + 2)]
            crashed = any(call.complete is None for call in before)
            if other != state and not crashed:
                assert not all_orders.linearizable(REGISTER, ends_there)


def test_unread_crashed_write_explains_a_mismatch() -> None:
    """A crashed write that nobody reads was left out, although a failed compare-and-set may have seen it."""
    history = [Call(write(1), 0, 1), Call(write(2), 2, None), Call(is_not(1), 3, 4), Call(write(3), 5, 6)]
    assert search(REGISTER, history, NO_LIMITS).result == "yes"
    assert search(REGISTER, [history[0], *history[2:]], NO_LIMITS).result == "no"


def test_sixty_crashed_writes_cost_little() -> None:
    """A key whose owner was cut off while sixty writes were sent to it would be undecidable."""
    crashed = [Call(write(100 + k), 2 + k, None) for k in range(60)]
    after = [Call(read(100 + 7 * k), 1000 + 2 * k, 1001 + 2 * k) for k in range(8)]
    history = [Call(write(1), 0, 1), *crashed, *after]
    found = search(REGISTER, history, Limits(configurations=1_000))
    assert found.result == "yes"
    back = [*history, Call(read(100), 2000, 2001)]
    found = search(REGISTER, back, Limits(configurations=1_000))
    assert (found.result, found.failing) == ("no", len(back) - 1)


def test_twenty_concurrent_writers_cost_little() -> None:
    """A run with as many clients on one key would be undecidable."""
    chance = random.Random(3)
    history = simulated(chance, operations=1_000, clients=20)
    found = search(REGISTER, history, Limits(configurations=20_000))
    assert found.result == "yes"


def simulated(chance: random.Random, operations: int, clients: int) -> list[Call]:
    """What clients of one true register saw, each value written once, one operation in twenty never answered."""
    free_at = [0.0] * clients
    spans = []
    for _ in range(operations):
        client = min(range(clients), key=free_at.__getitem__)
        start = free_at[client] + chance.random()
        free_at[client] = start + 0.5 + 5 * chance.random()
        spans.append((start, free_at[client]))
    points = sorted((start + (end - start) * chance.random(), k) for k, (start, end) in enumerate(spans))
    actions: dict[int, Action] = {}
    state: State = None
    for _, k in points:
        choice = chance.random()
        if choice < 0.45:
            actions[k] = read(state)
        elif choice < 0.8:
            state = k
            actions[k] = write(k)
        else:
            old = state if chance.random() < 0.5 else 0
            actions[k] = cas(old, k) if old == state else is_not(old)
            state = k if old == state else state
    crashed = {k for k in actions if actions[k].kind != "observe" and chance.random() < 0.05}
    moments = sorted(
        [(start, k, 0) for k, (start, _) in enumerate(spans)]
        + [(end, k, 1) for k, (_, end) in enumerate(spans) if k not in crashed]
    )
    index = {(k, which): event for event, (_, k, which) in enumerate(moments)}
    return [Call(actions[k], index[k, 0], index.get((k, 1))) for k in range(operations)]


def test_memory_limit_gives_unknown() -> None:
    """A search that explodes would eat the machine, or pass for a valid history."""
    history = [Call(write(k), k, None) for k in range(40)]
    history += [Call(is_not(None), 100 + 2 * k, 101 + 2 * k) for k in range(3)]
    found = search(REGISTER, history, Limits(configurations=10))
    assert found.result == "unknown"
    assert "configurations" in found.reason


def test_time_limit_is_honoured_inside_a_search() -> None:
    """A check asked to take a minute would take an hour."""
    ticks = iter(range(10**9))
    history = simulated(random.Random(5), operations=3_000, clients=8)
    with (
        within(limits.Limits(2.0), clock=lambda: next(ticks)),
        pytest.raises(OutOfTime, match="the time limit of 2 s"),
    ):
        search(REGISTER, history, NO_LIMITS)


@pytest.mark.parametrize("operations", [600, pytest.param(3_000, marks=pytest.mark.long)])
def test_a_search_that_did_all_its_steps_says_so(operations: int) -> None:
    """A search would go on for as long as the machine lets it, and end elsewhere on a busy one."""
    history = simulated(random.Random(5), operations=operations, clients=8)
    whole = search(REGISTER, history, NO_LIMITS)
    assert (whole.result, whole.steps > 30 * operations) == ("yes", True)
    assert search(REGISTER, history, Limits(steps=whole.steps)).result == "yes"
    found = search(REGISTER, history, Limits(steps=whole.steps - 1))
    assert found.result == "unknown"
    assert found.reason == f"gave up after {whole.steps - 1:,} steps (--budget)"
