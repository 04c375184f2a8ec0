"""Long fork: of two reads of the same keys, one must have seen all that the other saw.

| f | value |
|---|---|
| write, or txn | [["w", key, value]]: every key is written once |
| read, or txn | ok: [["r", key, value or null], …], several keys at one moment |

A key of the operation names the store that its keys are in, if there are several.

Under snapshot isolation (and everything stronger) the moments of two reads are one before the other. Since keys are
written once, a later read shows all that an earlier one showed. If each read lacks a value that the other shows, they
have no order: rule long-fork. Parallel snapshot isolation allows it. No model allows a value of a key that no client
had asked to write by then, or that only failed writes had: rule never-written.

Cost: n log n in the reads of each group of keys. Cannot see: reads of different groups of keys are not compared; keys
that were written with two values are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from checkers.domain.proof import is_judged, nowhere, shown, verdict
from checkers.history.history import History, by_key
from checkers.history.operation import Operation, micros
from checkers.history.values import Value, identity, many
from checkers.verdict import Verdict, Witness, witness

NAME = "long-fork"
MODEL = "reads of several keys have one order"

Seen = Mapping[str, Any]
READS = ("r", "read")
WRITES = ("w", "write")


def check(history: History) -> Verdict:
    """Whether the reads of every group of keys have an order. `details`: reads, groups, keys_skipped.

    Raises ModelError for values that are no micro-operations.
    """
    groups: list[list[tuple[Operation, Seen]]] = []
    skipped: set[str] = set()
    witnesses: list[Witness] = []
    for operations in by_key(history.select(f=("read", "write", "txn"))).values():
        twice = _written_twice(operations)
        skipped |= twice
        groups += _groups(operations, twice)
        witnesses += _from_nowhere(operations)
    witnesses += [fork for reads in groups for fork in _forks(reads)]
    count = sum(map(len, groups))
    details = {"reads": count, "groups": len(groups), "keys_skipped": sorted(skipped)[:50]}
    valid = f"the reads of each group of keys have one order ({many(count, 'read')}, {many(len(groups), 'group')})"
    return verdict(NAME, MODEL, witnesses, details, judged=count, valid=valid)


def _groups(operations: Iterable[Operation], twice: set[str]) -> Iterable[list[tuple[Operation, Seen]]]:
    """The reads of the same keys together, with the values that they show."""
    groups: dict[tuple[str, ...], list[tuple[Operation, Seen]]] = {}
    for operation in operations:
        values = _values_in(operation, twice)
        if len(values) > 1:
            groups.setdefault(tuple(sorted(values)), []).append((operation, values))
    return groups.values()


def _micro(operation: Operation) -> Iterator[tuple[str, str, Any]]:
    if operation.value is not None:  # else nothing was answered
        yield from micros(operation)


def _written_twice(operations: Iterable[Operation]) -> set[str]:
    written: dict[str, Value] = {}
    twice: set[str] = set()
    for operation in operations:
        for f, key, value in _micro(operation) if operation.type != "fail" else ():
            if f in WRITES and written.setdefault(key, identity(value)) != identity(value):
                twice.add(key)
    return twice


def _values_in(operation: Operation, twice: set[str]) -> Seen:
    """The values that a read-only operation returned, by key; empty for any other operation."""
    micro = list(_micro(operation))
    if operation.type != "ok" or not is_judged(operation) or any(f not in READS for f, _, _ in micro):
        return {}
    return {key: value for _, key, value in micro if key not in twice}


def _from_nowhere(operations: Sequence[Operation]) -> Iterator[Witness]:
    asked: dict[tuple[str, Value], Operation] = {}
    failed: set[tuple[str, Value]] = set()
    for operation in operations:
        for f, key, value in _micro(operation):
            if f in WRITES and operation.type == "fail":
                failed.add((key, identity(value)))
            elif f in WRITES:
                asked.setdefault((key, identity(value)), operation)
    for read in operations:
        for f, key, value in _micro(read) if read.type == "ok" and is_judged(read) else ():
            write = asked.get((key, identity(value)))
            if f in READS and value is not None and (write is None or read.precedes(write)):
                why = nowhere(is_failed=write is None and (key, identity(value)) in failed)
                summary = f"process {read.process} read {key} = {shown(value)}, {why}"
                yield witness("never-written", summary, [read], key=key, node=read.node)


def _forks(reads: Sequence[tuple[Operation, Seen]]) -> Iterator[Witness]:
    """If any two reads have no order, then two neighbours have none, in the order of how many values they show."""
    by_sight = sorted(reads, key=lambda read: sum(value is not None for value in read[1].values()))
    for (less, seen_less), (more, seen_more) in pairwise(by_sight):
        only_less = [key for key in seen_less if seen_less[key] is not None and seen_more[key] is None]
        if not only_less:
            continue
        # Not empty: `more` shows at least as many keys, and lacks one of those that `less` shows.
        only_more = [key for key in seen_more if seen_more[key] is not None and seen_less[key] is None]
        first, second = only_less[0], only_more[0]
        summary = (
            f"one read saw {first} = {shown(seen_less[first])} and not {second}, another {second} = "
            f"{shown(seen_more[second])} and not {first}"
        )
        sentences = (
            f"Process {less.process} saw the write of {first} before that of {second}.",
            f"Process {more.process} saw them the other way round.",
        )
        yield witness("long-fork", summary, [less, more], explanation=sentences)
