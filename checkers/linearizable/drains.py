"""Drains of queues: one operation, many dequeues.

A drain takes elements one after the other until it finds the queue empty; other clients may come in between. So it
stands for a dequeue of each element that it lists, in that order, and then an "empty", each within the drain's time. A
drain of unknown outcome may have taken any number of elements at any later times: it stands for as many dequeues
without an answer as elements never came out. A refused drain took nothing.

The order within a drain is part of the state: how many of its elements each drain has taken so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from checkers.history.errors import ModelError
from checkers.history.operation import Operation
from checkers.history.values import identity
from checkers.linearizable.containers import Queue, UnorderedQueue
from checkers.linearizable.models import ILLEGAL, Action, Illegal, State
from checkers.linearizable.objects import Sequential


class Drained(Sequential):
    """The common part of queues with drains; it stands before the queue's own class. The state: that of the queue, and
    by drain how many it has taken, as pairs.
    """

    __slots__ = ()
    initial: State

    @property
    def first_elements(self) -> Any:
        """The queue's own state at the beginning."""
        initial: Any = self.initial
        return initial[0]

    def step(self, state: Any, action: Action) -> State | Illegal:
        elements, progress = state
        match action.word, action.values:
            case "drained", (element, drain, place):
                taken = dict(progress)
                if taken.get(drain, 0) != place:
                    return ILLEGAL
                taken[drain] = taken.get(drain, 0) + 1
                progress = tuple(sorted(taken.items()))
                action = Action("update", "dequeue", (element,))
            case "emptied", (drain, place):
                if dict(progress).get(drain, 0) != place:
                    return ILLEGAL
                action = Action("observe", "empty", ())
        after: State | Illegal = super().step(elements, action)  # type: ignore[misc]  # the queue's own
        return after if after is ILLEGAL else (after, progress)

    def shown(self, state: Any) -> Any:
        return super().shown(state[0])

    def actions(self, operations: Sequence[Operation]) -> Iterator[tuple[Operation, Action]]:
        """Each operation with its action; a drain as the dequeues that it stands for."""
        left = len(super().shown(self.first_elements))
        for operation in operations:
            left += operation.f == "enqueue" and operation.type != "fail"
            left -= operation.f == "dequeue" and operation.type == "ok" and not operation.saw_empty
            left -= len(_drained(operation))
        for operation in operations:
            if operation.f != "drain":
                action = self.action(operation)
                if action is not None:
                    yield operation, action
            elif operation.type == "ok":
                yield from _as_dequeues(operation)
            elif operation.type == "info":
                dequeue = structs.replace(operation, f="dequeue", value=None)
                yield from ((dequeue, Action("update", "take", ())) for _ in range(left))


@dataclass(frozen=True, slots=True)
class DrainedQueue(Drained, Queue):
    """A queue with drains."""

    initial: State = ((), ())


@dataclass(frozen=True, slots=True)
class DrainedUnorderedQueue(Drained, UnorderedQueue):
    """An unordered queue with drains."""

    initial: State = ((frozenset(),), ())


def drained(queue: Queue | UnorderedQueue) -> DrainedQueue | DrainedUnorderedQueue:
    """The same queue, with drains."""
    kind = DrainedQueue if isinstance(queue, Queue) else DrainedUnorderedQueue
    return kind(failed_cas_observes=queue.failed_cas_observes, initial=(queue.initial, ()))


def _as_dequeues(drain: Operation) -> Iterator[tuple[Operation, Action]]:
    name, elements = drain.invoke_index, _drained(drain)
    for place, element in enumerate(elements):
        dequeue = structs.replace(drain, f="dequeue", value=element)
        yield dequeue, Action("update", "drained", (identity(element), name, place))
    nothing = structs.replace(drain, f="dequeue", value=None)
    yield nothing, Action("observe", "emptied", (name, len(elements)))


def _drained(operation: Operation) -> Sequence[Any]:
    if operation.f != "drain" or operation.type != "ok" or operation.value is None:
        return ()
    if not isinstance(operation.value, list | tuple):
        came = repr(operation.value)[:60]
        raise ModelError(expected="a list of elements", came=came, index=operation.invoke_index)
    return operation.value


def are_several_calls(operation: Operation) -> bool:
    """Whether the operation is a drain that took elements, or may have."""
    return operation.f == "drain" and (operation.type == "info" or bool(_drained(operation)))


def are_in_sequence(actions: Iterable[Action]) -> bool:
    """Whether the actions keep the sequence of each drain."""
    taken: dict[State, int] = {}
    for action in actions:
        if action.word not in ("drained", "emptied"):
            continue
        *_, drain, place = action.values
        if place != taken.get(drain, 0):
            return False
        taken[drain] = taken.get(drain, 0) + 1
    return True
