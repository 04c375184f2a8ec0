"""Texts and lists that grow by appends, as a register: reads show in which state each append took place.

If a shown value can be made of a put (or of nothing) and appends in one way only, it names its appends, and the value
before each of them. So such an append is a compare-and-set from the one state to the other. An append that no read
shows leaves a state that no read shows until the next put: it is a write of a value that is never read. Reads and puts
are those of a register, and the search of registers decides. Where several calls append the same, the search runs for
each way in which they can share the shown changes: the answer is no if all these answers are.

| reads show | the answer |
|---|---|
| a value that can be made in two ways, or that equal appends can share in many | None: ask another search |
| a value that cannot be made; an append more often than clients asked for it | no |
| anything else | that of the register |

A no names the call that cannot return. Later reads say more about earlier appends, so a register's search may stop too
early: the failing call is the last one of the shortest prefix with the answer no.
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
from checkers.linearizable.search import Call, Decision, Limits

ALGORITHM = "appends"
INITIAL = 0
"""The state before everything."""
READS = ("get", "read")
SHARED_MOST = 256
"""In so many ways equal appends may share the shown changes."""
Decide = Callable[[Model, Sequence[Call], Limits], Decision]
Calls = Sequence[Call]
Change = tuple[int, int]
"""The state before and behind an append."""


class _Impossible(Exception):
    """Reads show a value that appends cannot have made."""


class _Ambiguous(Exception):
    """Appends can have made a shown value in several ways."""


def decide(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Decision | None:
    """Whether the calls have an order from an empty state; None if this module cannot decide.

    `as_register`: decides the calls of a register. Raises OutOfTime.
    """
    if model.name not in ("kv", "list") or model.initial not in ("", ()):
        return None
    try:
        decision = _decided(model, calls, limits, as_register)
        return _first_no(model, calls, limits, as_register) if decision.result == "no" else decision
    except _Ambiguous:
        return None


def _decided(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Decision:
    """Raises _Ambiguous, also if the register could not be decided."""
    steps, most = 0, 1
    try:
        for register_calls in _as_registers(model, calls):
            decision = as_register(Register(initial=INITIAL), register_calls, _left(limits, steps))
            steps, most = steps + decision.steps, max(most, decision.configurations)
            if decision.result == "unknown":
                raise _Ambiguous
            if decision.result == "yes":
                order = decision.order
                if order is None:
                    assert decision.log is not None
                    order = placed(Register(initial=INITIAL), register_calls, decision.log, INITIAL)
                return Decision("yes", configurations=most, order=order, algorithm=ALGORITHM, steps=steps)
    except _Impossible:
        pass
    return Decision("no", configurations=most, algorithm=ALGORITHM, steps=steps)


def _first_no(model: Model, calls: Calls, limits: Limits, as_register: Decide) -> Decision:
    """The same no with the first call that cannot return. Raises _Ambiguous."""
    returns = sorted((call.complete, place) for place, call in enumerate(calls) if call.complete is not None)
    possible, wrong, steps, most = -1, len(returns) - 1, 0, 1
    while wrong - possible > 1:
        middle = (possible + wrong) // 2
        decision = _decided(model, _until(calls, returns[middle][0]), _left(limits, steps), as_register)
        steps, most = steps + decision.steps, max(most, decision.configurations)
        possible, wrong = (possible, middle) if decision.result == "no" else (middle, wrong)
    return Decision("no", returns[wrong][1], most, algorithm=ALGORITHM, steps=steps)


def _left(limits: Limits, steps: int) -> Limits:
    """The limits less the steps done: all ways share them. Raises _Ambiguous if no step is left."""
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
    """The states that reads show, by number, and the changes that appends made between them."""

    lengths: dict[int, set[Any]]
    """The appended parts, by length."""
    puts: set[Any]
    """The values of puts, without the empty one."""
    numbers: dict[Any, int]
    """By value."""
    changes: dict[Any, dict[Change, bool]] = field(default_factory=dict)
    """By appended part: whether only an append can have made this change."""
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
            # A position that parts reach in two ways does not say which appends made it.
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
        for place, change in (pair for pairs in chosen for pair in pairs):
            actions[place] = Action("update", "cas", change)
        yield [replace(call, action=action) for call, action in zip(calls, actions, strict=True)]


def _shares(places: Sequence[int], changes: dict[Change, bool]) -> list[list[tuple[int, Change]]]:
    """The ways in which equal appends, by the places of their calls, can make all sure changes, and further ones.

    A put may bring a state back, so several appends may make the same change. Ways with the most different changes come
    first. Raises _Ambiguous if there are too many.
    """
    sure = {change for change, is_sure in changes.items() if is_sure}
    if (len(changes) + 1) ** len(places) > SHARED_MOST**2:
        raise _Ambiguous
    # A change that only an append can have made needs one. None: an append that no read shows.
    ways = [way for way in product((*changes, None), repeat=len(places)) if sure <= set(way)]
    ways.sort(key=lambda way: -len(set(way) - {None}))
    return [
        [(place, change) for place, change in zip(places, way, strict=True) if change is not None]
        for way in ways
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
