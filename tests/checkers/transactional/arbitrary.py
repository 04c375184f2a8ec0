"""Tiny histories of no store at all: reads that show anything that could have been there.

What a store would never answer is met here as often as what it would: first reads and later ones of a key, own writes
seen or not, null, transactions that failed or whose end nobody knows, clients that overlap in every way.
"""

from __future__ import annotations

import random
from typing import Any

from checkers.history import History
from checkers.transactional.columns import Workload
from tests.checkers.transactional.txns import Txn, history

ENDS = ("ok",) * 8 + ("info",) * 3 + ("fail",)


def arbitrary(chance: random.Random, workload: Workload, count: int, keys: str) -> History:
    """`count` transactions of one to three micro-operations."""
    plans = [
        [(chance.choice("wwrrr"), chance.choice(keys)) for _ in range(chance.randint(1, 3))]
        for _ in range(count)
    ]
    written: dict[str, list[int]] = {key: [] for key in keys}
    for plan in plans:
        for f, key in plan:
            if f == "w":
                written[key].append(1 + sum(map(len, written.values())))
    hidden = {key: _nearly_sorted(chance, values) for key, values in written.items()}
    left = {key: list(values) for key, values in written.items()}
    free = list(range(chance.randint(1, count)))
    done = []
    for number, plan in enumerate(plans):
        micros: list[list[Any]] = []
        own: dict[str, list[int]] = {key: [] for key in keys}
        for f, key in plan:
            if f == "w":
                own[key].append(left[key].pop(0))
                micros.append(["append" if workload == "append" else "w", key, own[key][-1]])
            else:
                micros.append(["r", key, _answer(chance, workload, hidden[key], own[key])])
        process = chance.choice(free)
        begin = chance.random() * 10 if len(free) > 1 else 2.0 * number
        end = begin + (chance.random() * 5 if len(free) > 1 else 1.0)
        type_ = chance.choice(ENDS)
        done.append(Txn(type=type_, process=process, micros=micros, begin=begin, end=end))  # type: ignore[arg-type]  # one of the three
    return history(*_one_at_a_time(done))


def _nearly_sorted(chance: random.Random, values: list[int]) -> list[int]:
    return sorted(values, key=lambda each: each + chance.choice((0, 0, 0, 1.5, -1.5)))


def _answer(chance: random.Random, workload: Workload, order: list[int], own: list[int]) -> Any:
    if workload == "rw-register":
        if own and chance.random() < 0.9:
            return own[-1]
        return chance.choice([None, *order])
    others = [each for each in order if each not in own]
    kind = chance.random()
    if kind < 0.7:
        mine = own if kind < 0.6 else own[: chance.randint(0, len(own))]
        return [*others[: chance.randint(0, len(others))], *mine] or None
    return order[: chance.randint(0, len(order))] or None


def _one_at_a_time(txns: list[Txn]) -> list[Txn]:
    """Each client asks for one after the other, and for none after an unknown end: then another goes on."""
    moved, last, heir = [], dict[int, float](), dict[int, int]()
    for txn in sorted(txns, key=lambda each: each.begin or 0):
        process = heir.get(txn.process, txn.process)
        begin = max(txn.begin or 0.0, last.get(process, 0.0) + 0.01)
        end = max(txn.end or 0.0, begin + 0.01)
        last[process] = end
        if txn.type == "info":
            heir[txn.process] = process + 100
        moved.append(Txn(type=txn.type, process=process, micros=txn.micros, begin=begin, end=end))
    return moved
