"""Tiny histories for the domain checkers: stores that are right, or have one weakness, and answers by chance."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.checkers.brute import tiny_objects
from tests.checkers.brute.domains import TOTAL
from tests.checkers.brute.histories import Line, Recorder


def with_final_reads(seed: int, *, model: str) -> list[Line]:
    """A set or a register, every second time with final reads of every key, now and then wrong ones."""
    rng = random.Random(f"final {model} {seed}")
    lines = tiny_objects.drawn(seed, model=model, unique=True)
    shown: dict[str | None, list[Any]] = {}
    for line in lines:
        empty = line.value is None
        if line.type != "invoke" and line.f == "read" and not (line.type == "ok" and not empty):
            continue
        shown.setdefault(line.key, [])
        if line.f in ("add", "write") and line.type in ("ok", "info") and rng.random() < 0.95:
            shown[line.key].append(line.value)
    if seed % 2:
        for process, (key, values) in enumerate(shown.items(), start=100):
            value: Any = sorted(values) if model == "set" else rng.choice([None, *values, *values[-1:] * 4])
            lines.append(Line("invoke", process, "read", key=key, phase="final"))
            lines.append(Line("ok", process, "read", value, key=key, phase="final"))
    return lines


def refused_dequeues(seed: int, *, unique: bool = True) -> list[Line]:
    """A dequeue that found nothing fails with "empty"."""
    return [
        replace(line, type="fail", error="empty")
        if line.f == "dequeue" and line.type == "ok" and line.value is None
        else line
        for line in tiny_objects.drawn(seed, model="queue", unique=unique)
    ]


def queue(seed: int, *, unique: bool = True) -> list[Line]:
    """The same; every second time a drain comes last."""
    rng = random.Random(f"queue {seed}")
    lines = refused_dequeues(seed, unique=unique)
    for process, key in enumerate(sorted({str(line.key) for line in lines}) if seed % 2 else (), start=100):
        put = [
            line.value
            for line in lines
            if line.f == "enqueue" and line.type in ("ok", "info") and line.key == key
        ]
        taken = [
            line.value for line in lines if line.f == "dequeue" and line.type == "ok" and line.key == key
        ]
        left = [value for value in put if value not in taken and rng.random() < 0.9]
        if rng.random() < 0.1:
            rng.shuffle(left)
        lines.append(Line("invoke", process, "drain", key=key))
        lines.append(Line(rng.choice(("ok", "ok", "ok", "info")), process, "drain", left, key=key))
    return lines


def bank(seed: int) -> list[Line]:
    """Three accounts; a transfer may be seen half, lost half, or overdraw."""
    rng = random.Random(f"bank {seed}")
    weakness = rng.choice(("none", "half-seen", "half-lost", "overdraft", "null"))
    recorder = Recorder(2)
    held = {"a": TOTAL, "b": 0, "c": 0}
    for _ in range(rng.randint(2, 5)):
        client = rng.randrange(2)
        weak = rng.random() < 0.3
        if rng.random() < 0.5:
            source, target = rng.sample(sorted(held), 2)
            amount = rng.randint(1, 5)
            asked = {"from": source, "to": target, "amount": amount}
            recorder.add(client, "invoke", "transfer", asked)
            fits = held[source] >= amount or (weakness == "overdraft" and weak)
            if fits:
                held[source] -= amount
                held[target] += 0 if weakness == "half-lost" and weak else amount
            recorder.add(client, rng.choice(("ok", "info")) if fits else "fail", "transfer", asked)
        else:
            recorder.add(client, "invoke", "read")
            shown: dict[str, int | None] = dict(held)
            if weak and weakness == "half-seen":
                shown["a"] = rng.randint(0, TOTAL)
            if weak and weakness == "null":
                shown["b"] = None
            recorder.add(client, "ok", "read", {} if rng.random() < 0.05 else shown)
    return recorder.lines


def long_fork(seed: int) -> list[Line]:
    """Two or three keys written once, and reads of pairs of them."""
    rng = random.Random(f"long fork {seed}")
    keys = "xyz"[: rng.choice((2, 2, 3))]
    recorder = Recorder(4)
    for client, key in enumerate(keys):
        recorder.add(client, "invoke", "write", [["w", key, 1]])
        recorder.add(client, rng.choice(("ok", "ok", "info")), "write", [["w", key, 1]])
    for _ in range(rng.randint(2, 4)):
        group = rng.sample(keys, rng.choice((2, len(keys))))
        recorder.add(3, "invoke", "read", [["r", key, None] for key in group])
        recorder.add(3, "ok", "read", [["r", key, rng.choice((None, 1))] for key in group])
    return recorder.lines


def causal_reverse(seed: int) -> list[Line]:
    """Writes of values once, which may overlap; reads of some of them."""
    rng = random.Random(f"causal reverse {seed}")
    recorder = Recorder(3)
    left = list(range(1, rng.randint(3, 5)))
    running: dict[int, int] = {}
    asked: list[int] = []
    while left or running:
        client = rng.randrange(2)
        if client in running:
            outcome = rng.choice(("ok", "ok", "ok", "info", "fail"))
            value = running.pop(client)
            recorder.add(client, outcome, "write", value)
            if outcome == "fail":
                asked.remove(value)
        elif left:
            running[client] = left.pop(0)
            asked.append(running[client])
            recorder.add(client, "invoke", "write", running[client])
        if rng.random() < 0.3 and not running:
            recorder.add(2, "invoke", "read")
            first = rng.randint(0, len(asked))
            shown = asked[:first] if rng.random() < 0.6 else rng.sample(asked, first)
            recorder.add(2, "ok", "read", shown)
    return recorder.lines


def unique_ids(seed: int) -> list[Line]:
    """Numbers and texts, now and then the same again."""
    rng = random.Random(f"unique ids {seed}")
    recorder = Recorder(1)
    for _ in range(rng.randint(1, 5)):
        recorder.add(0, "invoke", "generate")
        recorder.add(0, rng.choice(("ok", "ok", "info")), "generate", rng.choice([*range(8), "1", "2"]))
    return recorder.lines


def monotonic(seed: int) -> list[Line]:
    """Rows that rise with their timestamps, which may be equal or texts; reads, some with a flaw."""
    rng = random.Random(f"monotonic {seed}")
    recorder = Recorder(2)
    held: list[dict[str, Any]] = []
    clock = rng.choice((-3, 8))
    flaws = rng.choice(
        (("",), ("lost", "swapped", "twice", "stamped early", "from nowhere", "of a failed add"))
    )
    count = rng.randint(2, 5)
    for value in range(count):
        clock += rng.choice((0, 0, 1, 2))
        row = {
            "val": value,
            "sts": rng.choice((clock, float(clock), f"{clock}", f"{clock}.00", f"{clock}e0")),
        }
        outcome = rng.choice(("ok", "ok", "ok", "info", "fail"))
        asked = row if rng.random() < 0.7 else None
        recorder.add(0, "invoke", "add", asked)
        recorder.add(0, outcome, "add", row if outcome == "ok" else asked)
        unsure = outcome == "info" or (outcome == "fail" and "of a failed add" in flaws)
        if outcome == "ok" or (unsure and rng.random() < 0.5):
            held.append(row)
        if value == count - 1 or rng.random() < 0.3:
            recorder.add(1, "invoke", "read")
            recorder.add(1, "ok", "read", _rows(rng, held, rng.choice(flaws)))
    return recorder.lines


def _rows(rng: random.Random, held: list[dict[str, Any]], flaw: str) -> list[dict[str, Any]]:
    """The rows of a store, of equal timestamps in any order; with the flaw, if there are enough rows for it."""

    def by_stamp(row: dict[str, Any]) -> tuple[float, float]:
        return float(row["sts"]), rng.random()

    shown = sorted(held, key=by_stamp)
    place = rng.randrange(len(shown)) if shown else 0
    match flaw:
        case "lost" | "twice" if shown:
            shown[place : place + 1] = shown[place : place + 1] * (0 if flaw == "lost" else 2)
        case "swapped" if place:
            shown[place - 1], shown[place] = shown[place], shown[place - 1]
        case "stamped early" if place:
            shown[place] = {**shown[place], "sts": rng.choice(shown[:place])["sts"]}
            shown.sort(key=by_stamp)
        case "from nowhere":
            shown.append({"val": 7, "sts": 100})
    return shown
