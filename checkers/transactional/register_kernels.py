"""Kernels of rw-register: the version that every read showed, and the dependencies that an order of versions gives.

A version is the write that made it (a micro-operation); the state of key k before any write is version m + k. A value
that no client wrote is the version of the first read that showed it. The known order of versions is a set of pairs: one
came before the other.
"""

from __future__ import annotations

from typing import Any

import numpy
from numpy import int8, int32

from checkers.compiled import bare_kernel, kernel
from checkers.transactional.append_kernels import Notes, Survey
from checkers.transactional.columns import (
    FAIL,
    INFO,
    NIL,
    OK,
    PREDICATE_READ,
    READ,
    WRITE,
    Int8s,
    Int32s,
    Int64s,
    Micros,
)

NONE = -1
OPEN = -2
"""The writer of a read whose value several transactions wrote."""

INTERNAL, FUTURE, G1A, G1B, GARBAGE, LOST, DIRTY, CYCLIC = range(8)
RULES = (
    "internal",
    "future-read",
    "G1a",
    "G1b",
    "garbage-read",
    "lost-update",
    "dirty-update",
    "cyclic-versions",
)
"""The names of the codes above. A sample of a rule is a pair of micro-operations: the one at fault, and its cause."""


@bare_kernel
def note(notes: Notes, rule: int, micro: int, cause: int) -> None:
    """Count one case of `rule`, and keep it if there are few yet."""
    # As that of `append_kernels`, which no kernel of this module may call (`checkers.compiled`).
    counts, samples = notes.counts, notes.samples
    if counts[rule] < samples.shape[1]:
        samples[rule, counts[rule], 0] = micro
        samples[rule, counts[rule], 1] = cause
    counts[rule] += 1


@kernel
def judge_registers(micros: Micros, survey: Survey, writer: Int32s, committed: Int8s, notes: Notes) -> Any:
    """version int32[m]: the version that a read showed, or NONE if that follows from an earlier read or write of its
    transaction.

    `writer`: by read, the write of its value, NONE or OPEN. A value that no client wrote, or a failed transaction, is a
    version too: it may show further anomalies. Unsure transactions that were read of are marked in `committed`.
    """
    first, outcome, f, key, value, _, _ = micros
    owner, previous, last = survey.owner, survey.previous, survey.last
    version = numpy.full(len(f), NONE, int32)
    updater = numpy.full(len(f) + len(survey.longest), NONE, int32)
    for txn in range(len(outcome)):
        if outcome[txn] != OK:
            continue
        for micro in range(first[txn], first[txn + 1]):
            before = previous[micro]
            if f[micro] == WRITE:
                if before == NONE or f[before] == WRITE:
                    continue
                origin = before
                while previous[origin] != NONE:
                    origin = previous[origin]
                source = writer[origin]  # NONE of a write, which has no version either
                if source >= 0 and outcome[owner[source]] == FAIL:
                    note(notes, DIRTY, micro, source)
                read_version = version[origin]
                if read_version == NONE:
                    continue
                if updater[read_version] == NONE:
                    updater[read_version] = micro
                # It may write, read and write again: then the first updater is itself.
                elif owner[updater[read_version]] != txn:
                    note(notes, LOST, micro, updater[read_version])
                continue
            if before != NONE and value[before] != value[micro]:
                note(notes, INTERNAL, micro, before)
            elif before != NONE:
                while f[micro] == READ and before != NONE and f[before] == PREDICATE_READ:
                    before = previous[before]
                if before != NONE:
                    continue  # else the first that is of the row itself, after reads by predicates
            if writer[micro] == OPEN:
                continue
            if value[micro] == NIL and writer[micro] == NONE:
                version[micro] = len(f) + key[micro]
                continue
            source = writer[micro]
            if f[source] != WRITE:
                note(notes, GARBAGE, micro, NONE)
                version[micro] = source
            elif owner[source] == txn:
                if source > micro:
                    note(notes, FUTURE, micro, source)
            elif outcome[owner[source]] == FAIL:
                note(notes, G1A, micro, source)
                version[micro] = source
            else:
                if outcome[owner[source]] == INFO:
                    committed[owner[source]] = 1
                if last[source] == 0:
                    note(notes, G1B, micro, source)
                version[micro] = source
    return version


@kernel
def known_pairs(
    first: Int64s, f: Int8s, previous: Int32s, version: Int32s, committed: Int8s
) -> tuple[Any, Any]:
    """(earlier, later int32[…]): a transaction's writes of a key after each other, and after what it read there."""
    earlier = numpy.empty(len(f), int32)
    later = numpy.empty(len(f), int32)
    size = 0
    for txn in range(len(committed)):
        if committed[txn] == 0:
            continue
        for micro in range(first[txn], first[txn + 1]):
            if f[micro] != WRITE:
                continue
            before = previous[micro]
            while before != NONE and f[before] != WRITE and previous[before] != NONE:
                before = previous[before]
            if before != NONE and (f[before] == WRITE or version[before] != NONE):
                earlier[size] = before if f[before] == WRITE else version[before]
                later[size] = micro
                size += 1
    return earlier[:size], later[:size]


@kernel
def is_made(version: int, f: Int8s, owner: Int32s, committed: Int8s) -> bool:
    """Whether a committed transaction wrote the version."""
    return bool(version < len(f) and f[version] == WRITE and committed[owner[version]] == 1)


@kernel
def dependencies(
    f: Int8s,
    owner: Int32s,
    version: Int32s,
    committed: Int8s,
    offsets: Int64s,
    later: Int32s,
    edges_max: int,
) -> tuple[Any, Any, Any, Any, Any, bool]:
    """(source, target int32[…], kind int8[…], their micro-operations int32[…] twice, whether all found room).

    Pairs of versions are in rows: those after version v are later[offsets[v]] … . kind: 0 ww, 1 wr, 2 rw, 3 rw by
    predicate. Only versions of committed transactions have dependencies.
    """
    micros = len(f)
    size = len(later)
    for micro in range(micros):
        if version[micro] != NONE:
            size += 1 + offsets[version[micro] + 1] - offsets[version[micro]]
    whole = size <= edges_max
    room = min(size, edges_max)
    edges = numpy.empty((4, room), int32)
    kinds = numpy.empty(room, int8)
    size = 0
    for micro in range(micros):
        touched = micro if f[micro] == WRITE else version[micro]
        if touched == NONE or committed[owner[micro]] == 0:
            continue
        txn = owner[micro]
        if f[micro] != WRITE and is_made(touched, f, owner, committed) and size < room:
            edges[0, size] = owner[touched]
            edges[1, size] = txn
            edges[2, size] = touched
            edges[3, size] = micro
            kinds[size] = 1
            size += 1
        kind = 0 if f[micro] == WRITE else (3 if f[micro] == PREDICATE_READ else 2)
        for place in range(offsets[touched], offsets[touched + 1]):
            target = later[place]
            if owner[target] != txn and is_made(target, f, owner, committed) and size < room:
                edges[0, size] = txn
                edges[1, size] = owner[target]
                edges[2, size] = micro
                edges[3, size] = target
                kinds[size] = kind
                size += 1
    return edges[0, :size], edges[1, :size], kinds[:size], edges[2, :size], edges[3, :size], whole
