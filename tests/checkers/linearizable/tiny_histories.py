"""Random tiny histories of every object: asked by a few clients, answered as a true object would, or nearly so."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from checkers.history import Event, Header, History
from checkers.history.operation import NOTHING_THERE

Answer = tuple[Any, Any, str]  # state after, value, outcome

MODELS = (
    "register",
    "unique-register",
    "cas-register",
    "deleting-register",
    "counter",
    "set",
    "queue",
    "unordered-queue",
    "stack",
    "priority-queue",
    "mutex",
    "reentrant-mutex",
    "fenced-mutex",
    "list",
    "kv",
    "multi-register",
)

NAMES = {"unique-register": "register", "deleting-register": "cas-register"}
"""What the checker calls them, where it is another name."""


def history(model: str, chance: random.Random, most: int = 6, length: int = 12) -> History:
    """Up to `most` operations, begun within `length` moments.

    Half of the histories are answered truly, in the others up to two answers are not.
    """
    count = chance.randint(0, most)
    asked = [_ASK[model](chance, place) for place in range(count)]
    spans = sorted((begun := chance.randint(0, length), begun + chance.randint(0, 6)) for _ in range(count))
    answers = _answers(model, chance, asked, spans)
    if count and chance.random() < 0.5:
        for _ in range(chance.randint(1, 2)):
            _spoil(model, chance, asked, answers)
    moments = [(start, 0, chance.random(), place) for place, (start, _) in enumerate(spans)]
    moments += [(end, 1, chance.random(), place) for place, (_, end) in enumerate(spans)]
    events: list[Event] = []
    for _, ends, _, place in sorted(moments):
        f, key, value = asked[place]
        outcome = "invoke"
        if ends:
            value, outcome = answers[place]
        if outcome == "open":
            continue
        error = None
        if outcome == "fail":
            error = "mismatch" if f == "cas" else NOTHING_THERE
        events.append(
            Event(
                index=len(events), time_ns=len(events), type=outcome, process=place, f=f, key=key,  # type: ignore[arg-type]  # one of the four
                value=value, error=error,
            )
        )  # fmt: skip
    return History.of(Header(), events)


def _answers(
    model: str, chance: random.Random, asked: list[Any], spans: list[tuple[int, int]]
) -> list[tuple[Any, str]]:
    answers: list[tuple[Any, str]] = [(None, "open")] * len(asked)
    states: dict[Any, Any] = {}
    for place in sorted(range(len(asked)), key=lambda each: sum(spans[each])):
        f, key, value = asked[place]
        crashed = chance.random() < 0.2
        part = None if model == "multi-register" else key
        state = states.get(part, _FIRST[model]() if model in _FIRST else None)
        if not crashed or chance.random() < 0.5:
            states[part], shown, outcome = _ANSWER[model](state, f, value)
            answers[place] = (shown, outcome)
        if crashed:
            answers[place] = (None, chance.choice(("open", "info")))
    return answers


def _spoil(model: str, chance: random.Random, asked: list[Any], answers: list[tuple[Any, str]]) -> None:
    place = chance.randrange(len(asked))
    f, _, _ = asked[place]
    if answers[place][1] == "ok" and f in ("read", "get", "dequeue", "pop", "poll", "txn"):
        answers[place] = (_OTHER[model](chance, answers[place][0]), "ok")
    elif (f in ("cas", "acquire", "release") or _is_deletion(f, asked[place][2])) and answers[place][1] in (
        "ok",
        "fail",
    ):
        answers[place] = (asked[place][2], "fail" if answers[place][1] == "ok" else "ok")


def _register(state: Any, f: str, value: Any) -> Answer:
    if f == "read":
        return state, state, "ok"
    if f == "write":
        return value, value, "ok"
    return (value[1], value, "ok") if state == value[0] else (state, value, "fail")


def _deleting(state: Any, f: str, value: Any) -> Answer:
    """A deletion of nothing is refused, and says so."""
    if _is_deletion(f, value) and state is None:
        return None, None, "fail"
    return _register(state, f, value)


def _is_deletion(f: str, value: Any) -> bool:
    return f == "write" and value is None


def _counter(state: Any, f: str, value: Any) -> Answer:
    return (state, state, "ok") if f == "read" else (state + value, value, "ok")


def _collection(state: Any, f: str, value: Any) -> Answer:
    return (state, list(state), "ok") if f == "read" else ([*state, value], value, "ok")


def _set(state: Any, f: str, value: Any) -> Answer:
    return (state, list(state), "ok") if f == "read" else (sorted({*state, value}), value, "ok")


def _queue(state: Any, f: str, value: Any) -> Answer:
    if f == "enqueue":
        return [*state, value], value, "ok"
    return (state[1:], state[0], "ok") if state else (state, None, "ok")


def _stack(state: Any, f: str, value: Any) -> Answer:
    """A priority queue is a sorted one."""
    if f in ("push", "insert"):
        return [*state, value] if f == "push" else sorted([*state, value]), value, "ok"
    return state[:-1], state[-1] if state else None, "ok"


def _mutex(state: Any, f: str, value: Any) -> Answer:
    return (f == "acquire", value, "ok") if state == (f == "release") else (state, value, "fail")


def _reentrant(state: Any, f: str, value: Any) -> Answer:
    """Owner and depth."""
    owner, depth = state
    if f == "acquire":
        return ((value, depth + 1), value, "ok") if owner in (None, value) else (state, value, "fail")
    if owner != value:
        return state, value, "fail"
    return ((owner, depth - 1) if depth > 1 else (None, 0)), value, "ok"


def _fenced(state: Any, f: str, value: Any) -> Answer:
    """Owner and fences given so far."""
    owner, given = state
    if f == "acquire" and owner is None:
        return (value["client"], given + 1), {**value, "fence": given + 1}, "ok"
    if f == "release" and owner == value["client"]:
        return (None, given), value, "ok"
    return state, value, "fail"


def _text(state: Any, f: str, value: Any) -> Answer:
    if f == "get":
        return state, state, "ok"
    return (value if f == "put" else state + value), value, "ok"


def _transaction(state: Any, f: str, value: Any) -> Answer:
    values = dict(state)
    shown = []
    for word, key, new in value:
        if word == "w":
            values[key] = new
        shown.append([word, key, values.get(key)])
    return values, shown, "ok"


def _ask_register(chance: random.Random, place: int) -> Any:
    f = chance.choice(("read", "write"))
    return f, "x", None if f == "read" else chance.randint(1, 2)


def _ask_unique(chance: random.Random, place: int) -> Any:
    f = chance.choice(("read", "write"))
    return f, "x", None if f == "read" else place + 1


def _ask_cas(chance: random.Random, place: int) -> Any:
    if chance.random() < 0.6:
        return _ask_register(chance, place)
    return "cas", "x", [chance.choice((None, 1, 2, 3)), chance.randint(1, 3)]


def _ask_deleting(chance: random.Random, place: int) -> Any:
    return ("write", "x", None) if chance.random() < 0.35 else _ask_cas(chance, place)


def _ask(f: str, values: Callable[[random.Random, int], Any], look: str = "read") -> Callable[..., Any]:
    def ask(chance: random.Random, place: int) -> Any:
        return (look, "x", None) if chance.random() < 0.5 else (f, "x", values(chance, place))

    return ask


def _ask_lock(owner: Callable[[random.Random], Any]) -> Callable[..., Any]:
    return lambda chance, place: (chance.choice(("acquire", "release")), "x", owner(chance))


def _ask_text(chance: random.Random, place: int) -> Any:
    f = chance.choice(("get", "get", "put", "append"))
    return f, chance.choice("xxy"), None if f == "get" else chance.choice("ab")


def _ask_transaction(chance: random.Random, place: int) -> Any:
    words = [chance.choice("rw") for _ in range(chance.randint(1, 2))]
    return (
        "txn",
        None,
        [[word, chance.choice("xy"), None if word == "r" else chance.randint(1, 2)] for word in words],
    )


def _other_transaction(chance: random.Random, shown: Any) -> Any:
    return [[word, key, chance.choice((None, 1, 2)) if word == "r" else value] for word, key, value in shown]


def _other_elements(chance: random.Random, shown: Any) -> Any:
    return chance.choice((shown[:-1], shown[::-1], [*shown, chance.randint(1, 7)]))


_ASK: dict[str, Callable[..., Any]] = {
    "register": _ask_register,
    "unique-register": _ask_unique,
    "cas-register": _ask_cas,
    "deleting-register": _ask_deleting,
    "counter": _ask("add", lambda chance, place: chance.choice((1, 1, 2, -1))),
    "set": _ask("add", lambda chance, place: chance.randint(1, 5)),
    "queue": _ask("enqueue", lambda chance, place: chance.choice((place, place, 1)), "dequeue"),
    "unordered-queue": _ask("enqueue", lambda chance, place: chance.choice((place, place, 1)), "dequeue"),
    "stack": _ask("push", lambda chance, place: chance.choice((place, place, 1)), "pop"),
    "priority-queue": _ask("insert", lambda chance, place: chance.randint(1, 4), "poll"),
    "mutex": _ask_lock(lambda chance: None),
    "reentrant-mutex": _ask_lock(lambda chance: chance.choice("ab")),
    "fenced-mutex": _ask_lock(lambda chance: {"client": chance.choice("ab")}),
    "list": _ask("append", lambda chance, place: chance.randint(1, 4)),
    "kv": _ask_text,
    "multi-register": _ask_transaction,
}
_FIRST: dict[str, Callable[[], Any]] = {
    "counter": int, "set": list, "queue": list, "list": list, "kv": str, "multi-register": dict,
    "unordered-queue": list, "stack": list, "priority-queue": list, "mutex": bool,
    "reentrant-mutex": lambda: (None, 0), "fenced-mutex": lambda: (None, 0),
}  # fmt: skip
_ANSWER: dict[str, Callable[[Any, str, Any], Answer]] = {
    "register": _register,
    "unique-register": _register,
    "cas-register": _register,
    "deleting-register": _deleting,
    "counter": _counter,
    "set": _set,
    "queue": _queue,
    "unordered-queue": _queue,
    "stack": _stack,
    "priority-queue": _stack,
    "mutex": _mutex,
    "reentrant-mutex": _reentrant,
    "fenced-mutex": _fenced,
    "list": _collection,
    "kv": _text,
    "multi-register": _transaction,
}
_OTHER: dict[str, Callable[[random.Random, Any], Any]] = {
    "register": lambda chance, shown: chance.choice((None, 1, 2)),
    "unique-register": lambda chance, shown: chance.choice((None, 1, 2, 3, 4, 5, 6)),
    "cas-register": lambda chance, shown: chance.choice((None, 1, 2, 3)),
    "deleting-register": lambda chance, shown: chance.choice((None, 1, 2, 3)),
    "counter": lambda chance, shown: shown + chance.choice((-1, 1)),
    "set": _other_elements,
    **dict.fromkeys(
        ("queue", "unordered-queue", "stack", "priority-queue"),
        lambda chance, shown: chance.choice((None, 0, 1, 2, 3)),
    ),
    "list": _other_elements,
    "kv": lambda chance, shown: shown + chance.choice("ab") if chance.random() < 0.5 else shown[1:],
    "multi-register": _other_transaction,
}
