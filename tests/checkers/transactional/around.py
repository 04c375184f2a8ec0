"""Random small histories around an anomaly: one by hand that shows it, with something changed and something added.

Most of them still show it, so that a class that chance meets once in a thousand histories is met in most of these.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from checkers.history import History
from checkers.transactional.columns import Workload
from tests.checkers.transactional.planted import CATALOGUE, Planted
from tests.checkers.transactional.txns import Txn, history

TRANSACTIONS = 6
"""The plain twin walks cycles of no more."""
READS = ("r", "rp")


@cache
def _showing(anomaly: str) -> tuple[Planted, ...]:
    return tuple(each for each in CATALOGUE if each.anomaly == anomaly)


def around(chance: random.Random, anomaly: str, transactions: int = TRANSACTIONS) -> tuple[History, Workload]:
    """A history drawn from `chance` around one of the catalogue's that show `anomaly`, and what it is a history of."""
    origin = chance.choice(_showing(anomaly))
    txns = [_at_a_moment(place, each) for place, each in enumerate(origin.txns)]
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        txns = _changed(chance, txns, origin.workload)
    for _ in range(chance.randint(0, max(0, transactions - len(txns)))):
        txns.append(_stranger(chance, txns, origin.workload))
    return history(*txns), origin.workload


def _at_a_moment(place: int, given: Txn) -> Txn:
    begin = 2.0 * place if given.begin is None else given.begin
    end = begin + 1.0 if given.end is None and given.begin is None else given.end
    return replace(given, begin=begin, end=end, micros=[list(each) for each in given.micros])


def _changed(chance: random.Random, txns: list[Txn], workload: Workload) -> list[Txn]:
    place = chance.randrange(len(txns))
    old = txns[place]
    new = chance.choice((_moved, _ended_otherwise, _read_otherwise, _shorter, _shuffled))(
        chance, old, workload
    )
    changed = [*txns[:place], new, *txns[place + 1 :]]
    return changed if _one_at_a_time(changed) else txns


def _moved(chance: random.Random, old: Txn, workload: Workload) -> Txn:
    begin = chance.randint(0, 20) / 2
    return replace(old, begin=begin, end=begin + chance.randint(1, 12) / 2)


def _ended_otherwise(chance: random.Random, old: Txn, workload: Workload) -> Txn:
    type_ = chance.choice(("ok", "fail", "info"))
    end = old.end if old.end is not None else (old.begin or 0) + 1
    return replace(old, type=type_, end=None if type_ == "info" and chance.random() < 0.5 else end)


def _read_otherwise(chance: random.Random, old: Txn, workload: Workload) -> Txn:
    micros = [list(each) for each in old.micros]
    reads = [each for each in micros if each[0] in READS]
    if reads:
        read = chance.choice(reads)
        if chance.random() < 0.3:
            read[0] = "rp" if read[0] == "r" else "r"
        elif workload == "append":
            read[2] = _bent(chance, read[2] or [])
        else:
            read[2] = chance.choice((None, 1, 2, 3))
    return replace(old, micros=micros)


def _bent(chance: random.Random, values: list[int]) -> list[int] | None:
    match chance.randrange(3):
        case 0:
            return values[:-1] or None
        case 1:
            return [*values, chance.randint(1, 9)]
        case _:
            return chance.sample(values, len(values)) or None


def _shorter(chance: random.Random, old: Txn, workload: Workload) -> Txn:
    if len(old.micros) < 2:
        return old
    gone = chance.randrange(len(old.micros))
    return replace(old, micros=[each for place, each in enumerate(old.micros) if place != gone])


def _shuffled(chance: random.Random, old: Txn, workload: Workload) -> Txn:
    return replace(old, micros=chance.sample(old.micros, len(old.micros)))


def _stranger(chance: random.Random, txns: list[Txn], workload: Workload) -> Txn:
    """A transaction more, which reads what others read or wrote, and writes what nobody did."""
    micros: list[list[Any]] = []
    known = [(each[1], each[2]) for one in txns for each in one.micros if each[0] in READS]
    keys = sorted({each[1] for one in txns for each in one.micros})
    fresh = 1 + max(_highest(each) for one in txns for each in one.micros)
    for _ in range(chance.randint(1, 3)):
        key = chance.choice(keys)
        if chance.random() < 0.4:
            micros.append(["append" if workload == "append" else "w", key, fresh])
            fresh += 1
        elif known and chance.random() < 0.8:
            micros.append([chance.choice(("r", "r", "r", "rp")), *chance.choice(known)])
        else:
            micros.append([chance.choice(("r", "r", "r", "rp")), key, None])
    begin = chance.randint(0, 20) / 2
    end = begin + chance.randint(1, 12) / 2
    type_ = chance.choice(("ok", "ok", "ok", "ok", "info", "fail"))
    processes = sorted({each.process for each in txns})
    for process in (chance.choice(processes), 1 + processes[-1]):
        new = Txn(type=type_, process=process, micros=micros, begin=begin, end=end)
        if _one_at_a_time([*txns, new]):
            break
    return new


def _highest(micro: list[Any]) -> int:
    match micro[2]:
        case None:
            return 0
        case list() as values:
            return max(values, default=0)
        case value:
            return int(value)


def _one_at_a_time(txns: list[Txn]) -> bool:
    """Whether each process has ended one transaction before the next, and none after an unknown end."""
    for process in {each.process for each in txns}:
        own = sorted((each for each in txns if each.process == process), key=lambda each: each.begin or 0)
        for one, other in pairwise(own):
            if one.type == "info" or one.end is None or one.end >= (other.begin or 0):
                return False
    return True
