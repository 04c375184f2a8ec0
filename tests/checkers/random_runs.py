"""Runs of a store of registers by chance: right ones, and such that are wrong in a few places.

A true order of writes is drawn first. Replicas show prefixes of it, nodes may be replaced, clients lose answers; then
answers and dumps are spoilt. Most spoilt runs break one rule or two, which a run of pure chance does not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checkers.history import jsonl
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.history.stored import StoredOperations

NODES = ("n1", "n2", "n3")
ODD: tuple[Any, ...] = ("x", True, 1.5, [1, 2], [1, 2, 3], 1 << 61, {"a": 1})
ERRORS = ("timeout", "rolled back (216)", "rolled back (217)", "read-only (7)", "no quorum (295)")
Moment = tuple[float, dict[str, Any]]


@dataclass
class Run:
    """A run by a seed. In every third one nothing is wrong but that replicas go back."""

    seed: int
    header: Header = field(init=False)
    events: list[Event] = field(init=False)

    def __post_init__(self) -> None:
        self._chance = chance = random.Random(self.seed)
        is_forgetful = chance.random() < 1 / 3
        self._wrong = 0.0 if is_forgetful else chance.choice((0.0, 0.05, 0.1, 0.3))
        self._odd = 0.0 if is_forgetful else chance.choice((0.0, 0.0, 0.0, 0.03))
        self._forgets = 0.3 if is_forgetful else 0.0  # the share of reads in which a replica may go back
        self._unique = is_forgetful or chance.random() < 0.4
        self._longest = 2 if is_forgetful else chance.choice((2, 12, 40))
        self._sets = chance.choice((("read", "write", "cas"), ("cas", "cas", "cas")))
        self._modes = (
            None,
            "linearizable",
            "dirty",
            "dirty",
            *("read-confirmed",) * (30 if is_forgetful else 4),
        )
        self._hides = chance.choice((0.0, 0.0, 0.0, 0.5))  # the share of reads of which no node is told
        self._names_roles = chance.random() < 0.9
        self._keys = ("a", "b", "c")[: chance.randint(1, 3)]
        self._asked: list[tuple[str, Any]] = []
        self._log: list[tuple[str, Any]] = []  # the true order of the writes
        self._shown = dict.fromkeys(NODES, 0)  # how many of them a node has shown
        self._last = 10
        self._moments: list[Moment] = []
        self._kept = 0
        self.header = Header(nodes=NODES, quorum=2, owner=chance.choice((None, "n1")))
        self._load()
        self._end()
        self.events = [
            Event(index=index, time_ns=int(at * 100), **fields)
            for index, (at, fields) in enumerate(sorted(self._moments, key=lambda each: each[0]))
        ]

    @property
    def is_odd(self) -> bool:
        """Whether values may be no numbers."""
        return self._odd > 0

    def read_twice(self, folder: Path) -> tuple[History, History]:
        """Its record as objects, and as columns."""
        path = folder / "history.jsonl"
        path.unlink(missing_ok=True)
        jsonl.write(path, self.header, self.events)
        with patch.object(jsonl, "LARGE", 0):
            stored = jsonl.read(path)
        assert isinstance(stored.operations, StoredOperations)
        return jsonl.parse(path.read_bytes()), stored

    def _load(self) -> None:
        chance = self._chance
        drawn = []
        for process in range(chance.randint(2, 40)):
            begin, took = chance.uniform(0, 60), chance.uniform(1, self._longest)
            drawn.append((begin + took * chance.random(), begin, begin + took, process))
        come = sorted(chance.uniform(0, 60) for _ in range(chance.choice((0, 0, 0, 6))))
        for moment, begin, end, process in sorted(drawn):
            while come and come[0] < moment:
                self._replace(chance.choice(NODES), come.pop(0))
            self._ask(moment, begin, end, process)

    def _replace(self, node: str, at: float) -> None:
        self._shown[node] = 0
        told = {"nodes": [*NODES], "quorum": 2, "settled": True, "joins": node}
        self._moments.append((at, {"type": "info", "process": "harness", "f": "members", "value": told}))

    def _ask(self, moment: float, begin: float, end: float, process: int) -> None:
        chance, key = self._chance, self._chance.choice(self._keys)
        f = chance.choice(("read", "read", "write", *self._sets))
        node = chance.choice(NODES) if f == "read" else chance.choice(("n1", "n1", "n2"))
        role: str | None = "owner" if node == "n1" else "replica"
        if chance.random() < 0.1:
            role = chance.choice(("owner", "replica", None))
        if not self._names_roles:
            role = None
        mode = chance.choice(self._modes)
        asked: dict[str, Any] = {"process": process, "f": f, "key": key, "node": node}
        asked |= {"mode": mode if f == "read" else None}
        how, error = chance.choice(("ok",) * 8 + ("fail", "info", "info", "")), None
        value: Any = self._value()
        if f == "cas":
            value = [self._now(key) if chance.random() < 0.8 else self._value(), value]
            if how in ("ok", "info") and value[0] != self._now(key):
                how = "fail"
        if how in ("fail", "info"):
            error = chance.choice(ERRORS)
        if f != "read":
            self._asked.append((key, value[1] if f == "cas" else value))
        if f != "read" and how in ("ok", "info", "") and (how == "ok" or chance.random() < 0.7):
            self._log.append((key, value[1] if f == "cas" else value))
        question = None if f == "read" else self._spoilt(value)
        answer: Any = self._read(key, node, mode) if f == "read" else None
        if f == "read" and chance.random() < self._hides:
            asked["node"] = None
        if f == "cas" and how == "fail":
            answer = [*value, self._now(key)] if question is value else None
        self._moments.append((begin, {**asked, "type": "invoke", "value": question}))
        if how:
            ended = {"type": how, "value": self._spoilt(answer) if f == "read" else answer, "role": role}
            if f == "read" and chance.random() < self._hides:
                ended["mode"] = "read-confirmed"
            self._moments.append((end, {**asked, **ended, "error": error}))

    def _value(self) -> int | None:
        if self._chance.random() < 0.1:
            return None
        self._last += 1
        return self._last if self._unique else self._chance.randint(1, 6)

    def _spoilt(self, value: Any) -> Any:
        if self._chance.random() < self._odd:
            return self._chance.choice(ODD)
        return value

    def _now(self, key: str, count: int | None = None) -> Any:
        return next((value for under, value in reversed(self._log[:count]) if under == key), None)

    def _read(self, key: str, node: str, mode: str | None) -> Any:
        chance = self._chance
        if chance.random() < self._wrong:
            before = [value for under, value in self._asked if under == key]
            return chance.choice((*before, *before, *before, None, *(self._last + more for more in range(4))))
        if node != "n1" and mode != "linearizable":
            first = 0 if chance.random() < self._forgets else self._shown[node]
            self._shown[node] = chance.randint(min(first, len(self._log)), len(self._log))
            return self._now(key, self._shown[node])
        return self._now(key)

    def _end(self) -> None:
        chance = self._chance
        count = len(self._log)
        # The rest is lost everywhere.
        self._kept = count if chance.random() < 0.85 else chance.randint(0, count)
        settled = chance.choice((True, True, None, False))
        if settled is not None:
            self._moments.append(
                (
                    100,
                    {"type": "info", "process": "harness", "f": "settled", "value": settled},
                )
            )
        has_ended = chance.random() < 0.95
        for place, node in enumerate(NODES):
            if not has_ended or chance.random() < 0.05:
                continue
            fields = {"process": 1_000 + place, "f": "dump", "node": node, "phase": "final"}
            rows = [row for key in self._keys for row in self._row(key)]
            value = {"spaces": {"register": rows}}
            self._moments.append((101 + place, {**fields, "type": "invoke"}))
            self._moments.append((104 + place, {**fields, "type": "ok", "value": value}))

    def _row(self, key: str) -> list[list[Any]]:
        """Most often what there is, once."""
        chance, count = self._chance, self._kept
        if chance.random() < self._wrong:
            count = chance.randint(0, count)
        value = self._spoilt(self._now(key, count))
        if chance.random() < self._wrong:
            key, value = chance.choice((key, "z")), chance.choice((value, chance.randint(1, self._last)))
        if value is None and chance.random() < 0.7:
            return []
        return [[key, value]] * (2 if chance.random() < self._wrong / 4 else 1)
