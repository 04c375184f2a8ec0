"""The checks of the TxLog from their definitions alone, for clusters that never split: slow, and plain to see.

A function for each check says whether it is broken. Nothing is shared with `checkers.txlog`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

Logs = dict[str, list[list[Any]]]
Ref = tuple[int, str]


def queues(records: list[list[Any]]) -> Iterator[tuple[list[Any], list[Ref], list[Ref]]]:
    """Each record, and the synchronised queue before and behind it."""
    synced: list[Ref] = []
    for record in records:
        before = list(synced)
        if record[0] in ("added", "caught-up"):
            synced = before[: record[1]] + [(ts, name) for ts, name, _ in record[2]]
        yield record, before, list(synced)


def final(records: list[list[Any]]) -> list[Ref]:
    return [*queues(records)][-1][2]


def is_prefix(one: list[Any], other: list[Any]) -> bool:
    return one == other[: len(one)]


def made(logs: Logs) -> dict[str, Ref]:
    return {
        record[3]: (record[2], record[3])
        for records in logs.values()
        for record in records
        if record[0] == "made"
    }


def order(logs: Logs) -> bool:
    ends = [final(records) for records in logs.values()]
    if any(not is_prefix(one, other) and not is_prefix(other, one) for one, other in combinations(ends, 2)):
        return True
    for records in logs.values():
        for record, before, behind in queues(records):
            index = record[1] if record[0] in ("added", "caught-up") else len(before)
            if index != len(before):
                return True
            firsts = [ref for at, ref in enumerate(behind) if ref[1] not in {name for _, name in behind[:at]}]
            if firsts != sorted(firsts):
                return True
    return not_a_prefix(logs) or skipped(logs)


def not_a_prefix(logs: Logs) -> bool:
    """A transaction that was made is smaller than one in a queue, and not before it."""
    known = made(logs)
    for records in logs.values():
        queue = [known[name] for _, name in final(records) if name in known]
        for at, entry in enumerate(queue):
            if entry in queue[:at]:
                continue
            if any(ref < entry and ref not in queue[:at] for ref in known.values()):
                return True
    return False


def skipped(logs: Logs) -> bool:
    """A round added an entry, and the master knew a smaller one."""
    for records in logs.values():
        known: dict[str, Ref] = {}
        for record, before, _ in queues(records):
            there = {name for _, name in before}
            if record[0] == "made" and record[3] not in there:
                known.setdefault(record[3], (record[2], record[3]))
            if record[0] == "heard":
                for ts, name, _ in record[4]:
                    if name not in there:
                        known.setdefault(name, (ts, name))
            if record[0] == "added":
                there = {name for _, name in before[: record[1]]}
                now = {name for _, name, _ in record[2]}
                greatest = max((ts, name) for ts, name, _ in record[2])
                waiting = [ref for name, ref in known.items() if name not in now]
                if any(ref < greatest for ref in waiting):
                    return True
            if record[0] in ("added", "caught-up"):
                for _, name, _ in record[2]:
                    known.pop(name, None)
    return False


def once(logs: Logs) -> bool:
    for records in logs.values():
        for _, _, queue in queues(records):
            names = [name for _, name in queue]
            if len(set(names)) < len(names):
                return True
    return False


CHECKS = {"order": order, "once": once}
