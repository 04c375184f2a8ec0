"""Masters that follow the design of the TxLog, in one thread and without a disk: they write logs that are right.

A script of numbers decides what happens next, so that any script makes a cluster. `wronged` changes one record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Records = list[list[Any]]
NAMES = ("n1", "n2", "n3")
Step = tuple[int, int, int, int]


@dataclass
class Master:
    name: str
    synced: list[list[Any]] = field(default_factory=list)
    queue: list[list[Any]] = field(default_factory=list)
    counter: int = 0
    last: dict[str, int] = field(default_factory=dict)
    acquired: set[str] = field(default_factory=set)
    posts: dict[str, tuple[list[list[Any]], int, list[list[Any]]]] = field(default_factory=dict)
    """Peer → synchronised queue, counter, and the acquired part of the incoming queue."""
    done: int = 0
    hash: bytes = b""
    number: int = 0
    lives: int = 1
    log: Records = field(default_factory=list)

    def knows(self, ref: list[Any]) -> bool:
        return ref in self.synced or ref in self.queue


class Cluster:
    def __init__(self, strategy: str = "none") -> None:
        self.masters = {name: Master(name) for name in NAMES}
        for master in self.masters.values():
            master.log.append(["life", 1, strategy])
        self._strategy = strategy

    @property
    def logs(self) -> dict[str, Records]:
        return {name: deepcopy(master.log) for name, master in self.masters.items()}

    def run(self, script: Sequence[Step]) -> Cluster:
        does = (
            self.make,
            self.post,
            self.post,
            self.acquire,
            self.add,
            self.add,
            self.catch_up,
            self.execute,
            self.restart,
        )
        for what, who, whom, how in script:
            one = self.masters[NAMES[who % 3]]
            other = self.masters[NAMES[(who + 1 + whom % 2) % 3]]
            does[what % len(does)](one, other, how)
        return self

    def drain(self) -> Cluster:
        for _ in range(4):
            for one in self.masters.values():
                for other in self.masters.values():
                    if one is not other:
                        self.post(one, other, 0)
                        self.catch_up(one, other, 0)
                        self.acquire(one, other, 0)
            for one in self.masters.values():
                self.add(one, one, 0)
        for one in self.masters.values():
            for _ in one.synced:
                self.execute(one, one, 0)
        return self

    def make(self, one: Master, _: Master, __: int) -> None:
        one.counter += 1
        one.number += 1
        name = f"{one.name}-{one.lives}-{one.number}"
        one.log.append(["made", one.counter, one.counter, name, [["write", "s", "k", name]]])
        one.queue.append([one.counter, name, one.name])
        one.queue.sort()
        one.acquired.add(name)

    def post(self, one: Master, other: Master, how: int) -> None:
        """`other` posts to `one`."""
        queue = [ref for ref in other.queue if ref[1] in other.acquired]
        has_base = not other.synced or other.synced[-1] in one.synced
        last = other.counter if has_base else None
        fresh = [ref for ref in queue if not one.knows(ref)]
        one.counter = max(one.counter, other.counter)
        one.log.append(["heard", other.name, one.counter, last, deepcopy(fresh)])
        if last is not None:
            one.last[other.name] = max(last, one.last.get(other.name, 0))
        one.queue = sorted(one.queue + fresh)
        one.posts[other.name] = (list(other.synced), other.counter, queue)

    def acquire(self, one: Master, _: Master, how: int) -> None:
        found = [ref[1] for ref in (*one.synced, *one.queue) if ref[1] not in one.acquired]
        if how % 3 == 1:
            found = found[:1]
        if found:
            one.log.append(["acquired", [[name, [["write", "s", "k", name]]] for name in found]])
            one.acquired.update(found)

    def add(self, one: Master, _: Master, how: int) -> None:
        posts = {name: post for name, post in sorted(one.posts.items()) if post[0] == one.synced}
        if how % 4:
            posts = dict(list(posts.items())[: how % 3])
        absent = [name for name in NAMES if name != one.name and name not in posts]
        bound = min(
            [one.counter, *(post[1] for post in posts.values()), *(one.last.get(each, 0) for each in absent)]
        )
        refs: list[list[Any]] = []
        for place, ref in enumerate(one.queue):
            common = all(post[2][place : place + 1] == [ref] for post in posts.values())
            if ref[1] not in one.acquired or not common or ref[0] > bound:
                break
            refs.append(ref)
        if refs:
            one.log.append(["added", len(one.synced), deepcopy(refs), bound, sorted(posts), absent])
            self._append(one, refs)

    def catch_up(self, one: Master, other: Master, _: int) -> None:
        at = len(one.synced)
        if len(other.synced) > at and other.synced[:at] == one.synced:
            refs = other.synced[at:]
            one.log.append(["caught-up", at, deepcopy(refs), other.name])
            one.counter = max(one.counter, *(ref[0] for ref in refs))
            self._append(one, refs)

    def _append(self, one: Master, refs: list[list[Any]]) -> None:
        one.synced = one.synced + refs
        one.queue = [ref for ref in one.queue if ref not in refs]

    def execute(self, one: Master, _: Master, __: int) -> None:
        if one.done < len(one.synced) and one.synced[one.done][1] in one.acquired:
            name = one.synced[one.done][1]
            one.done += 1
            one.hash = hashlib.sha256(one.hash + name.encode()).digest()[:4]
            one.log.append(["executed", one.done, name, one.hash])

    def restart(self, one: Master, _: Master, __: int) -> None:
        one.lives += 1
        one.number = 0
        one.posts.clear()
        one.log.append(["life", one.lives, self._strategy])


def _wronged(refs: list[Any], how: int) -> list[Any]:
    match how % 3:
        case 0:
            return refs[1:] if len(refs) > 1 else refs
        case 1:
            return [*refs, deepcopy(refs[0])]
        case _:
            return refs[::-1]


def wronged(logs: dict[str, Records], who: int, where: int, how: int, much: int) -> dict[str, Records]:
    """The logs with one record changed."""
    logs = deepcopy(logs)
    records = logs[NAMES[who % 3]]
    place = where % len(records)
    record = records[place]
    kinds = ("added", "executed", "added", "caught-up", "made", "heard")
    of_kind = [at for at, each in enumerate(records) if each[0] == kinds[how % len(kinds)]]
    if of_kind:
        place = of_kind[where % len(of_kind)]
        record = records[place]
    match record[0], much % 4:
        case _, 0:
            del records[place]
        case _, 1:
            records.insert(place, deepcopy(record))
        case "added" | "caught-up", 2:
            record[1] = max(0, record[1] - 1)
        case "added" | "caught-up", _:
            record[2] = _wronged(record[2], much // 4)
        case "executed", 2:
            record[1] += 1
        case "executed", _:
            record[3] = b"other"
        case "made", 2:
            record[2] = max(0, record[2] - 1)
        case "made", _:
            record[1] += 3
            record[2] += 3
        case "heard", 2:
            record[2] = max(0, record[2] - 2)
        case "heard", _:
            record[4] = []
    return logs
