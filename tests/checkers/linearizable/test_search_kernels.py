"""The compiled search where other tests do not reach: tables that are full, rows that are many, the quick way alone."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy
import pytest

from checkers.linearizable import forward, layout_kernels, search, search_kernels
from checkers.linearizable.models import ILLEGAL, Action, Register
from checkers.linearizable.order import placed
from checkers.linearizable.search import Call, Limits
from checkers.linearizable.search_kernels import NEVER, OVERWRITE, REFUSE, UPDATE
from tests.checkers.linearizable.test_algorithms import replays

REGISTER = Register(initial=0)
NO_LIMITS = Limits()


def write(value: int) -> Action:
    return Action("overwrite", "write", (value,))


def read(value: int) -> Action:
    return Action("observe", "read", (value,))


def cas(old: int, new: int) -> Action:
    return Action("update", "cas", (old, new))


def is_not(value: int) -> Action:
    return Action("observe", "is-not", (value,))


def crowded(chance: random.Random) -> list[Call]:
    """Some dozen calls on three values, half of them at once, a third of the writes without an answer.

    Answers are those of a register at a moment within each call, but for a few that are drawn.
    """
    values = range(1, 4)
    spans = []
    for _ in range(chance.randint(6, 14)):
        begun = chance.random()
        spans.append((begun, begun + chance.choice((0.05, 0.2, 0.5)), chance.random() < 0.33))
    actions: dict[int, Action] = {}
    state = 0
    moments = sorted(
        (begun + chance.random() * (over - begun), place) for place, (begun, over, _) in enumerate(spans)
    )
    for _, place in moments:
        kind, old, new = chance.random(), chance.choice((0, *values)), chance.choice(values)
        action = write(new) if kind < 0.35 else read(old)
        if kind > 0.7 and old != new:
            action = cas(old, new)
        elif kind > 0.6:
            action = is_not(old)
        if REGISTER.step(state, action) is ILLEGAL and chance.random() < 0.9:
            action = read(state)
        after = REGISTER.step(state, action)
        state = state if after is ILLEGAL else int(str(after))
        actions[place] = action
    events = sorted(
        [(begun, place, False) for place, (begun, _, _) in enumerate(spans)]
        + [(over, place, True) for place, (_, over, crashed) in enumerate(spans) if not crashed]
    )
    at = {(place, ends): event for event, (_, place, ends) in enumerate(events)}
    return [Call(actions[place], at[place, False], at.get((place, True))) for place in range(len(spans))]


def histories(seed: int, count: int) -> Iterator[list[Call]]:
    chance = random.Random(seed)
    for _ in range(count):
        yield crowded(chance)


def agree(seed: int, count: int) -> None:
    """The compiled search and the plain one say the same, and a yes has an order."""
    seen = set()
    for calls in histories(seed, count):
        plain, compiled = (way.search(REGISTER, calls, NO_LIMITS) for way in (search, forward))
        assert (compiled.result, compiled.failing) == (plain.result, plain.failing), calls
        if compiled.log is not None:
            assert replays(REGISTER, calls, placed(REGISTER, calls, compiled.log, 0)), calls
        seen.add(plain.result)
    assert seen == {"yes", "no"}


@pytest.mark.parametrize(
    ("calls", "result"),
    [
        pytest.param(
            [
                Call(write(3), 0, 1),
                Call(write(3), 2, None),
                Call(cas(3, 1), 3, 5),
                Call(write(1), 4, 6),
                Call(cas(3, 1), 7, 8),
            ],
            "yes",
            id="what has used more is not better: the crashed write is needed at the end",
        ),
        pytest.param(
            [Call(cas(3, 1), 0, None), Call(write(3), 1, 4), Call(read(1), 2, 3)],
            "yes",
            id="a write helps a crashed compare-and-set",
        ),
        pytest.param(
            [
                Call(cas(3, 2), 0, 2),
                Call(write(3), 1, None),
                Call(cas(3, 2), 3, 4),
                Call(write(3), 5, None),
                Call(write(1), 6, 7),
                Call(is_not(2), 8, 9),
            ],
            "no",
            id="of two equal crashed writes the second one had not been invoked",
        ),
        pytest.param(
            [
                Call(write(2), 0, None),
                Call(is_not(0), 1, 2),
                Call(write(1), 3, 4),
                Call(is_not(2), 5, 6),
            ],
            "yes",
            id="a refused compare sees a crashed write, the last one is of its own value",
        ),
        pytest.param(
            [
                Call(is_not(2), 5, 6),
                Call(write(1), 3, 4),
                Call(is_not(0), 1, 2),
                Call(write(2), 0, None),
            ],
            "yes",
            id="the same, in a different order",
        ),
        pytest.param(
            [Call(write(2), 0, None), Call(read(1), 1, 3), Call(cas(2, 1), 2, None)],
            "yes",
            id="a crashed compare-and-set sees a crashed write",
        ),
    ],
)
def test_by_hand(calls: list[Call], result: str) -> None:
    """If this fails, the compiled search raises a false alarm, or misses an anomaly."""
    assert forward.search(REGISTER, calls, NO_LIMITS).result == result
    assert search.search(REGISTER, calls, NO_LIMITS).result == result


def open_reads(count: int) -> list[Call]:
    """Any of `count` crashed writes may be seen by its read, which runs on, before a write returns or after that.

    So there are two to the power of `count` configurations at that return, and none dominates another.
    """
    at = iter(range(1_000))
    crashed = [(write(value), next(at)) for value in range(1, count + 1)]
    asked = [(read(value), next(at)) for value in range(1, count + 1)]
    first, second = next(at), next(at)
    answered = [Call(write(101), first, next(at)), Call(write(102), second, next(at))]
    answered += [Call(read(value), next(at), next(at)) for value in (101, 102)]
    answered += [Call(action, begun, next(at)) for action, begun in asked]
    return [Call(action, begun, None) for action, begun in crashed] + answered


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_the_quick_way_on_crowded_histories(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, the quick way says yes where no order is: it is taken by long histories alone."""
    monkeypatch.setattr(forward, "WALKED", 0)
    agree(2, count)


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_all_configurations_in_one_bucket(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, two configurations whose hashes are equal are taken for one, and a yes becomes a no."""
    monkeypatch.setattr(forward, "_heads", lambda size: numpy.full((2, 1, 2), -1, dtype=numpy.int64))
    agree(3, count)


def test_rows_that_do_not_fit() -> None:
    """If this fails, the event at which rows are too many begins again with what was left of the first time."""
    calls = open_reads(6)
    plain, compiled = (way.search(REGISTER, calls, NO_LIMITS) for way in (search, forward))
    assert compiled.configurations > 64 + 4 * (1 + 2 * 7), "they fit"
    assert (compiled.result, compiled.failing) == (plain.result, plain.failing)


def test_more_alternatives_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, the quick way never ends: it looks for a free place in a full table."""
    monkeypatch.setattr(forward, "WALKED", 0)
    monkeypatch.setattr(forward, "KNOWN", 8)
    monkeypatch.setattr(forward, "load", lambda kernels: kernels)
    monkeypatch.setattr(search_kernels, "ALTERNATIVES_MAX", 4)
    calls = open_reads(4)
    assert (
        forward.search(REGISTER, calls, NO_LIMITS).result == search.search(REGISTER, calls, NO_LIMITS).result
    )


def test_the_alternatives_of_one_event_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, listing what could be at one event takes minutes, past every limit of steps and of time."""
    monkeypatch.setattr(forward, "WALKED", 0)
    monkeypatch.setattr(forward, "load", lambda kernels: kernels)
    monkeypatch.setattr(search_kernels, "ALTERNATIVE_STEPS", 100)
    found = forward.search(REGISTER, open_reads(6), Limits(steps=1_000))
    assert (found.result, found.steps < 3_000) == ("unknown", True), found


def test_which_values_are_asked_about_and_until_when() -> None:
    """If it failed, a crashed write would be given up while a refused compare, or a crashed update, could see it."""
    chance = random.Random(9)
    for _ in range(300):
        count, values = chance.randint(1, 7), chance.randint(1, 4)
        kind = numpy.array([chance.randrange(4) for _ in range(count)])
        old, new = (numpy.array([chance.randrange(values) for _ in range(count)]) for _ in range(2))
        complete = numpy.array(chance.sample(range(1, 50), count))
        complete[[chance.random() < 0.3 for _ in range(count)]] = NEVER
        asked, last = numpy.zeros(values + 1, numpy.int64), numpy.full(values + 1, -1)
        layout_kernels.see(complete, kind, old, new, asked, last)
        calls = list(zip(complete.tolist(), kind.tolist(), old.tolist(), new.tolist(), strict=True))
        asks = {at for ended, what, at, _ in calls if what == UPDATE or (what < OVERWRITE and ended < NEVER)}
        assert set(numpy.flatnonzero(asked).tolist()) == asks
        expected = [
            max(
                (
                    ended
                    for ended, what, at, _ in calls
                    if ended < NEVER
                    and what != OVERWRITE
                    and (at != value if what == REFUSE else at == value)
                ),
                default=-1,
            )
            for value in range(values + 1)
        ]
        for _ in calls:  # a crashed update asks for as long as some call asks about what it leaves
            for ended, what, at, left in calls:
                if ended >= NEVER and what == UPDATE:
                    expected[at] = max(expected[at], expected[left if left in asks else values])
        assert last.tolist() == expected


def test_updates_have_one_number_only_if_they_are_equal() -> None:
    """If it failed, one of two crashed updates would stand for the other: a history be judged that did not occur."""
    chance = random.Random(10)
    for _ in range(20):
        pairs = [(chance.randrange(40), chance.randrange(40)) for _ in range(60)]
        old, new = numpy.array(pairs).T
        ops = numpy.zeros((60, search_kernels.OPS), numpy.int64)
        table = numpy.full((122, 3), -1)
        kind, asked = numpy.full(60, UPDATE), numpy.ones(41, numpy.int64)
        count = layout_kernels.number(numpy.full(60, NEVER), kind, old, new, asked, ops, table, 41)
        numbers: dict[tuple[int, int], int] = {}
        assert ops[:, layout_kernels.ACTION].tolist() == [
            numbers.setdefault(pair, 41 + len(numbers)) for pair in pairs
        ]
        assert count == 41 + len(numbers)
