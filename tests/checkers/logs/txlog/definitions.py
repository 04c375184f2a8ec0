"""The checks of the TxLog from their definitions alone, for clusters that never split: slow, and plain to see.

A function for each check says whether it is broken. Nothing is shared with `checkers.logs.txlog`.
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


def walk(records: list[list[Any]]) -> Iterator[tuple[list[Any], list[str], int, set[str], dict[str, int]]]:
    """Behind each record: the record, ids of the queue, the counter, what is acquired, newest counters of peers."""
    counter = 0
    has: set[str] = set()
    last: dict[str, int] = {}
    for record, _, queue in queues(records):
        match record:
            case ["made", counter, _, name, _]:
                has.add(name)
            case ["heard", peer, counter, newest, _]:
                if newest is not None:
                    last[peer] = max(newest, last.get(peer, 0))
            case ["acquired", found]:
                has |= {name for name, _ in found}
            case ["caught-up", _, refs, _]:
                counter = max(counter, *(ts for ts, _, _ in refs))
        yield record, [name for _, name in queue], counter, set(has), dict(last)


def moments(records: list[list[Any]], length: int) -> Iterator[tuple[int, set[str]]]:
    """The counter, and what is acquired, whenever the synchronised queue has this length."""
    if not length:
        yield 0, set()
    for _, queue, counter, has, _ in walk(records):
        if len(queue) == length:
            yield counter, has


def acquired(logs: Logs) -> bool:
    known = made(logs)
    for records in logs.values():
        before: set[str] = set()
        for record, _, _, has, _ in walk(records):
            if record[0] in ("added", "caught-up") and any(
                (ts, name) != known.get(name) for ts, name, _ in record[2]
            ):
                return True
            if record[0] == "added":
                names = {name for _, name, _ in record[2]}
                if not names <= before:
                    return True
                for poster in record[4]:
                    if not any(names <= theirs for _, theirs in moments(logs[poster], record[1])):
                        return True
            before = has
    return False


def counters(logs: Logs) -> bool:
    for master, records in logs.items():
        before, heard = 0, dict[str, int]()
        for record, _, counter, _, last in walk(records):
            match record:
                case ["made", now, ts, _, _] if not before < ts <= now or now <= before:
                    return True
                case ["heard", _, now, newest, _] if now < max(before, newest or 0):
                    return True
                case ["added", index, refs, bound, posters, absent]:
                    if {master, *posters, *absent} != {*logs} or any(ts > bound for ts, _, _ in refs):
                        return True
                    if bound > min([before, *(heard.get(each, 0) for each in absent)]):
                        return True
                    for poster in posters:
                        at_base = [theirs for theirs, _ in moments(logs[poster], index)]
                        if at_base and bound > max(at_base):
                            return True
            before, heard = counter, last
    return False


def in_turn(records: list[list[Any]]) -> bool:
    """Executed indexes are 1, 2, 3, …"""
    indexes = [record[1] for record in records if record[0] == "executed"]
    return indexes == [*range(1, len(indexes) + 1)]


def executed(logs: Logs) -> bool:
    for records in logs.values():
        if not in_turn(records):
            return True
        done = 0
        for record, before, _ in queues(records):
            if record[0] == "executed":
                done = record[1]
                if [name for _, name in before[done - 1 : done]] != [record[2]]:
                    return True
            if record[0] in ("added", "caught-up") and record[1] < done:
                return True
    return False


def state(logs: Logs) -> bool:
    """Two masters, or one, have executed the same transactions, and come to different hashes."""
    found: dict[tuple[str, ...], set[bytes]] = {}
    for records in logs.values():
        executions = [record for record in records if record[0] == "executed"]
        for at, record in enumerate(executions):
            if not in_turn(executions[: at + 1]):
                break
            sequence = tuple(each[2] for each in executions[: at + 1])
            found.setdefault(sequence, set()).add(record[3])
    return any(len(hashes) > 1 for hashes in found.values())


def kept(logs: Logs) -> bool:
    """Of logs of masters that are quiet."""
    ends = [{name for _, name in final(records)} for records in logs.values()]
    return any(not {*made(logs)} <= end for end in ends)


CHECKS = {
    "order": order,
    "once": once,
    "kept": kept,
    "acquired": acquired,
    "executed": executed,
    "state": state,
    "counters": counters,
}
