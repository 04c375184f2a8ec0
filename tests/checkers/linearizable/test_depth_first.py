"""An order that is met by trying is one, and histories of many clients are decided."""

from __future__ import annotations

import random

import pytest

from checkers import linearizable
from checkers.history import Event, Header, History
from checkers.linearizable import depth_first
from checkers.linearizable.checker import _subjects
from checkers.linearizable.models import ILLEGAL, Action
from checkers.linearizable.search import Call, Limits, search
from checkers.linearizable.table import MODELS
from tests.checkers.brute import tiny_objects
from tests.checkers.brute.histories import history_of

NAMES = ("stack", "priority-queue", "unordered-queue", "queue")


def is_an_order(name: str, calls: list[Call], order: list[int]) -> bool:
    """Whether the order has each call that returned, once, keeps real time, and is allowed."""
    state, latest = MODELS[name]().initial, -1.0
    for place in order:
        complete = calls[place].complete
        if complete is not None and complete < latest:
            return False
        latest = max(latest, calls[place].invoke)
        after = MODELS[name]().step(state, calls[place].action)
        if after is ILLEGAL:
            return False
        state = after
    returned = {place for place, call in enumerate(calls) if call.complete is not None}
    return returned <= set(order) and len(set(order)) == len(order)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_met_is_an_order_and_every_short_one_is_met(name: str) -> None:
    """If it failed, a wrong stack would be called right."""
    met = 0
    for seed in range(400):
        history = history_of(tiny_objects.drawn(seed, model=name))
        for key in {each.key for each in history.operations}:
            operations = [each for each in history.operations if each.key == key]
            calls = [subject.call for subject in _subjects(MODELS[name](), operations)]
            order = depth_first.find(MODELS[name](), calls, Limits())
            assert (order is not None) == (search(MODELS[name](), calls, Limits()).result == "yes"), seed
            if order is not None:
                met += 1
                assert is_an_order(name, calls, order), seed
    assert met > 100


def at_once(chance: random.Random, name: str, count: int, clients: int) -> list[Call]:
    """Calls of clients that each wait for an answer of a right object; one in fifty gets none."""
    model, puts = MODELS[name](), {"stack": "push", "priority-queue": "insert"}.get(name, "enqueue")
    takes = {"stack": "pop", "priority-queue": "poll"}.get(name, "dequeue")
    inside: list[int] = []
    running: dict[int, tuple[int, Action | None]] = {}
    calls: list[Call] = []
    moment = 0
    while count or running:
        client = chance.randrange(clients)
        moment += 1
        if client not in running:
            if count:
                count -= 1
                running[client] = moment, None
        elif (action := running[client][1]) is None:
            if chance.random() < 0.5:
                inside.append(moment)
                action = Action("update", puts, (moment,))
            elif not inside:
                action = Action("observe", "empty", ())
            else:
                if name == "queue":
                    inside.sort(reverse=True)
                else:
                    inside.sort(key=lambda each: chance.random() if name == "unordered-queue" else each)
                action = Action("update", takes, (inside.pop(),))
            running[client] = running[client][0], action
        else:
            began, _ = running.pop(client)
            lost = chance.random() < 0.02
            action = Action("update", "take", ()) if lost and action.word == takes else action
            calls.append(Call(action, began, None if lost else moment))
    assert model.name == name
    return sorted(calls, key=lambda call: call.invoke)


@pytest.mark.parametrize(("name", "least"), [("stack", 15), ("priority-queue", 20), ("unordered-queue", 20)])
def test_a_history_of_many_clients_has_its_order(name: str, least: int) -> None:
    """If it failed, a right stack of a hundred operations would be undecided, after a minute."""
    met = 0
    for seed in range(20):
        calls = at_once(random.Random(seed), name, 100, 6)
        order = depth_first.find(MODELS[name](), calls, Limits())
        assert order is None or is_an_order(name, calls, order), seed
        met += order is not None
    assert met >= least


def test_pushes_at_once_are_no_explosion() -> None:
    """If it failed, twelve pushes that run together would take all memory: their orders are 479 million. One element
    is pushed twice, so no monitor decides."""

    def event(place: int, kind: str, client: int) -> Event:
        f, value = ("pop", None if kind == "invoke" else 7) if client == 12 else ("push", client % 11)
        return Event(index=place, time_ns=place, type=kind, process=client, f=f, value=value)  # type: ignore[arg-type]

    lines = [(kind, client) for kind in ("invoke", "ok") for client in range(12)] + [
        ("invoke", 12),
        ("ok", 12),
    ]
    history = History.of(Header(), [event(place, *line) for place, line in enumerate(lines)])
    verdict = linearizable.check(history, model="stack")
    assert (verdict.result, verdict.details["decided_by"]) == ("valid", {"depth first": 1})
