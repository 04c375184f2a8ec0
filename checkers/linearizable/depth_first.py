"""One order of calls, found by trying: for objects of which many orders leave many states.

The forward search holds all states that are possible at once; of nine pushes that run together these are 9!. Where an
order exists, trying one after the other often meets it at once (Wing and Gong, 1993; with Lowe's memory of what was
tried, 2017). The result is an order, because each step of it was allowed. No result within the steps says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from checkers.limits import CONFIGURATION_BYTES
from checkers.linearizable.models import ILLEGAL, Model, State, weight
from checkers.linearizable.search import Call, Limits

STEPS = 200_000
"""Calls tried."""
ELEMENTS = 800_000_000
"""Copied at most: a step copies a state, which may hold an element of each call."""


def find(model: Model, calls: Sequence[Call], limits: Limits) -> list[int] | None:
    """Places of calls in an order that the model allows within real time; None if none was met.

    Of the limits the memory holds: states that do not fit are made again, or known by their hashes alone.
    """
    left = min(STEPS, ELEMENTS // max(1, len(calls)))
    line = _Line(calls)
    chance = Random(0)
    # The numbers of all done calls, combined by xor, stand for their set (Zobrist, 1970).
    numbers = [chance.getrandbits(64) for _ in calls]
    tried = _Tried(limits.bytes_max)
    taken = _Taken(model, calls, limits.bytes_max)
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
            if after is not ILLEGAL and tried.add(done ^ numbers[place], after):
                taken.push(place, state)
                state, done = after, done ^ numbers[place]
                line.take(place)
                waiting -= calls[place].complete is not None
                at = line.after[line.head]
                continue
            at = line.after[at]
        else:  # a call returns that has no place yet, or nothing is left to try
            if not taken.places:
                return None
            place, state, replayed = taken.pop()
            left -= replayed
            done ^= numbers[place]
            line.put_back(place)
            waiting += calls[place].complete is not None
            at = line.after[line.begun[place]]
    return taken.places


class _Tried:
    """Done calls and state: what can follow depends on nothing else, so each pair is tried once.

    When the pairs do not fit into the memory, only their hashes are kept (Wolper and Leroy, 1993). A pair that is then
    taken for another one is left out: an order may be missed, and none is made up.
    """

    def __init__(self, bytes_max: int) -> None:
        self._pairs: set[tuple[int, State] | int] = set()
        self._left = bytes_max

    def add(self, done: int, state: State) -> bool:
        """Whether the pair is new."""
        pair = (done, state)
        name = pair if self._left > 0 else hash(pair)
        if name in self._pairs:
            return False
        self._pairs.add(name)
        if self._left > 0:
            self._left -= CONFIGURATION_BYTES + weight(state)
            if self._left <= 0:
                self._pairs = set(map(hash, self._pairs))
        return True


class _Taken:
    """The calls that were taken, and the states before them: of each, or of every second, fourth … if the states do not
    fit into the memory. The states between are made again.
    """

    def __init__(self, model: Model, calls: Sequence[Call], bytes_max: int) -> None:
        self.places: list[int] = []
        self._model = model
        self._calls = calls
        self._bytes_max = bytes_max
        self._states: list[State] = []
        self._every = 1
        self._bytes = 0

    def push(self, place: int, state: State) -> None:
        """Take a call in this state."""
        if len(self.places) % self._every == 0:
            self._states.append(state)
            self._bytes += weight(state)
            while self._bytes > self._bytes_max and len(self._states) > 1:
                self._states = self._states[::2]
                self._every *= 2
                self._bytes = sum(map(weight, self._states))
        self.places.append(place)

    def pop(self) -> tuple[int, State, int]:
        """The call that was taken last, the state before it, and how many steps it took to make that again."""
        place = self.places.pop()
        replayed = len(self.places) % self._every
        state = self._states[-1]
        if not replayed:
            self._states.pop()
            self._bytes -= weight(state)
        for before in self.places[len(self.places) - replayed :]:
            after = self._model.step(state, self._calls[before].action)
            assert after is not ILLEGAL
            state = after
        return place, state, replayed


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
