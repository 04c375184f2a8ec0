"""Texts and lists that grow by appends, as a register: what a read shows tells in which state each append took place.

If what a read shows can be made of a put (or of nothing) and appends in one way only, it names the appends that made
it, and what stood there before each of them. So such an append is a compare-and-set from the one state to the other. An
append that no read shows leaves a state which nothing shows until the next put: it is a write of something that is
never read. Reads and puts are those of a register, and the search of registers decides. Where several calls append the
same, each way in which they can share what is shown is asked for: an answer is no if all are.

| what reads show | the answer |
|---|---|
| something that can be made in two ways, or that equal appends can share in many | None: ask another search |
| something that cannot be made; an append more often than it was asked for | no |
| anything else | that of the register |

A no needs the call that cannot return. Later reads tell more about earlier appends, so a register's search may stop too
early: it is the last call of the shortest prefix with the answer no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import product
from math import prod
from typing import Any

from checkers.limits import look
from checkers.linearizable.models import Action, Model, Register
from checkers.linearizable.order import placed
from checkers.linearizable.search import Call, Found, Limits

ALGORITHM = "appends"
INITIAL = 0
"""The state before everything."""
READS = ("get", "read")
SHARED_MOST = 256
"""In so many ways equal appends may share what is shown."""
Decide = Callable[[Model, Sequence[Call], Limits], Found]
Calls = Sequence[Call]
Change = tuple[int, int]
"""The state before and behind an append."""


class _Impossible(Exception):
    """Reads show what was not appended."""


class _Ambiguous(Exception):
    """What reads show can have come about in several ways."""


def decide(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Found | None:
    """Whether the calls have an order, from an empty state; None if that is no matter of this module.

    `as_register`: decides the calls of a register. Raises OutOfTime.
    """
    if model.name not in ("kv", "list") or model.initial not in ("", ()):
        return None
    try:
        found = _decided(model, calls, limits, as_register)
        return _first_no(model, calls, limits, as_register) if found.result == "no" else found
    except _Ambiguous:
        return None


def _decided(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Found:
    """Raises _Ambiguous, also if the register could not be decided."""
    steps, most = 0, 1
    try:
        for each in _as_registers(model, calls):
            found = as_register(Register(initial=INITIAL), each, _left(limits, steps))
            steps, most = steps + found.steps, max(most, found.configurations)
            if found.result == "unknown":
                raise _Ambiguous
            if found.result == "yes":
                order = found.order
                if order is None:
                    assert found.log is not None
                    order = placed(Register(initial=INITIAL), each, found.log, INITIAL)
                return Found("yes", configurations=most, order=order, algorithm=ALGORITHM, steps=steps)
    except _Impossible:
        pass
    return Found("no", configurations=most, algorithm=ALGORITHM, steps=steps)


def _first_no(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Found:
    """The same no with the first call that cannot return. Raises _Ambiguous."""
    returns = sorted((call.complete, place) for place, call in enumerate(calls) if call.complete is not None)
    possible, wrong, steps, most = -1, len(returns) - 1, 0, 1
    while wrong - possible > 1:
        middle = (possible + wrong) // 2
        found = _decided(model, _until(calls, returns[middle][0]), _left(limits, steps), as_register)
        steps, most = steps + found.steps, max(most, found.configurations)
        possible, wrong = (possible, middle) if found.result == "no" else (middle, wrong)
    return Found("no", returns[wrong][1], most, algorithm=ALGORITHM, steps=steps)


def _left(limits: Limits, steps: int) -> Limits:
    """The limits after so many steps, which all ways share. Raises _Ambiguous if no step is left."""
    if steps >= limits.steps:
        raise _Ambiguous
    return replace(limits, steps=limits.steps - steps)


def _until(calls: Calls, event: int) -> list[Call]:
    """The calls as they were known at that event; a read without an answer says nothing."""
    known = []
    for call in calls:
        if call.complete is not None and call.complete <= event:
            known.append(call)
        elif call.invoke <= event and call.action.word not in READS:
            known.append(replace(call, complete=None))
    return known


# ---- what reads show


@dataclass(slots=True)
class _States:
    """The states that reads show, by number, and between which of them something was appended."""

    lengths: dict[int, set[Any]]
    """All that was appended, by its length."""
    puts: set[Any]
    """All that was put, but for nothing."""
    numbers: dict[Any, int]
    """By what is there."""
    changes: dict[Any, dict[Change, bool]] = field(default_factory=dict)
    """By what was appended: whether nothing but an append can have made this change."""
    _shown: set[Any] = field(default_factory=set)

    def number(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def shown(self, value: Any) -> int:
        """The state in which a read shows this value. Raises _Impossible and _Ambiguous."""
        if value in self._shown:
            return self.numbers[value]
        self._shown.add(value)
        put = {len(text) for text in self.puts if value[: len(text)] == text}
        reached, last = self._made_of(value, {0} | put)
        end, is_sure = len(value), True
        if end not in reached:
            raise _Impossible
        while True:
            is_sure &= end not in put
            begins = last.get(end, ())
            if len(begins) > 1:
                raise _Ambiguous
            if not begins:
                return self.number(value)
            (begin,) = begins
            change = self.number(value[:begin]), self.number(value[:end])
            known = self.changes.setdefault(value[begin:end], {})
            known[change] = known.get(change, False) or is_sure
            end = begin

    def _made_of(self, value: Any, begins: set[int]) -> tuple[set[int], dict[int, list[int]]]:
        """The positions up to which a value can be made, from these on, and where the parts that end there begin."""
        look()
        reached = set(begins)
        last: dict[int, list[int]] = {}
        todo = list(reached)
        heapify(todo)
        while todo:
            begin = heappop(todo)
            for length, parts in self.lengths.items():
                end = begin + length
                if end > len(value) or value[begin:end] not in parts:
                    continue
                last.setdefault(end, []).append(begin)
                if end not in reached:
                    reached.add(end)
                    heappush(todo, end)
        return reached, last


def _as_registers(model: Model, calls: Calls) -> Iterator[list[Call]]:
    """The calls on a register that holds numbers of states, in each way in which equal appends can share the changes.

    Raises _Impossible, _Ambiguous and OutOfTime.
    """
    appends: dict[Any, list[int]] = {}
    puts: set[Any] = set()
    for place, call in enumerate(calls):
        value: Any = call.action.values[0]
        if call.action.word == "append":
            appends.setdefault((value,) if model.name == "list" else value, []).append(place)
        elif call.action.word == "put" and value:
            puts.add(value)
    lengths: dict[int, set[Any]] = {}
    for part in appends:
        lengths.setdefault(len(part), set()).add(part)
    states = _States(lengths, puts, {model.initial: INITIAL})
    made = [_plain(call, states) for call in calls]
    shared = [_shares(appends[part], changes) for part, changes in states.changes.items()]
    if not all(shared):
        raise _Impossible
    if prod(map(len, shared)) > SHARED_MOST:
        raise _Ambiguous
    for number, place in enumerate(place for places in appends.values() for place in places):
        made[place] = Action("overwrite", "write", (len(states.numbers) + number,))
    for chosen in product(*shared):
        actions = list(made)
        for place, change in (each for pairs in chosen for each in pairs):
            actions[place] = Action("update", "cas", change)
        yield [replace(call, action=action) for call, action in zip(calls, actions, strict=True)]


def _shares(places: Sequence[int], changes: dict[Change, bool]) -> list[list[tuple[int, Change]]]:
    """The ways in which equal appends, by the places of their calls, can make all changes that are sure, and others.

    A put may bring a state back, so several may make the same change. Those in which most make one of their own come
    first. Raises _Ambiguous if there are too many.
    """
    sure = {change for change, is_sure in changes.items() if is_sure}
    if (len(changes) + 1) ** len(places) > SHARED_MOST**2:
        raise _Ambiguous
    ways = [each for each in product((*changes, None), repeat=len(places)) if sure <= set(each)]
    ways.sort(key=lambda each: -len(set(each) - {None}))
    return [
        [(place, change) for place, change in zip(places, each, strict=True) if change is not None]
        for each in ways
    ]


def _plain(call: Call, states: _States) -> Action:
    """A put as a write of the register, a read as a read; an append stays as it is."""
    value: Any = call.action.values[0]
    match call.action.word:
        case "put":
            return Action("overwrite", "write", (states.number(value),))
        case "append":
            return call.action
    return Action("observe", "read", (states.shown(value),))
