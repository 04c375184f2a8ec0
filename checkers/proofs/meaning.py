"""The meaning of operations, a second time: for `verify`, which must share nothing with the search that it checks.

A state is whatever the object holds; `STEPS` says what an operation makes of it. Values are compared as JSON compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec

from checkers.history.operation import Operation
from checkers.history.values import Set

OPEN = float("inf")
WRONG = object()
FIRST = {"counter": 0, "set": frozenset(), "queue": (), "list": (), "kv": "", "multi-register": frozenset()}
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
    ("kv", "get"): lambda state, value: state if state == (value or "") else WRONG,
    ("kv", "put"): lambda state, value: value,
    ("kv", "append"): lambda state, value: state + value,
    ("multi-register", "txn"): lambda state, value: _transaction(dict(state), value),
}


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
        return FIRST.get(model)
    (value,) = (start for start in starts.values() if start is not None)
    if model == "counter":
        return Fraction(str(value))
    elements = tuple(map(plain, value)) if isinstance(value, list | tuple) else plain(value)
    return {"set": frozenset(elements) if model == "set" else None, "list": elements, "queue": elements}.get(
        model, plain(value)
    )


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
    elif word == "dequeue":
        word = "dequeue" if known else "take"
    elif model == "multi-register":
        micros = value if word == "txn" else ((word, operation.key, value),)
        word, value = "txn", tuple((m[0][0], str(m[1]), m[2]) for m in micros if known or m[0][0] == "w")
    over = operation.complete_index if known and operation.complete_index is not None else OPEN
    return Op(operation.invoke_index, word, value, operation.invoke_index, over)


def _value_of(operation: Operation, model: str) -> Any:
    """A sum's as a number of any size and fineness; what a collection showed as its elements."""
    value = operation.value
    if model == "counter" and type(value) in (int, float):
        return Fraction(str(value))
    return plain(list(value) if isinstance(value, Set) and model in ("set", "list") else value)


def plain(value: Any) -> Any:
    """A JSON value as one that can be hashed and that equals only what JSON calls equal."""
    if isinstance(value, Set):
        return ("#", frozenset(map(plain, value)))
    if isinstance(value, list | tuple):
        return tuple(plain(part) for part in value)
    return (
        value if value is None or type(value) in (int, str) else (msgspec.json.encode(value, order="sorted"),)
    )


def _transaction(values: dict[str, Any], micros: Sequence[tuple[str, str, Any]]) -> Any:
    for word, key, value in micros:
        if word == "w":
            values[key] = value
        elif values.get(key) != value:
            return WRONG
    return frozenset(values.items())
