"""The meaning of operations on objects that are not registers, nor `containers` or `locks`. `models` explains models.

| name | operations | state |
|---|---|---|
| multi-register | read, write (of a key), txn [[r, key, value], [w, key, value], …] | a value for each key |
| kv | get, put, append | a text, empty at first |
| counter | add n, read | the sum |
| set | add element, read → [elements] | what was added |
| list | append element, read → [elements] | the elements in their order |

Failed operations left no trace. Of an operation with unknown outcome, only what it does counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from checkers.history.errors import ModelError
from checkers.history.operation import Operation
from checkers.history.values import exact, identity, value_words
from checkers.linearizable.models import ILLEGAL, Action, Illegal, State


def strange(operation: Operation, expected: str) -> ModelError:
    came = f"{operation.f} with value {value_words(operation.value, 60)}"
    return ModelError(expected=expected, came=came, index=operation.invoke_index)


@dataclass(frozen=True, slots=True)
class Sequential:
    """The common part of these models: a failed operation proves nothing, an update leaves an unpredictable state."""

    failed_cas_observes: bool = True

    def beginning(self, values: Mapping[str | None, Any]) -> Self:
        (value,) = values.values()
        begun: dict[str, Any] = {} if value is None else {"initial": self.state(value)}
        return replace(self, **begun)

    @abstractmethod
    def state(self, value: Any) -> State:
        """The state that a JSON value, which is not null, stands for. Raises ModelError."""

    def leaves(self, action: Action) -> tuple[State, ...] | None:
        return None

    def parts(self, operation: Operation) -> tuple[str | None, ...]:
        return (operation.key,)

    def shown(self, state: Any) -> Any:
        return state

    def action(self, operation: Operation) -> Action | None:
        """The action of an operation that may have happened."""
        if operation.type == "fail":
            return None
        return self.done(operation, operation.type == "ok")

    @abstractmethod
    def done(self, operation: Operation, answered: bool) -> Action | None:
        """The action of an operation that happened; `answered`: its value is an answer."""


@dataclass(frozen=True, slots=True)
class Counter(Sequential):
    """A sum: add and read. A read of null is one of 0: nobody has added anything yet."""

    name: str = "counter"
    initial: State = 0

    def state(self, value: Any) -> State:
        return _start(exact(value), "a number", value)

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f not in ("add", "read"):
            raise strange(operation, "add or read")
        if operation.f == "read" and not answered:
            return None
        is_empty = operation.f == "read" and operation.value is None
        value = 0 if is_empty else exact(operation.value)
        if value is None:
            raise strange(operation, "a number to add, or read")
        return Action("observe" if operation.f == "read" else "update", operation.f, (value,))

    def step(self, state: Any, action: Action) -> State | Illegal:
        value: Any = action.values[0]
        if action.word == "add":
            total: State = state + value
            return total
        return state if state == value else ILLEGAL


@dataclass(frozen=True, slots=True)
class GrowingSet(Sequential):
    """Elements are added, never taken away; a read shows all."""

    name: str = "set"
    initial: State = frozenset()

    def state(self, value: Any) -> State:
        return frozenset(start_elements(value))

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f == "add":
            return Action("update", "add", (identity(operation.value),))
        if operation.f != "read":
            raise strange(operation, "add or read")
        if not answered:
            return None
        return Action("observe", "read", (frozenset(_elements(operation)),))

    def step(self, state: Any, action: Action) -> State | Illegal:
        value: Any = action.values[0]
        if action.word == "add":
            return frozenset((*state, value))
        return state if state == value else ILLEGAL


@dataclass(frozen=True, slots=True)
class Appended(Sequential):
    """A list: append puts an element at its end, a read shows all."""

    name: str = "list"
    initial: State = ()

    def state(self, value: Any) -> State:
        return start_elements(value)

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f == "append":
            return Action("update", "append", (identity(operation.value),))
        if operation.f != "read":
            raise strange(operation, "append or read")
        return Action("observe", "read", (tuple(_elements(operation)),)) if answered else None

    def step(self, state: Any, action: Action) -> State | Illegal:
        value: Any = action.values[0]
        if action.word == "append":
            return (*state, value)
        return state if state == value else ILLEGAL


@dataclass(frozen=True, slots=True)
class KeyValue(Sequential):
    """A text: get, put, append. A get that shows nothing showed the empty text."""

    name: str = "kv"
    initial: State = ""

    def state(self, value: Any) -> State:
        return _start(value if isinstance(value, str) else None, "a text", value)

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f not in ("get", "put", "append"):
            raise strange(operation, "get, put or append")
        if operation.f == "get" and not answered:
            return None
        value = "" if operation.f == "get" and operation.value is None else operation.value
        if not isinstance(value, str):
            raise strange(operation, "a text")
        match operation.f:
            case "get":
                return Action("observe", "get", (value,))
            case "put":
                return Action("overwrite", "put", (value,))
        return Action("update", "append", (value,)) if value else None

    def step(self, state: Any, action: Action) -> State | Illegal:
        value: Any = action.values[0]
        match action.word:
            case "put":
                return str(value)
            case "append":
                return str(state + value)
        return str(state) if state == value else ILLEGAL


MICRO = {"r": "r", "read": "r", "w": "w", "write": "w"}


@dataclass(frozen=True, slots=True)
class MultiRegister(Sequential):
    """A value for each key (none at first); a transaction reads and writes several at one moment, in its order."""

    name: str = "multi-register"
    initial: State = frozenset()

    def beginning(self, values: Mapping[str | None, Any]) -> MultiRegister:
        states = {key: identity(value) for key, value in values.items() if value is not None}
        return replace(self, initial=frozenset(states.items()))

    def state(self, value: Any) -> State:
        return identity(value)

    def parts(self, operation: Operation) -> tuple[str | None, ...]:
        return tuple(dict.fromkeys(key for _, key, _ in self._micros(operation)))

    def done(self, operation: Operation, answered: bool) -> Action | None:
        micros = [micro for micro in self._micros(operation) if answered or micro[0] == "w"]
        if not micros:
            return None
        observes = all(word == "r" for word, _, _ in micros)
        return Action("observe" if observes else "update", "txn", tuple(micros))

    def step(self, state: Any, action: Action) -> State | Illegal:
        values = dict(state)
        micros: Any = action.values
        for word, key, value in micros:
            if word == "w":
                values[key] = value
            elif values.get(key) != value:
                return ILLEGAL
        return frozenset(values.items())

    def _micros(self, operation: Operation) -> list[tuple[str, str | None, State]]:
        if operation.f in ("read", "write"):
            return [(operation.f[0], operation.key, identity(operation.value))]
        value = operation.value
        well = operation.f == "txn" and isinstance(value, list | tuple)
        if not well or not all(
            isinstance(micro, list | tuple) and len(micro) == 3 and micro[0] in list(MICRO) for micro in value
        ):
            raise strange(operation, "read, write, or txn with [[r, key, value], [w, key, value], …]")
        return [(MICRO[word], str(key), identity(shown)) for word, key, shown in value]


def _start(state: State, expected: str, came: Any) -> State:
    """The state that the objects begin with. Raises ModelError if there is none."""
    if state is None:
        raise ModelError(expected=f"{expected} as the start value", came=value_words(came, 60), index=None)
    return state


def start_elements(value: Any) -> tuple[State, ...]:
    if not isinstance(value, list | tuple):
        raise ModelError(
            expected="a list of elements as the start value", came=value_words(value, 60), index=None
        )
    return tuple(map(identity, value))


def _elements(operation: Operation) -> Iterable[State]:
    if not isinstance(operation.value, list | tuple):
        raise strange(operation, "a list of elements")
    return (identity(element) for element in operation.value)
