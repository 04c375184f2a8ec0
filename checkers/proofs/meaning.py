"""The meaning of operations, a second time: for `verify`, which must share nothing with the search that it checks.

A state is whatever the object holds; `STEPS` says what an operation makes of it. Values are the same as
`checkers.history.values` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from checkers.history.operation import TAKES, Operation
from checkers.history.values import Set, identity

OPEN = float("inf")
WRONG = object()
FIRST: Mapping[str, Any] = {
    "counter": 0,
    "set": frozenset(),
    "list": (),
    "kv": "",
    "multi-register": frozenset(),
    "queue": (),
    "stack": (),
    "priority-queue": (),
    "unordered-queue": ((), 0),
}
LOCKS = ("mutex", "owner-aware-mutex", "reentrant-mutex", "fenced-mutex", "reentrant-fenced-mutex")
FREE = (None, 0, 0, -OPEN)
"""A lock: its owner, how often it is held, its fence (0: none), the greatest fence so far."""
LOOKS = ("read", "get", "refused", "empty")
STEPS: dict[tuple[str, str], Callable[[Any, Any], Any]] = {  # state and value to the state after, or WRONG
    ("register", "read"): lambda state, value: state if state == value else WRONG,
    ("register", "write"): lambda state, value: value,
    ("register", "cas"): lambda state, value: value[1] if state == value[0] else WRONG,
    ("register", "refused"): lambda state, value: WRONG if state == value[0] else state,
    ("counter", "read"): lambda state, value: state if state == value else WRONG,
    ("counter", "add"): lambda state, value: state + value,
    ("set", "read"): lambda state, value: state if state == frozenset(value) else WRONG,
    ("set", "add"): lambda state, value: state | {value},
    ("list", "read"): lambda state, value: state if state == value else WRONG,
    ("list", "append"): lambda state, value: (*state, value),
    ("queue", "enqueue"): lambda state, value: (*state, value),
    ("queue", "dequeue"): lambda state, value: state[1:] if state[:1] == (value,) else WRONG,
    ("queue", "take"): lambda state, value: state[1:],
    ("queue", "empty"): lambda state, value: WRONG if state else state,
    ("stack", "push"): lambda state, value: (*state, value),
    ("stack", "pop"): lambda state, value: state[:-1] if state[-1:] == (value,) else WRONG,
    ("stack", "take"): lambda state, value: state[:-1],
    ("stack", "empty"): lambda state, value: WRONG if state else state,
    ("priority-queue", "insert"): lambda state, value: (*state, value),
    ("priority-queue", "poll"): lambda state, value: (
        _without(state, value) if state and max(state) == value else WRONG
    ),
    ("priority-queue", "take"): lambda state, value: _without(state, max(state)) if state else state,
    ("priority-queue", "empty"): lambda state, value: WRONG if state else state,
    # Elements, each with the number of unanswered takes before it went in; the number of such takes.
    ("unordered-queue", "enqueue"): lambda state, value: ((*state[0], (value, state[1])), state[1]),
    ("unordered-queue", "take"): lambda state, value: (state[0], min(state[1] + 1, len(state[0]))),
    ("unordered-queue", "empty"): lambda state, value: state if len(state[0]) == state[1] else WRONG,
    ("kv", "get"): lambda state, value: state if state == (value or "") else WRONG,
    ("kv", "put"): lambda state, value: value,
    ("kv", "append"): lambda state, value: state + value,
    ("multi-register", "txn"): lambda state, value: _transaction(dict(state), value),
}


def _without(elements: tuple[Any, ...], element: Any) -> tuple[Any, ...]:
    place = elements.index(element)
    return (*elements[:place], *elements[place + 1 :])


def _any_out(state: tuple[tuple[tuple[Any, int], ...], int], value: Any) -> Any:
    """An unordered queue without the value: the first n takes took n of what was there before, for each n."""
    elements, takes = state
    there = [each for each in elements if each[0] == value]
    if not there:
        return WRONG
    left = _without(elements, max(there, key=lambda each: each[1]))
    enough = all(sum(before < count for _, before in left) >= count for count in range(1, takes + 1))
    return (left, takes) if enough else WRONG


def _locked(model: str, word: str, state: tuple[Any, int, Any, Any], value: tuple[Any, Any]) -> Any:
    (owner, held, fence, greatest), (who, its) = state, value
    is_named, owner_is_named = who[0], owner is not None and owner[0]
    is_same = model == "mutex" or owner == who or (is_named and not owner_is_named)
    if word == "release":
        return (owner, held - 1, fence if held > 1 else 0, greatest) if held and is_same else WRONG
    if held and not (is_same and "reentrant" in model):
        return WRONG
    if "fenced" not in model or not its:
        return who, held + 1, fence, greatest
    if held and fence:
        return (who, held + 1, fence, greatest) if its == fence else WRONG
    return (who, held + 1, its, its) if its > greatest else WRONG


STEPS["unordered-queue", "dequeue"] = _any_out
STEPS |= {(model, word): partial(_locked, model, word) for model in LOCKS for word in ("acquire", "release")}


def every_read(role: str | None, mode: str | None) -> bool:
    """All reads are judged."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a judgement. The caller of `verify` takes them from the promise, not from the verdict.

    `model`: the sequential model, or the isolation model of transactions. `reads`: from a read's role and mode, whether
    it is judged. `failed_cas_observes`: whether a refused cas surely saw a different value. `by_node`: whether reads
    keep the order of the node that answered them, instead of their client's.
    """

    model: str
    reads: Callable[[str | None, str | None], bool] = every_read
    failed_cas_observes: bool = False
    by_node: bool = False
    key_order: int = 0
    ranks: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Op:
    """An operation as it is judged. `over` is OPEN if it may still happen, or never does."""

    id: int
    word: str
    value: Any
    began: float
    over: float

    @property
    def looks(self) -> bool:
        return self.word in LOOKS or (self.word == "txn" and all(word == "r" for word, _, _ in self.value))

    def does_nothing(self, model: str) -> bool:
        """Whether it neither changes nor shows anything, wherever it stands."""
        return (model, self.word, self.value) == ("kv", "append", "")


def first_of(model: str, starts: Mapping[str | None, Any]) -> Any:
    """The state before everything, of objects that began with these JSON values (None: the model's own)."""
    given = {key: plain(value) for key, value in starts.items() if value is not None}
    if model == "multi-register":
        return frozenset(given.items())
    if not given:
        return FREE if model in LOCKS else FIRST.get(model)
    (value,) = (start for start in starts.values() if start is not None)
    if model == "counter":
        return Fraction(str(value))
    elements = tuple(map(plain, value)) if isinstance(value, list | tuple) else plain(value)
    match model:
        case "set":
            return frozenset(elements)
        case "priority-queue":
            return tuple(Fraction(str(element)) for element in value)
        case "unordered-queue":
            return tuple((element, 0) for element in elements), 0
    return elements


def keys_of(operation: Operation, model: str) -> set[str | None]:
    if model == "multi-register" and operation.f == "txn":
        return {str(micro[1]) for micro in operation.value}
    return {operation.key}


def op_of(operation: Operation, model: str) -> Op:
    word, value, known = operation.f, _value_of(operation, model), operation.type != "info"
    if operation.saw_empty or (word == "drain" and known and not value):  # a drain that took nothing
        word = "empty"
    elif operation.found_nothing:
        word = "read"
    elif operation.type == "fail":
        word = "refused"
    elif word == "cas" and value[0] == value[1]:
        word, value = "read", value[0]
    elif word in TAKES:
        word = word if known else "take"
    elif model == "multi-register":
        micros = value if word == "txn" else ((word, operation.key, value),)
        word, value = "txn", tuple((m[0][0], str(m[1]), m[2]) for m in micros if known or m[0][0] == "w")
    over = operation.complete_index if known and operation.complete_index is not None else OPEN
    return Op(operation.invoke_index, word, value, operation.invoke_index, over)


def _value_of(operation: Operation, model: str) -> Any:
    """A sum's as a number of any size and fineness; what a collection showed as its elements."""
    value = operation.value
    if model in LOCKS:
        client, fence = (
            (value.get("client"), value.get("fence")) if isinstance(value, dict) else (value, None)
        )
        owner = (False, operation.process) if client is None else (True, plain(client))
        # A fence that is not judged may be anything, such as a token in a text.
        has_fence = "fenced" in model and operation.f == "acquire" and operation.type == "ok"
        return owner, Fraction(str(fence or 0)) if has_fence else Fraction(0)
    if model == "counter" and operation.f == "read" and value is None:
        return Fraction(0)
    if model in ("counter", "priority-queue") and type(value) in (int, float):
        return Fraction(str(value))
    return plain(list(value) if isinstance(value, Set) and model in ("set", "list") else value)


def plain(value: Any) -> Any:
    """A JSON value as one that can be hashed and that equals only what is the same value."""
    if isinstance(value, Set):
        return ("#", frozenset(map(plain, value)))
    if isinstance(value, list | tuple):
        return tuple(plain(part) for part in value)
    return identity(value)


def _transaction(values: dict[str, Any], micros: Sequence[tuple[str, str, Any]]) -> Any:
    for word, key, value in micros:
        if word == "w":
            values[key] = value
        elif values.get(key) != value:
            return WRONG
    return frozenset(values.items())
