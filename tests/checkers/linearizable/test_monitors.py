"""Monitors of sets, queues and stacks against the search."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from checkers import linearizable
from checkers.history import Event, Header, History
from checkers.linearizable import decide, monitors, search
from checkers.linearizable.drains import DrainedQueue
from checkers.linearizable.models import Action
from checkers.linearizable.search import Call, Limits
from checkers.linearizable.table import MODELS
from checkers.proofs import verify
from checkers.proofs.verify import Terms
from tests import examples
from tests.checkers.linearizable.test_algorithms import replays

NAMES = ("set", "queue", "unordered-queue", "stack", "priority-queue")
WORDS = {"stack": ("push", "pop"), "priority-queue": ("insert", "poll")}


def calls_of(
    name: str,
    chance: random.Random,
    count: int,
    span: float,
    wrong: bool,
    crash: float = 0.12,
    values: int = 0,
) -> list[Call]:
    """Calls on a true object, some crashed; if `wrong`, up to two answers are not what it was.

    `values`: how many different elements there are; 0: each is put in once.
    """
    put, take = WORDS.get(name, ("enqueue", "dequeue"))
    numbers: Sequence[int] = range(1, count + 1)
    if name == "priority-queue":
        numbers = chance.sample(numbers, count)
    spans = [(begun := chance.uniform(0, span), begun + chance.uniform(0.1, 6)) for _ in range(count)]
    points = sorted((chance.uniform(*each), place) for place, each in enumerate(spans))
    done: list[tuple[Action, bool] | None] = [None] * count
    inside: list[int] = []
    for _, place in points:
        if name == "unordered-queue":
            chance.shuffle(inside)
        if name == "priority-queue":
            inside.sort()
        element = chance.randint(1, values) if values else numbers[place]
        if name == "set":
            done[place] = _set(chance, inside, element, crash)
        else:
            done[place] = _contained(chance, inside, element, crash, (put, take))
    for _ in range(chance.randint(1, 2) if wrong and count else 0):
        place = chance.randrange(count)
        other = _other(done[place], chance, values or count, take)
        done[place] = (other, False) if other is not None else done[place]
    moments = sorted((moment, place) for place, each in enumerate(spans) for moment in each)
    events: list[list[int]] = [[] for _ in spans]
    for rank, (_, place) in enumerate(moments):
        events[place].append(rank)
    calls = []
    for (invoke, complete), each in zip(events, done, strict=True):
        if each is not None:
            calls.append(Call(each[0], invoke, None if each[1] else complete))
    return sorted(calls, key=lambda call: call.invoke)


def _set(chance: random.Random, inside: list[int], new: int, crash: float) -> tuple[Action, bool] | None:
    crashed = chance.random() < crash
    if chance.random() < 0.5:
        if not crashed or chance.random() < 0.5:
            inside.append(new)
        return Action("update", "add", (new,)), crashed
    return None if crashed else (Action("observe", "read", (frozenset(inside),)), False)


def _contained(
    chance: random.Random, inside: list[int], new: int, crash: float, words: tuple[str, str]
) -> tuple[Action, bool]:
    crashed = chance.random() < crash
    if chance.random() < 0.5:
        if not crashed or chance.random() < 0.5:
            inside.append(new)
        return Action("update", words[0], (new,)), crashed
    if not inside:
        return Action("observe", "empty", ()), False
    element = inside.pop(0 if words[1] == "dequeue" else -1)
    return Action("update", words[1], (element,)), crashed and chance.random() < 0.2


def _other(done: tuple[Action, bool] | None, chance: random.Random, count: int, take: str) -> Action | None:
    word = "" if done is None else done[0].word
    if word == "read":
        shown: Any = done[0].values[0] if done is not None else frozenset()
        return Action("observe", "read", (shown ^ {chance.randint(1, count)},))
    if word in (take, "empty"):
        taken = Action("update", take, (chance.randint(1, count),))
        return chance.choice((taken, Action("observe", "empty", ())))
    return None


@pytest.mark.parametrize("name", NAMES)
def test_monitor_and_search_agree(name: str) -> None:
    """If this fails, a set or a queue that loses, doubles or reorders passes, or a right one does not."""
    agree(name, examples.times(3_000), seed=3)


@pytest.mark.parametrize("name", NAMES)
def test_monitor_and_search_agree_on_elements_that_are_put_in_again(name: str) -> None:
    """If this fails, a second addition of an element hides what is wrong, or is taken for wrong."""
    agree(name, 500, seed=3, values=3)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_monitor_and_search_agree_at_length(name: str) -> None:
    """The same on many more."""
    agree(name, 20_000, seed=examples.tonight(1)[0])


def agree(name: str, count: int, seed: int, values: int = 0) -> None:
    chance = random.Random(seed)
    model = MODELS[name]()
    seen: Counter[str] = Counter()
    for _ in range(count):
        calls = calls_of(name, chance, chance.randint(0, 10), 15, chance.random() < 0.6, values=values)
        found, plain = monitors.decide(model, calls), search.search(model, calls, Limits())
        if found is None:
            seen["not asked"] += 1
            continue
        seen[found.result] += 1
        assert found.result == plain.result, calls
        assert found.failing == plain.failing or _later(calls, found.failing, plain.failing), calls
        assert found.order is None or replays(model, calls, list(found.order)), calls
    # A take without an answer took anything from an unordered queue: the search decides.
    left = count / (2 if values else 8 if name == "unordered-queue" else 20)
    assert seen["yes"] > count / 3 and seen["no"] > count / 20 and seen["not asked"] < left, seen


def _later(calls: list[Call], one: int | None, other: int | None) -> bool:
    """Of an element that came out twice, a later call may be named: what came before it has no order either."""
    out = [call.action.values for call in calls if call.action.word in ("dequeue", "pop", "poll")]
    assert one is not None and other is not None
    return len(set(out)) < len(out) and (calls[one].complete or 0) > (calls[other].complete or 0)


def drained_calls(chance: random.Random, count: int, span: float, wrong: bool) -> list[Call]:
    """Calls on a queue that is drained, each element by element at moments of its own; if `wrong`, some drains list
    what they took in another sequence, or less of it."""
    spans = [(begun := chance.uniform(0, span), begun + chance.uniform(0.1, 8)) for _ in range(count)]
    words = [chance.choice(("enqueue",) * 4 + ("dequeue", "dequeue", "drain")) for _ in spans]
    points = sorted(
        (chance.uniform(*spans[place]), place)
        for place, word in enumerate(words)
        for _ in range(chance.randint(1, 5) if word == "drain" else 1)
    )
    ends = {place: moment for moment, place in points}
    done: list[list[tuple[Action, bool]]] = [[] for _ in spans]
    taken: dict[int, list[int]] = {place: [] for place in range(count)}
    inside: list[int] = []
    for moment, place in points:
        if words[place] != "drain":
            crashed = chance.random() < 0.15
            if words[place] == "dequeue" and crashed:
                done[place].append((Action("update", "take", ()), True))
                inside = inside[chance.randint(0, 1) :]
            else:
                lost = crashed and chance.random() < 0.5
                action = _queued(words[place], inside, place, lost)
                if wrong and action.word == "dequeue" and chance.random() < 0.3:
                    action = Action("update", "dequeue", (chance.randrange(count),))
                done[place].append((action, crashed and words[place] == "enqueue"))
        elif moment < ends[place]:
            taken[place] += inside[:1]
            inside = inside[1:]
        else:
            listed, inside = taken[place] + inside, []
            if wrong and chance.random() < 0.4:
                listed = chance.sample(listed, chance.randint(max(0, len(listed) - 1), len(listed)))
            steps = [Action("update", "drained", (each, place, at)) for at, each in enumerate(listed)]
            steps.append(Action("observe", "emptied", (place, len(listed))))
            done[place] = [(step, False) for step in steps]
    moments = sorted((moment, place) for place, each in enumerate(spans) for moment in each)
    events: list[list[int]] = [[] for _ in spans]
    for rank, (_, place) in enumerate(moments):
        events[place].append(rank)
    calls = [
        Call(action, invoke, None if crashed else complete)
        for (invoke, complete), each in zip(events, done, strict=True)
        for action, crashed in each
    ]
    return sorted(calls, key=lambda call: call.invoke)


def _queued(word: str, inside: list[int], new: int, lost: bool) -> Action:
    if word == "enqueue":
        if not lost:
            inside.append(new)
        return Action("update", "enqueue", (new,))
    return Action("update", "dequeue", (inside.pop(0),)) if inside else Action("observe", "empty", ())


@pytest.mark.parametrize(
    ("count", "seed"), [(500, 3), pytest.param(20_000, examples.tonight(1)[0], marks=pytest.mark.nightly)]
)
def test_monitor_and_search_agree_on_drains(count: int, seed: int) -> None:
    """If this fails, a drain in a wrong sequence passes, or a right one does not."""
    chance = random.Random(seed)
    model = DrainedQueue()
    seen: Counter[str] = Counter()
    for _ in range(count):
        calls = drained_calls(
            chance, chance.randint(1, 11), chance.choice((5, 15, 30)), chance.random() < 0.5
        )
        found, plain = (
            monitors.decide(model, calls),
            search.search(model, calls, Limits(configurations=2_000)),
        )
        if found is None or plain.result == "unknown":
            seen["not asked"] += 1
            continue
        seen[found.result] += 1
        assert found.result == plain.result, calls
        assert found.order is None or replays(model, calls, list(found.order)), calls
        if found.failing is not None and plain.failing is not None:
            # The sequence of a drain is looked at only when it has returned.
            assert (calls[found.failing].complete or 0) >= (calls[plain.failing].complete or 0), calls
    assert seen["yes"] > count / 3 and seen["no"] > count / 20 and seen["not asked"] < count / 20, seen


@pytest.mark.parametrize("name", NAMES)
def test_a_long_history_is_decided_without_a_search(name: str) -> None:
    """If this fails, a set or queue of some thousand operations is undecidable again."""
    calls = calls_of(name, random.Random(1), 3_000, 3_000, wrong=False, crash=0.0)
    began_s = time.process_time()
    found = decide.decide(MODELS[name](), calls, Limits())
    assert (found.result, found.algorithm) == ("yes", "monitor")
    assert time.process_time() - began_s < 10.0


@pytest.mark.parametrize("model", NAMES[1:])
def test_an_element_that_comes_out_twice_is_proved_by_its_own_calls(model: str) -> None:
    """If this fails, somebody reads dozens of operations where three say it, and the verifier gives up on them."""

    def history(taken: Sequence[int]) -> History:
        put, take = WORDS.get(model, ("enqueue", "dequeue"))
        asked = [(put, each) for each in range(40)] + [(take, each) for each in taken]
        events = [
            Event(
                index=2 * place + ends, time_ns=place, type="ok" if ends else "invoke", process=0, f=f,
                value=value if ends or f == put else None,
            )
            for place, (f, value) in enumerate(asked)
            for ends in (0, 1)
        ]  # fmt: skip
        return History.of(Header(), events)

    terms = Terms(model=model)
    line = list(range(30) if "queue" in model and "priority" not in model else range(39, 9, -1))
    for wrong in ([*line, line[7]], [*line, 99]):
        verdict = linearizable.check(history(wrong), model=model)
        (proof,) = verdict.details["proofs"]
        assert (verdict.result, proof["kind"], len(proof["operations"])) == (
            "invalid", "element", 1 if wrong[-1] == 99 else 3,
        )  # fmt: skip
        assert verify.check(history(wrong), verdict, terms).holds
        forged = replace(verdict, details={**verdict.details, "proofs": [{**proof, "operations": [0, 80]}]})
        assert not verify.check(history(wrong), forged, terms).holds
    assert linearizable.check(history(line), model=model).result == "valid"


@pytest.mark.parametrize("clients", [3, 10, 30])
def test_a_queue_of_many_clients_is_decided_without_a_search(clients: int) -> None:
    """If this fails, a queue of a hundred operations is undecidable, because thirty clients use it at once."""
    for seed in range(60):
        chance = random.Random(seed)
        calls = calls_at_once(chance, 60, clients, crash=chance.choice((0.0, 0.02)))
        found = monitors.decide(DrainedQueue(), calls)
        assert found is not None and found.result == "yes", seed


def calls_at_once(chance: random.Random, count: int, clients: int, crash: float) -> list[Call]:
    """Calls of clients that each wait for an answer, in the order in which they began; a right queue answers."""
    inside: list[int] = []
    running: dict[int, tuple[str, int, Action | None]] = {}
    calls: list[Call] = []
    moment = 0
    while count or running:
        client = chance.randrange(clients)
        f, began, action = running.get(client, ("", 0, None))
        if not f and count:
            count, moment = count - 1, moment + 1
            running[client] = chance.choice(("enqueue", "dequeue")), moment, None
        elif f and action is None:
            if f == "enqueue":
                inside.append(began)
                action = Action("update", "enqueue", (began,))
            elif inside:
                action = Action("update", "dequeue", (inside.pop(0),))
            else:
                action = Action("observe", "empty", ())
            running[client] = f, began, action
        elif action is not None:
            del running[client]
            moment += 1
            crashed = chance.random() < crash
            if crashed and f == "dequeue":
                action = Action("update", "take", ())
            calls.append(Call(action, began, None if crashed else moment))
    return sorted(calls, key=lambda call: call.invoke)


def test_a_long_wrong_queue_is_explained_at_once() -> None:
    """If this fails, looking for a small proof takes all the time that was left, and finds none."""
    asked = [("enqueue", each) for each in range(1_500)] + [("dequeue", each) for each in range(1_500)]
    asked[-1] = ("dequeue", 3)
    events = [
        Event(
            index=2 * place + ends, time_ns=place, type="ok" if ends else "invoke", process=0, f=f, key="q", value=value
        )
        for place, (f, value) in enumerate(asked)
        for ends in (0, 1)
    ]  # fmt: skip
    began_s = time.process_time()
    verdict = linearizable.check(History.of(Header(), events), model="queue")
    assert (verdict.result, verdict.details["decided_by"]) == ("invalid", {"monitor": 1})
    assert verdict.witnesses[0].events[-1] == len(events) - 1
    assert time.process_time() - began_s < 15.0


def test_a_dequeue_without_an_answer_may_have_taken_what_a_later_one_returns() -> None:
    """If this fails, an enqueue is named as what is wrong, where the second dequeue of the same element is."""
    enqueued = [
        Call(Action("update", "enqueue", (value,)), began, ended)
        for value, began, ended in ((2, 0, 1), (3, 2, 3))
    ]
    lost = Call(Action("update", "take", ()), 4, None)
    third = Call(Action("update", "dequeue", (3,)), 5, 7)
    in_the_way = Call(Action("update", "enqueue", (6,)), 6, 9)
    second = Call(Action("update", "dequeue", (2,)), 8, 10)
    calls = [*enqueued, lost, third, in_the_way, second]
    found = monitors.decide(DrainedQueue(), calls)
    assert found is not None
    assert (found.result, found.failing) == ("no", calls.index(second))
    assert search.search(DrainedQueue(), calls, Limits()).failing == calls.index(second)


def counted(
    chance: random.Random,
    count: int,
    amounts: tuple[int, int],
    unanswered: float,
    wrong: float = 0.1,
    length: float = 15,
) -> list[Call]:
    """Calls on a true counter, but for one read in some."""
    spans = [(begun := chance.uniform(0, length), begun + chance.uniform(0.1, 6)) for _ in range(count)]
    total, actions = 0, {}
    for _, place in sorted((chance.uniform(*span), place) for place, span in enumerate(spans)):
        is_answered = chance.random() >= unanswered
        if chance.random() < 0.6:
            amount = chance.randint(*amounts)
            total += amount if is_answered or chance.random() < 0.5 else 0
            actions[place] = Action("update", "add", (amount,)), is_answered
        elif is_answered:
            more = chance.choice((-1, 1, 2)) if chance.random() < wrong else 0
            actions[place] = Action("observe", "read", (total + more,)), True
    moments = sorted(
        (moment, place, ends) for place, span in enumerate(spans) for ends, moment in enumerate(span)
    )
    ranks = {(place, ends): rank for rank, (_, place, ends) in enumerate(moments)}
    calls = [
        Call(action, ranks[place, 0], ranks[place, 1] if is_answered else None)
        for place, (action, is_answered) in actions.items()
    ]
    return sorted(calls, key=lambda call: call.invoke)


@pytest.mark.parametrize("amounts", [(-9, 9), (-999, 999), (0, 3), (1, 999)])
def test_counters_are_decided_as_the_search_decides_them(amounts: tuple[int, int]) -> None:
    """If this fails, a lost addition passes, or an unanswered one that took effect is taken for wrong."""
    chance, model, seen = random.Random(f"{amounts}"), MODELS["counter"](), Counter[str]()
    for _ in range(800):
        calls = counted(chance, chance.randint(0, 9), amounts, chance.choice((0, 0.3)))
        found, plain = monitors.decide(model, calls), search.search(model, calls, Limits())
        seen[found.result if found else f"left to the search: {plain.result}"] += 1
        assert found is None or (found.result, found.failing) == (plain.result, plain.failing), calls
        assert found is None or found.order is None or replays(model, calls, list(found.order)), calls
    assert seen["yes"] > 400 and seen["no"] > 40, seen


@pytest.mark.parametrize(("wrong", "result"), [(0, "yes"), (0.02, "no")])
def test_large_sums_of_many_clients_are_decided(wrong: float, result: str) -> None:
    """If this fails, some twenty additions beside each read are two million configurations."""
    for seed in range(3):
        calls = counted(random.Random(seed), 300, (0, 2**31), 0.02, wrong, length=50)
        found = monitors.decide(MODELS["counter"](), calls)
        assert found is not None and found.result == result, seed


@pytest.mark.parametrize(("wrong", "result"), [(0, "yes"), (1, "no")])
def test_unanswered_additions_are_no_explosion(wrong: int, result: str) -> None:
    """If this fails, 22 additions without an answer take all memory: they have four million sums."""
    chance = random.Random(4)
    amounts = [2 * chance.randint(1, 10**9) for _ in range(22)]
    calls = [Call(Action("update", "add", (amount,)), place, None) for place, amount in enumerate(amounts)]
    calls.append(Call(Action("observe", "read", (sum(amounts[::2]) + wrong,)), 22, 23))
    found = monitors.decide(MODELS["counter"](), calls)
    assert found is not None and found.result == result


def test_many_dequeues_without_an_answer_are_decided() -> None:
    """A queue in a long partition would end the check with a RecursionError."""
    count = 900
    put = [Call(Action("update", "enqueue", (at,)), 2 * at, 2 * at + 1) for at in range(count)]
    lost = [Call(Action("update", "take", ()), 2 * count + at, None) for at in range(count - 1)]
    last = [Call(Action("update", "dequeue", (count - 1,)), 4 * count, 4 * count + 1)]
    decision = monitors.decide(DrainedQueue(), [*put, *lost, *last])
    assert decision is not None and decision.result == "yes"
    assert decision.order is not None and len(decision.order) == 2 * count
