"""The partial orders of a few calls that have no whole order, and the values that a read could have returned.

A partial order is a sequence of calls that the model allows, in which every call that was over before another began
stands before that one. It is a dead end if no further call fits. Porcupine draws the longest partial order for each
call (Athalye, "Porcupine: a fast linearizability checker", 2017). So does this; in addition it says why each ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from checkers.linearizable.models import ILLEGAL, Action, Model, Register, State
from checkers.linearizable.search import Call, Limits, search

STEPS = 20_000
"""Of the walk through all partial orders: calls tried."""
CANDIDATES = 40
VALUE_LIMITS = Limits(configurations=2_000, steps=400_000)


@dataclass(frozen=True, slots=True)
class Partial:
    """Places of calls in their order, and the state after each. `refused`: calls that real time would allow next."""

    order: tuple[int, ...]
    states: tuple[State, ...]
    refused: tuple[int, ...]


def longest_orders(
    model: Model, calls: Sequence[Call], start: State, steps: int = STEPS
) -> tuple[Partial, ...] | None:
    """The longest dead ends, then for each call that none of these has the longest one with it.

    None if there are more partial orders than `steps` can walk through.
    """
    before = [sum(1 << place for place, other in enumerate(calls) if _is_over(other, call)) for call in calls]
    seen: set[tuple[int, State]] = {(0, start)}
    ends: list[Partial] = []
    open_: list[tuple[int, tuple[int, ...], tuple[State, ...]]] = [(0, (), ())]
    while open_:
        done, order, states = open_.pop()
        state = states[-1] if states else start
        refused, goes_on = [], False
        for place, call in enumerate(calls):
            # Real time: all that was over before it began stands in the order already.
            if done >> place & 1 or before[place] & ~done:
                continue
            steps -= 1
            if steps < 0:
                return None
            after = model.step(state, call.action)
            if after is ILLEGAL:
                refused.append(place)
                continue
            goes_on = True
            reached = (done | 1 << place, after)
            if reached not in seen:
                seen.add(reached)
                open_.append((reached[0], (*order, place), (*states, after)))
        if not goes_on:
            ends.append(Partial(order, states, tuple(refused)))
    return _chosen(ends, len(calls))


def _is_over(one: Call, other: Call) -> bool:
    return one.complete is not None and one.complete < other.invoke


def _chosen(ends: Iterable[Partial], calls: int) -> tuple[Partial, ...]:
    """One of several with the same calls and the same last state is enough."""
    different = {(frozenset(end.order), end.states[-1:]): end for end in ends}
    ordered = sorted(different.values(), key=lambda end: (-len(end.order), end.order))
    longest = [end for end in ordered if len(end.order) == len(ordered[0].order)]
    shown = {place for end in longest for place in end.order}
    for place in range(calls):
        end = next((end for end in ordered if place in end.order), None)
        if place not in shown and end is not None:
            longest.append(end)
            shown.update(end.order)
    return tuple(longest)


def possible_values(
    model: Register, calls: Sequence[Call], place: int, start: State
) -> tuple[State, ...] | None:
    """The values that the read at `place` could have returned: with each of them all calls have an order from `start`.

    They stand in the order of their writes' invocations. None if there are too many candidates, or a search met its
    limit.
    """
    read = calls[place]
    assert read.action.word == "read" and read.complete is not None
    begun = sorted((call for call in calls if call.invoke < read.complete), key=lambda call: call.invoke)
    written = (call.action.values[-1] for call in begun if call.action.kind != "observe")
    candidates = tuple(dict.fromkeys((start, *written)))
    if len(candidates) > CANDIDATES:
        return None
    possible = []
    for value in candidates:
        answered = replace(read, action=Action("observe", "read", (value,)))
        decision = search(model, [*calls[:place], answered, *calls[place + 1 :]], VALUE_LIMITS, (start,))
        if not decision.is_decided:
            return None
        if decision.result == "yes":
            possible.append(value)
    return tuple(possible)
