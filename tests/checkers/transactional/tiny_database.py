"""A transactional store in a page, at a chosen isolation level, with bugs: it makes true histories for the checker.

Transactions run micro-operation by micro-operation, interleaved by chance. Levels:

    strict-serializable   one after the other, within their interval
    serializable          one after the other, but who only reads may see an old state
    strong-snapshot-isolation   reads a snapshot of the newest state, writes at the end, the first committer wins
    read-committed        reads the newest state each time, writes at the end
    dirty                 reads and writes in place; a key that was written belongs to its writer until that ends

`chaos` is how often an answer is bent afterwards: then nothing is promised.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from checkers.history import History
from tests.checkers.transactional.txns import Txn, history

LEVELS = (
    "strict-serializable",
    "serializable",
    "strong-snapshot-isolation",
    "read-committed",
    "dirty",
)


@dataclass(slots=True)
class Running:
    process: int
    plan: list[tuple[str, str]]
    begin: float
    snapshot: dict[str, list[int]]
    micros: list[list[Any]] = field(default_factory=list)
    writes: dict[str, list[int]] = field(default_factory=dict)
    since: int = 0


class TinyDatabase:
    """One history, fully drawn from `chance`."""

    def __init__(self, chance: random.Random, workload: str, level: str, chaos: float = 0.0) -> None:
        self.chance = chance
        self.append = workload == "append"
        self.level = level
        self.chaos = chaos
        self.state: dict[str, list[int]] = {}
        self.past: list[dict[str, list[int]]] = [{}]
        self.written: dict[str, int] = {}
        self.counter = 0
        self.clock = 0.0
        self.done: list[Txn] = []
        self.running: list[Running] = []
        self.next_process = 0

    def history(self, count: int, clients: int = 3, keys: str = "xyz") -> History:
        free = list(range(clients))
        self.next_process = clients
        running = self.running
        begun = 0
        while begun < count or running:
            self.clock += 1
            if begun < count and free and (not running or self.chance.random() < 0.4):
                process = free.pop(self.chance.randrange(len(free)))
                running.append(self._begin(process, keys))
                begun += 1
                continue
            txn = self.chance.choice(running)
            if self._serial() and txn.plan and any(each.micros for each in running if each is not txn):
                continue
            if txn.plan:
                self._step(txn)
            else:
                running.remove(txn)
                free.append(self._end(txn))
        return history(*self.done)

    def _serial(self) -> bool:
        return self.level in ("strict-serializable", "serializable")

    def _begin(self, process: int, keys: str) -> Running:
        size = self.chance.randint(1, 4)
        plan = [
            (
                self.chance.choice(("r", "w", "r" if self.chance.random() < 0.8 else "rp")),
                self.chance.choice(keys),
            )
            for _ in range(size)
        ]
        return Running(process=process, plan=plan, begin=self.clock, snapshot={}, since=-1)

    def _snapshot(self, txn: Running) -> None:
        if txn.since >= 0:
            return
        txn.since = len(self.past) - 1
        alone = all(f != "w" for f, _ in txn.plan)
        if self.level == "serializable" and alone:
            txn.since = self.chance.randrange(len(self.past))
        txn.snapshot = {key: list(values) for key, values in self.past[txn.since].items()}

    def _step(self, txn: Running) -> None:
        self._snapshot(txn)
        f, key = txn.plan.pop(0)
        if f == "w":
            dirty = self.level == "dirty"
            if dirty and any(key in each.writes for each in self.running if each is not txn):
                txn.plan.clear()  # it would wait, perhaps forever: it ends with what it has
                return
            self.counter += 1
            txn.micros.append(["append" if self.append else "w", key, self.counter])
            txn.writes.setdefault(key, []).append(self.counter)
            if dirty:
                self.state[key] = [*self.state.get(key, []), self.counter]
            return
        match self.level:
            case "dirty":
                values = self.state.get(key, [])
            case "read-committed":
                values = self.state.get(key, []) + txn.writes.get(key, [])
            case _:
                values = txn.snapshot.get(key, []) + txn.writes.get(key, [])
        txn.micros.append([f, key, self._answer(values)])

    def _answer(self, values: list[int]) -> Any:
        values = list(values)
        if self.chance.random() < self.chaos:
            match self.chance.randrange(4):
                case 0:
                    values = values[:-1]
                case 1:
                    values = values[:-2] + values[-1:]
                case 2:
                    values.append(self.chance.randint(1, self.counter + 2))
                case 3:
                    self.chance.shuffle(values)
        if self.append:
            return values or None
        return values[-1] if values else None

    def _end(self, txn: Running) -> int:
        self._snapshot(txn)
        fate = self.chance.random()
        conflict = self.level == "strong-snapshot-isolation" and any(
            self.written.get(key, 0) > txn.since for key in txn.writes
        )
        dirty = self.level == "dirty"
        aborts = (conflict or fate < 0.1) and not dirty
        if not aborts and not dirty:
            for key, values in txn.writes.items():
                self.state[key] = self.state.get(key, []) + values
                self.written[key] = len(self.past)
            self.past.append({key: list(values) for key, values in self.state.items()})
        lost = self.chance.random() < 0.1
        if lost or (aborts and self.chance.random() < 0.2):
            end = None if self.chance.random() < 0.5 else self.clock
            self.done.append(
                Txn(type="info", process=txn.process, micros=txn.micros, begin=txn.begin, end=end)
            )
            self.next_process += 1
            return self.next_process - 1
        bent = self.chance.random() < self.chaos / 4
        self.done.append(
            Txn(
                type="fail" if aborts != bent else "ok",
                process=txn.process,
                micros=txn.micros,
                begin=txn.begin,
                end=self.clock,
            )
        )
        return txn.process
