"""What operations do to an object: one short function a model, from its sequential specification.

`step(held, call)` is what the object of the call's key holds afterwards, or IMPOSSIBLE if the call would have got
another answer. Of a call without answer only what it does counts; where it would do nothing, it need not happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkers.history import History


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation that took effect, or may have. `returned` is None for one without answer."""

    f: str
    key: str | None
    value: Any
    process: int
    invoked: int
    returned: int | None

    @property
    def answered(self) -> bool:
        return self.returned is not None

    def precedes(self, other: Call) -> bool:
        return self.returned is not None and self.returned < other.invoked


IMPOSSIBLE = object()
Step = Callable[[Any, Call], Any]


def calls_of(history: History) -> list[Call]:
    """All operations but failed ones, which did nothing.

    Two that failed looked at the object: a cas ("mismatch") saw another value, a dequeue ("empty") saw no element.
    """
    return [
        Call(
            each.error if each.type == "fail" and each.error else each.f,
            each.key,
            each.value,
            each.process,
            each.invoke_index,
            each.returned_index,
        )
        for each in history.operations
        if each.type != "fail" or (each.f, each.error) in (("cas", "mismatch"), ("dequeue", "empty"))
    ]


def _shown(held: Any, call: Call, same: bool) -> Any:
    return held if same or not call.answered else IMPOSSIBLE


def register(held: Any, call: Call) -> Any:
    """A value, null at first: read, write, cas [old, new]."""
    if call.f == "write":
        return call.value
    if call.f == "read":
        return _shown(held, call, held == call.value)
    old, new = call.value
    if call.f == "mismatch":
        return held if held != old else IMPOSSIBLE
    return new if held == old else IMPOSSIBLE


def kv(held: Any, call: Call) -> Any:
    """A text, empty at first: get, put, append."""
    text = held or ""
    if call.f == "get":
        return _shown(text, call, text == (call.value or ""))
    return call.value if call.f == "put" else text + call.value


def counter(held: Any, call: Call) -> Any:
    """A sum, 0 at first: add, read."""
    total = held or 0
    return total + call.value if call.f == "add" else _shown(total, call, total == call.value)


def grow_set(held: Any, call: Call) -> Any:
    """Elements: add, read."""
    elements = held or frozenset()
    if call.f == "add":
        return elements | {call.value}
    return _shown(elements, call, call.answered and sorted(elements) == sorted(call.value))


def grow_list(held: Any, call: Call) -> Any:
    """Elements in their order: append, read."""
    elements = held or ()
    if call.f == "append":
        return (*elements, call.value)
    return _shown(elements, call, call.answered and list(elements) == list(call.value))


def queue(held: Any, call: Call) -> Any:
    """First in, first out: enqueue; dequeue takes what stands first, or shows null where nothing does."""
    elements = held or ()
    if call.f == "enqueue":
        return (*elements, call.value)
    if call.f == "empty":
        return IMPOSSIBLE if elements else elements
    first = elements[0] if elements else None
    return elements[1:] if not call.answered or first == call.value else IMPOSSIBLE


def multi_register(held: Any, call: Call) -> Any:
    """A value for each key, null at first: read, write of one; txn [["r", key, value], ["w", key, value], …]."""
    values = dict(held or {})
    micros = call.value
    if call.f != "txn":
        micros = [["r" if call.f == "read" else "w", call.key, call.value]]
    for word, key, value in micros:
        if word == "w":
            values[key] = value
        elif call.answered and values.get(key) != value:
            return IMPOSSIBLE
    return values


STEPS: dict[str, Step] = {
    "register": register,
    "cas-register": register,
    "multi-register": multi_register,
    "kv": kv,
    "list": grow_list,
    "set": grow_set,
    "queue": queue,
    "counter": counter,
}
"""By the names of `checkers.by_model`."""

OF_ALL_KEYS = ("multi-register",)
"""Models whose one object holds all keys."""
