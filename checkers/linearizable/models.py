"""The meaning of operations: sequential models that a search runs operations through.

A model says for every operation which *action* it is on a state (None: it left no trace and nothing is learnt
from it), and what an action makes of a state. Three kinds of action tell the search what it may do cheaply:

- observe: never changes the state, is legal in some states only (a read, a failed compare-and-set)
- overwrite: legal in every state, and the state afterwards does not depend on the one before (a write)
- update: everything else (a compare-and-set)

A new model is a class with the eight members of `Model`; the search asks for nothing else. `objects` has
those that are no registers, `table` all by their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from sys import getsizeof
from typing import Any, Literal, Protocol

from checkers.history.errors import ModelError
from checkers.history.operation import Operation, same_both
from checkers.history.values import identity

State = Hashable
Kind = Literal["observe", "overwrite", "update"]
PAIR_BYTES = 72


class Illegal(Enum):
    """The answer of `step` where an action cannot have happened."""

    ILLEGAL = "illegal"


ILLEGAL = Illegal.ILLEGAL


@dataclass(frozen=True, slots=True)
class Action:
    """The effect of an operation on a state. Equal actions are interchangeable. The model gives `word` and `values`
    their meaning.
    """

    kind: Kind
    word: str
    values: tuple[State, ...]


def weight(state: State) -> int:
    """Bytes that a state takes, roughly. Elements are those of actions and of other states, so they do not count; pairs
    of a key or an element and a number or a value are made for each state.
    """
    size = getsizeof(state)
    if isinstance(state, tuple):
        # Bags, or the elements and something beside them. More parts are elements, and there may be many.
        if state and (len(state) <= 2 or isinstance(state[0], frozenset)):
            size += sum(weight(part) for part in state if isinstance(part, tuple | frozenset))
    elif isinstance(state, frozenset) and isinstance(next(iter(state), None), tuple):
        size += PAIR_BYTES * len(state)
    return size


class Model(Protocol):
    """A sequential object: its initial state, the actions of operations, and the effects of actions."""

    @property
    def name(self) -> str: ...

    @property
    def initial(self) -> State: ...

    def beginning(self, values: Mapping[str | None, Any]) -> Model:
        """The model with these start values: JSON values by key, None for the model's own. Raises ModelError.

        All models but `multi-register` are given one key.
        """
        ...

    def action(self, operation: Operation) -> Action | None:
        """The action of the operation; None if it surely had no effect and observed nothing. Raises ModelError."""
        ...

    def step(self, state: State, action: Action) -> State | Illegal:
        """The state after the action, or ILLEGAL if it cannot have happened in this state."""
        ...

    def leaves(self, action: Action) -> tuple[State, ...] | None:
        """The states that an overwrite or update can leave behind; None if they are not known beforehand."""
        ...

    def parts(self, operation: Operation) -> tuple[str | None, ...]:
        """The keys that the operation touches: each is judged by itself, unless an operation touches several."""
        ...

    def shown(self, state: State) -> Any:
        """The state for a person: a JSON value, or a text."""
        ...


@dataclass(frozen=True, slots=True)
class Register:
    """One value: reads, writes, compare-and-set.

    `initial` is the value before the first write (None: nothing). A cas with the answer "mismatch" counts
    as an observation (the value was not `old` at some moment of the operation) only if the server promises
    that the value it compared with was confirmed: `failed_cas_observes`. With the same promise a deletion (a write of
    None) that was refused because nothing was there counts as a read of None.
    """

    initial: State = None
    failed_cas_observes: bool = True
    name: str = "register"

    def beginning(self, values: Mapping[str | None, Any]) -> Register:
        (value,) = values.values()
        return replace(self, initial=identity(value))

    def action(self, operation: Operation) -> Action | None:
        match operation.f:
            case "read":
                return self._read(operation)
            case "write":
                return self._write(operation)
            case "cas":
                return self._cas(operation)
        raise ModelError(
            expected="read, write or cas", came=f"f {operation.f!r}", index=operation.invoke_index
        )

    def step(self, state: State, action: Action) -> State | Illegal:
        values = action.values
        match action.word:
            case "write":
                return values[0]
            case "read" | "is":
                return state if state == values[0] else ILLEGAL
            case "cas":
                return values[1] if state == values[0] else ILLEGAL
            case "is-not":
                return ILLEGAL if state == values[0] else state
        raise AssertionError(action)

    def leaves(self, action: Action) -> tuple[State, ...] | None:
        return (action.values[-1],)

    def parts(self, operation: Operation) -> tuple[str | None, ...]:
        return (operation.key,)

    def shown(self, state: State) -> Any:
        return state

    def _read(self, operation: Operation) -> Action | None:
        if operation.type != "ok":
            return None
        return Action("observe", "read", (identity(operation.value),))

    def _write(self, operation: Operation) -> Action | None:
        if operation.found_nothing and self.failed_cas_observes:
            return Action("observe", "read", (None,))
        if operation.type == "fail":
            return None
        return Action("overwrite", "write", (identity(operation.value),))

    def _cas(self, operation: Operation) -> Action | None:
        old, new = same_both(operation)
        if operation.type == "fail":
            observes = self.failed_cas_observes and operation.error == "mismatch"
            return Action("observe", "is-not", (old,)) if observes else None
        if old == new:
            return Action("observe", "is", (old,)) if operation.type == "ok" else None
        return Action("update", "cas", (old, new))
