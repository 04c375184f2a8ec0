"""One order of calls, found by trying: for objects of which many orders leave many states.

The forward search holds all states that are possible at once; of nine pushes that run together these are 9!. Where an
order exists, trying one after the other often meets it at once (Wing and Gong, 1993; with Lowe's memory of what was
tried, 2017). The result is an order, because each step of it was allowed. No result within the steps says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.linearizable.models import ILLEGAL, Model, State
from checkers.linearizable.search import Call

STEPS = 200_000
"""Calls tried."""
BITS = 800_000_000
"""Of the memory of what was tried: a mask of all calls for each step."""


def find(model: Model, calls: Sequence[Call]) -> list[int] | None:
    """Places of calls in an order that the model allows within real time; None if none was met."""
    left = min(STEPS, BITS // max(1, len(calls)))
    line = _Line(calls)
    seen: set[tuple[int, State]] = set()
    taken: list[tuple[int, State]] = []
    state, done = model.initial, 0
    waiting = sum(call.complete is not None for call in calls)
    at = line.after[line.head]
    while waiting:
        place = line.place[at]
        if place >= 0:
            left -= 1
            if left < 0:
                return None
            after = model.step(state, calls[place].action)
            if after is not ILLEGAL:
                # Done calls and state: what can follow depends on nothing else. Each is tried once.
                reached = (done | 1 << place, after)
                if reached not in seen:
                    seen.add(reached)
                    taken.append((place, state))
                    state, done = after, reached[0]
                    line.take(place)
                    waiting -= calls[place].complete is not None
                    at = line.after[line.head]
                    continue
            at = line.after[at]
        else:  # a call returns that has no place yet, or nothing is left to try
            if not taken:
                return None
            place, state = taken.pop()
            done ^= 1 << place
            line.put_back(place)
            waiting += calls[place].complete is not None
            at = line.after[line.begun[place]]
    return [place for place, _ in taken]


class _Line:
    """The begins and ends of calls in real time, as a linked list from which calls are taken out and put back."""

    def __init__(self, calls: Sequence[Call]) -> None:
        moments = [(call.invoke, place) for place, call in enumerate(calls)]
        moments += [(call.complete, ~place) for place, call in enumerate(calls) if call.complete is not None]
        moments.sort()
        self.head = len(moments)
        tail = self.head + 1
        self.place = [place for _, place in moments] + [-1, -1]
        """By node the call that begins there; below 0: one ends, or the line does."""
        self.after = [*range(1, len(moments)), tail, 0 if moments else tail, tail]
        self.before = [self.head, *range(len(moments) - 1), self.head, len(moments) - 1]
        self.begun = [0] * len(calls)
        self.ended = [-1] * len(calls)
        for node, (_, place) in enumerate(moments):
            if place >= 0:
                self.begun[place] = node
            else:
                self.ended[~place] = node

    def take(self, place: int) -> None:
        """Take a call out."""
        for node in (self.begun[place], self.ended[place]):
            if node >= 0:
                self.after[self.before[node]] = self.after[node]
                self.before[self.after[node]] = self.before[node]

    def put_back(self, place: int) -> None:
        """Put back the call that was taken out last."""
        # The reverse of `take`: links are right only if nodes come back in the opposite order.
        for node in (self.ended[place], self.begun[place]):
            if node >= 0:
                self.after[self.before[node]] = node
                self.before[self.after[node]] = node
