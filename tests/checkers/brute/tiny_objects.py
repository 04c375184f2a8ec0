"""Tiny histories of single operations: at most seven, on one key or two, by two or three clients.

Two kinds, both from a seed. `guessed`: intervals by chance, answers from a few values. `answered`: an object that is
right, or has one weakness, answers at some moment between the question and the answer.
"""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.checkers.brute.histories import Line, Recorder

WEAKNESSES = (
    "none",
    "stale",  # an answer from an earlier state
    "lost",  # an effect that never comes
    "late",  # an effect after the answer
    "twice",  # an effect that comes twice
    "undead",  # a refused operation that happened
    "half",  # of a transaction, a part
)


def drawn(seed: int, *, model: str, unique: bool = False) -> list[Line]:
    """The lines of one history. `unique`: no value is written twice."""
    rng = random.Random(f"objects {model} {unique} {seed}")
    if seed % 3 == 0:
        return guessed(rng, model, unique)
    return answered(rng, model, unique, rng.choice(WEAKNESSES))


def question(rng: random.Random, model: str, fresh: list[int], unique: bool) -> tuple[str, Any]:
    """An operation and its value."""
    fresh[0] += 1
    value: Any = fresh[0] if unique else rng.randint(0, 2)
    old = rng.choice([None, *range(1, fresh[0])] if unique else [0, 1, 2])
    match model:
        case "register":
            return rng.choice((("read", None), ("write", value)))
        case "cas-register":
            return rng.choice((("read", None), ("write", value), ("cas", [old, value])))
        case "multi-register":
            micros = [
                rng.choice((["r", key, None], ["w", key, value]))
                for key in rng.choice(("x", "xy", "xy", "xyx"))
            ]
            return "txn", micros
        case "kv":
            text = rng.choice(("", "a", "b", "ab")) if not unique else "abcdefghij"[value % 10]
            return rng.choice((("get", None), ("put", text), ("append", text)))
        case "list":
            return rng.choice((("read", None), ("append", value)))
        case "set":
            return rng.choice((("read", None), ("add", value)))
        case "counter":
            return rng.choice((("read", None), ("add", rng.choice((-2, -1, 1, 1, 2, 3)))))
        case "queue" | "unordered-queue":
            return rng.choice((("dequeue", None), ("enqueue", value)))
        case "stack":
            return rng.choice((("pop", None), ("push", value)))
        case "priority-queue":
            return rng.choice((("poll", None), ("insert", rng.randint(1, 9) if unique else value)))
        case _ if model.endswith("mutex"):
            named = {"client": rng.choice("ab")} if unique and model != "mutex" else None
            return rng.choice((("acquire", named), ("acquire", named), ("release", named)))
        case _:
            raise AssertionError(model)


@dataclass(slots=True)
class _Running:
    f: str
    asked: Any
    key: str | None
    answer: Any = None
    done: bool = False
    refused: bool = False
    mismatch: bool = False
    client: Any = None


LOOKS = ("read", "get", "dequeue", "pop", "poll")


def apply(model: str, held: Any, running: _Running) -> tuple[Any, Any]:
    """What the object holds afterwards, and the answer."""
    f, asked = running.f, running.asked
    match f:
        case "read" | "get":
            empty: Any = {"kv": "", "list": [], "set": [], "counter": 0}.get(model)
            return held, deepcopy(empty if held is None else held)
        case "write" | "put":
            return asked, asked
        case "cas":
            running.mismatch = held != asked[0]
            return (held if running.mismatch else asked[1]), asked
        case "add" if model == "counter":
            return (held or 0) + asked, asked
        case "add":
            return sorted({*(held or []), asked}), asked
        case "append" if model == "kv":
            return (held or "") + asked, asked
        case "append" | "enqueue" | "push":
            return [*(held or []), asked], asked
        case "insert":
            return sorted([*(held or []), asked]), asked
        case "dequeue":
            return (held or [])[1:], (held or [None])[0]
        case "pop" | "poll":
            return (held or [])[:-1], (held or [None])[-1]
        case "acquire" | "release":
            return _lock(model, held or (None, 0, 0, 0), running)
        case "txn":
            values, told = dict(held or {}), []
            for word, key, value in asked:
                if word == "w":
                    values[key] = value
                told.append([word, key, values.get(key)])
            return values, told
        case _:
            raise AssertionError(f)


def _lock(model: str, held: Any, running: _Running) -> tuple[Any, Any]:
    owner, count, fence, given = held
    asked, who = running.asked, (running.asked or {}).get("client", running.client)
    may = owner == who or model == "mutex"
    running.mismatch = (
        not (count and may) if running.f == "release" else count > 0 and not (may and "reentrant" in model)
    )
    if running.mismatch:
        return held, asked
    if running.f == "release":
        return (owner if count > 1 else None, count - 1, fence, given), asked
    fence = fence if count else given + 1
    shown = {**(asked or {}), "fence": fence} if "fenced" in model else asked
    return (who, count + 1, fence, max(given, fence)), shown


def answered(rng: random.Random, model: str, unique: bool, weakness: str) -> list[Line]:
    keys: list[str | None] = [None] if model == "multi-register" else rng.choice((["x"], ["x"], ["x", "y"]))  # type: ignore[assignment]
    recorder = Recorder(rng.choice((2, 2, 3, 3)))
    fresh = [0]
    left = rng.choice((3, 4, 5, 6, 7))
    lost = rng.choice((0.0, 0.1, 0.3))
    held: dict[str | None, Any] = dict.fromkeys(keys)
    past: dict[str | None, list[Any]] = {key: [None] for key in keys}
    late: list[_Running] = []
    running: dict[int, _Running] = {}

    def happen(one: _Running) -> None:
        weak = weakness if rng.random() < 0.5 else "none"
        key, asked = one.key, one.asked
        if weak == "half" and one.f == "txn":
            one.asked = asked[: rng.randint(0, len(asked))]
        after, one.answer = apply(model, rng.choice(past[key]) if weak == "stale" else held[key], one)
        if weak == "stale" and after is not held[key] and one.f not in ("read", "get"):
            after, _ = apply(model, held[key], one)
        if weak == "half" and one.f == "txn":
            _, one.answer = apply(model, held[key], _Running(one.f, asked, key))
        if weak == "twice" and one.f != "cas":
            after, _ = apply(model, after, one)
        if weak == "late":
            late.append(one)
        elif weak != "lost" and not (one.refused and weakness != "undead"):
            held[key] = after
            past[key].append(after)
        one.asked = asked
        one.done = True

    while left or running:
        client = rng.randrange(recorder.clients)
        if late and rng.random() < 0.2:
            one = late.pop()
            held[one.key], _ = apply(model, held[one.key], one)
            past[one.key].append(held[one.key])
        if client not in running:
            if left:
                left -= 1
                f, asked = question(rng, model, fresh, unique)
                one = _Running(f, asked, rng.choice(keys), refused=rng.random() < 0.08, client=client)
                recorder.add(client, "invoke", f, None if f in LOOKS else asked, key=one.key)
                running[client] = one
        elif not running[client].done:
            if rng.random() < lost / 2:
                _answer(recorder, client, running.pop(client), "info")
            else:
                happen(running[client])
        else:
            one = running.pop(client)
            outcome = "info" if rng.random() < lost else "fail" if one.refused or one.mismatch else "ok"
            _answer(recorder, client, one, outcome)
    return recorder.lines


def _answer(recorder: Recorder, client: int, one: _Running, outcome: str) -> None:
    value = one.answer if outcome == "ok" else None if one.f in LOOKS else one.asked
    error = ("mismatch" if one.mismatch else "refused") if outcome == "fail" else None
    recorder.add(client, outcome, one.f, value, key=one.key, error=error)


def guessed(rng: random.Random, model: str, unique: bool) -> list[Line]:
    keys: list[str | None] = [None] if model == "multi-register" else ["x"]
    recorder = Recorder(rng.choice((2, 3, 3)))
    fresh = [0]
    questions = [question(rng, model, fresh, unique) for _ in range(rng.choice((3, 4, 5, 6)))]
    running: dict[int, _Running] = {}
    outcomes = rng.choice((("ok",), ("ok", "ok", "ok", "info"), ("ok", "ok", "ok", "info", "fail")))
    asked_all = list(questions)
    while questions or running:
        client = rng.randrange(recorder.clients)
        if client in running:
            one = running.pop(client)
            one.answer = _guess(rng, model, one, asked_all)
            outcome = rng.choice(outcomes)
            one.mismatch = one.f == "cas" and rng.random() < 0.5
            _answer(recorder, client, one, outcome)
        elif questions:
            f, asked = questions.pop(0)
            one = _Running(f, asked, rng.choice(keys), client=client)
            recorder.add(client, "invoke", f, None if f in LOOKS else asked, key=one.key)
            running[client] = one
    return recorder.lines


def _guess(rng: random.Random, model: str, one: _Running, questions: list[tuple[str, Any]]) -> Any:
    """An answer that some of the questions, in some order, would have given."""
    some = rng.sample(questions, rng.randint(0, len(questions)))
    held: Any = None
    for f, asked in some:
        held, _ = apply(model, held, _Running(f, asked, one.key))
    return apply(model, held, _Running(one.f, one.asked, one.key))[1]
