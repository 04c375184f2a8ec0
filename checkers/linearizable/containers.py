"""Objects that elements are put into, and taken out of one at a time. `models` explains models.

| name | operations | which element a take gives |
|---|---|---|
| queue | enqueue, dequeue | the one that went in first |
| unordered-queue | enqueue, dequeue | any |
| stack | push, pop | the one that went in last |
| priority-queue | insert, poll | the greatest number |

A take that shows nothing found the object empty. So did one that failed with "empty", but that is an observation only
if the server promises that what it saw was confirmed (`failed_cas_observes`). A take without an answer took an element,
if there was one.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter as Multiset
from dataclasses import dataclass
from typing import Any, ClassVar

from checkers.history.errors import ModelError
from checkers.history.operation import Operation
from checkers.history.values import exact, identity, value_words
from checkers.linearizable.models import ILLEGAL, Action, Illegal, State
from checkers.linearizable.objects import Sequential, start_elements, strange


@dataclass(frozen=True, slots=True)
class Container(Sequential):
    """The common part. The state is a tuple of elements; the last one of the words of actions is "take" or "empty"."""

    initial: State = ()
    puts: ClassVar[str] = "enqueue"
    takes: ClassVar[str] = "dequeue"

    def state(self, value: Any) -> State:
        return start_elements(value)

    def element(self, operation: Operation) -> State:
        """The element that the operation put in or took out."""
        return identity(operation.value)

    def action(self, operation: Operation) -> Action | None:
        if operation.type == "fail" and operation.saw_empty and self.failed_cas_observes:
            return Action("observe", "empty", ())
        return Sequential.action(self, operation)

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f == self.puts:
            return Action("update", self.puts, (self.element(operation),))
        if operation.f != self.takes:
            raise strange(operation, f"{self.puts} or {self.takes}")
        if not answered:
            return Action("update", "take", ())
        if operation.saw_empty:
            return Action("observe", "empty", ())
        return Action("update", self.takes, (self.element(operation),))


@dataclass(frozen=True, slots=True)
class Queue(Container):
    """First in, first out."""

    name: str = "queue"

    def step(self, state: Any, action: Action) -> State | Illegal:
        match action.word:
            case "enqueue":
                return (*state, action.values[0])
            case "dequeue":
                return tuple(state[1:]) if state and state[0] == action.values[0] else ILLEGAL
            case "take":
                return tuple(state[1:])
        return ILLEGAL if state else state


@dataclass(frozen=True, slots=True)
class Stack(Container):
    """Last in, first out."""

    name: str = "stack"
    puts: ClassVar[str] = "push"
    takes: ClassVar[str] = "pop"

    def put(self, elements: tuple[State, ...], element: Any) -> tuple[State, ...]:
        """The elements with one more; the last of them comes out next."""
        return (*elements, element)

    def step(self, state: Any, action: Action) -> State | Illegal:
        if action.word == self.puts:
            return self.put(state, action.values[0])
        if action.word == "empty":
            return ILLEGAL if state else state
        is_wrong = action.word == self.takes and state[-1:] != action.values
        return ILLEGAL if is_wrong else tuple(state[:-1])


@dataclass(frozen=True, slots=True)
class PriorityQueue(Stack):
    """The greatest number first: a stack that is sorted."""

    name: str = "priority-queue"
    puts: ClassVar[str] = "insert"
    takes: ClassVar[str] = "poll"

    def state(self, value: Any) -> State:
        start_elements(value)  # refuses what is no list
        numbers: list[Any] = [exact(element) for element in value]
        if None in numbers:
            raise ModelError(expected="numbers as the start value", came=value_words(value, 60), index=None)
        return tuple(sorted(numbers))

    def element(self, operation: Operation) -> State:
        number = exact(operation.value)
        if number is None:
            raise strange(operation, "a number, which is its own priority")
        return number

    def put(self, elements: tuple[State, ...], element: Any) -> tuple[State, ...]:
        line: list[Any] = list(elements)
        insort(line, element)
        return tuple(line)


@dataclass(frozen=True, slots=True)
class UnorderedQueue(Container):
    """Any element may come out.

    A take without an answer took one of the elements that were there: which one, may show later, or never. So the state
    is a bag for each stretch between such takes: the elements that went in then, and are not known to be out. The first
    n takes took n elements of the first n bags. Where the first n bags have no more than that, all of it is out.
    """

    name: str = "unordered-queue"
    initial: State = (frozenset(),)

    def state(self, value: Any) -> State:
        return (frozenset(Multiset(start_elements(value)).items()),)

    def step(self, state: Any, action: Action) -> State | Illegal:
        *earlier, last = state
        match action.word:
            case "enqueue":
                return (*earlier, _with(last, action.values[0], 1))
            case "take":
                return _without_the_gone((*state, frozenset())) if earlier or last else state
            case "dequeue":
                element = action.values[0]
                # Of equal elements the last one: what it leaves allows all that any other leaves.
                for place in reversed(range(len(state))):
                    if any(element == each for each, _ in state[place]):
                        rest = _with(state[place], element, -1)
                        return _without_the_gone((*state[:place], rest, *state[place + 1 :]))
                return ILLEGAL
        return ILLEGAL if earlier or last else state

    def shown(self, state: Any) -> Any:
        return [element for bag in state for element, count in bag for _ in range(count)]


def _with(bag: frozenset[tuple[State, int]], element: State, count: int) -> frozenset[tuple[State, int]]:
    """The bag with so many more of the element."""
    known = Multiset(dict(bag))
    known[element] += count
    return frozenset((+known).items())


def _without_the_gone(bags: tuple[frozenset[tuple[State, int]], ...]) -> State | Illegal:
    """The bags without those that unanswered takes have surely emptied. ILLEGAL: they took more than there was."""
    held = begin = 0
    for place, bag in enumerate(bags[:-1]):
        held += sum(count for _, count in bag)
        took = place + 1 - begin
        if held < took:
            return ILLEGAL
        if held == took:
            held, begin = 0, place + 1
    return bags[begin:]
