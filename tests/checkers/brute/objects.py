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
    """A sum, 0 at first: add, read. Null is 0."""
    total = held or 0
    return total + call.value if call.f == "add" else _shown(total, call, total == (call.value or 0))


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


def stack(held: Any, call: Call) -> Any:
    """Last in, first out: push; pop takes what went in last, or shows null where nothing is."""
    elements = held or ()
    if call.f == "push":
        return (*elements, call.value)
    last = elements[-1] if elements else None
    return elements[:-1] if not call.answered or last == call.value else IMPOSSIBLE


def priority_queue(held: Any, call: Call) -> Any:
    """The greatest first: insert; poll takes the greatest number, or shows null where nothing is."""
    elements = sorted(held or ())
    if call.f == "insert":
        return (*elements, call.value)
    greatest = elements[-1] if elements else None
    return tuple(elements[:-1]) if not call.answered or greatest == call.value else IMPOSSIBLE


def unordered_queue(held: Any, call: Call) -> Any:
    """Any element may come out: enqueue; dequeue takes one, or shows null where nothing is.

    One without answer may have taken any. So what is held are all contents that the queue may have now.
    """
    after: set[tuple[Any, ...]] = set()
    for elements in held or {()}:
        if call.f == "enqueue":
            after.add(tuple(sorted((*elements, call.value))))
        elif not elements and (not call.answered or call.value is None):
            after.add(())
        after |= {
            (*elements[:place], *elements[place + 1 :])
            for place, element in enumerate(elements)
            if call.f == "dequeue" and (not call.answered or element == call.value)
        }
    return after or IMPOSSIBLE


def lock(model: str) -> Step:
    """acquire, release; a value names the client and the fence, else the process is the client.

    What is held: who acquired it and did not release it yet, with their fences; and the fences that were given.
    """

    def step(held: Any, call: Call) -> Any:
        holders, fences = held or ((), ())
        value = call.value if isinstance(call.value, dict) else {"client": call.value} if call.value else {}
        who = value.get("client", call.process) if model != "mutex" else "anybody"
        fence = value.get("fence") if "fenced" in model and call.answered else None
        if call.f == "release":
            return (holders[:-1], fences) if holders and _is(holders[-1][0], who) else IMPOSSIBLE
        if holders and not ("reentrant" in model and _is(holders[-1][0], who)):
            return IMPOSSIBLE
        known = [its for _, its in holders if its]
        if fence and (known[:1] != [fence] if known else any(its >= fence for its in fences)):
            return IMPOSSIBLE
        return (*holders, (who, fence)), (*fences, *([fence] if fence else []))

    return step


def _is(holder: Any, who: Any) -> bool:
    """A client with a name may have begun as a process that got no answer."""
    return bool(holder == who or (isinstance(holder, int) and isinstance(who, str)))


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
    "unordered-queue": unordered_queue,
    "stack": stack,
    "priority-queue": priority_queue,
    "counter": counter,
    **{
        model: lock(model)
        for model in (
            "mutex",
            "owner-aware-mutex",
            "reentrant-mutex",
            "fenced-mutex",
            "reentrant-fenced-mutex",
        )
    },
}
"""By the names of `checkers.by_model`."""

OF_ALL_KEYS = ("multi-register",)
"""Models whose one object holds all keys."""
