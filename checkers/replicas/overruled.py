"""Overruled rollbacks: a client got the answer that its write was rolled back, and yet the write is there to stay.

A store that gives up on a write reports that (Tarantool's errors 216 and 217; 40 where its log refused it). The first
two are "info": a ROLLBACK proves nothing where another node may take over and confirm the write. This checker finds
writes with an overruled rollback:

- kept: a final dump holds the value; an element that was added to a set is shown by a final read of the set
- built-upon: a compare-and-set that expected the value, asked after the error, succeeded

Values that several operations may have written prove nothing and are skipped; so are deletions and what was there at
first. Rule: overruled-rollback. Cost: linear.
The checker cannot detect values that were replaced before a cas expected them or a dump showed them. Elements of a set
are never replaced, so all of them are detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from checkers.history.history import History, by_key
from checkers.history.line_kernels import ABSENT, OTHER, PAIR
from checkers.history.operation import Operation, leaves
from checkers.history.values import Value, identity, many, value_words
from checkers.replicas.kept import rows_of
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

NAME = "overruled"
MODEL = "what was reported rolled back is gone"
ROLLED_BACK = ("(216)", "(217)", "(40)")
"""The ends of the errors that report it: no quorum in time, rolled back behind another write, refused by the log."""


def check(history: History, *, space: str = "register") -> Verdict:
    """Whether every write that was reported rolled back stayed so. `space`: the part of a dump that has the rows of the
    register (`checkers.replicas.kept`). `details`: rolled_back, overruled."""
    writes = by_key(_concerned(history))
    held = _held(history, space)
    shown = _shown(history)
    rolled_back = 0
    witnesses: list[Witness] = []
    for key, operations in writes.items():
        undone = _rolled_back(operations, history.start.of(key))
        rolled_back += len(undone)
        for value, write in undone.items():
            if write.f == "add":
                proof = next(_shows(value, shown.get(key, ())), None)
            else:
                proof = next(_proofs(write, value, operations, held.get(identity(key), {})), None)
            if proof is not None:
                witnesses.append(_witness(write, value, *proof))
    return _verdict(rolled_back, witnesses)


def _concerned(history: History) -> Sequence[Operation]:
    """The writes, without most of those that share no value with a write that was reported rolled back."""
    columns = history.columns
    places = columns.places(("write", "cas", "add"), None, None, None)
    are_rolled_back = numpy.array([(word or "").endswith(ROLLED_BACK) for word in columns.words])
    undone = places[are_rolled_back[columns.error[places]]]
    if (columns.kind[undone] == OTHER).any():  # it may have written a number all the same
        return history.at(places)
    values = numpy.unique(columns.new[undone])
    values = values[values != ABSENT]
    is_pair = columns.kind[places] == PAIR
    shares = numpy.isin(columns.new[places], values) | (is_pair & numpy.isin(columns.old[places], values))
    _, first = numpy.unique(columns.key[places], return_index=True)
    shares[first] = True  # the order of the keys hangs on these
    is_odd = (columns.kind[places] == OTHER) | ((columns.f[places] == columns.code("cas")) & ~is_pair)
    under = numpy.zeros(len(columns.words), dtype=bool)
    under[columns.key[undone]] = under[columns.key[places[is_odd]]] = True
    return history.at(places[(shares | is_odd) & under[columns.key[places]]])


def _rolled_back(operations: list[Operation], start: Any) -> dict[Value, Operation]:
    """The only writer of each value, if its answer was such a rollback. `start`: what the key held at first."""
    at_first = {None, identity(start), *map(identity, start if isinstance(start, list | tuple) else ())}
    writers: dict[Value, list[Operation]] = {}
    for operation in operations:
        writers.setdefault(identity(leaves(operation)), []).append(operation)
    return {
        value: alone[0]
        for value, alone in writers.items()
        if value not in at_first
        and len(alone) == 1
        and alone[0].error is not None
        and alone[0].error.endswith(ROLLED_BACK)
    }


def _held(history: History, space: str) -> dict[Value, dict[Value, list[Operation]]]:
    """Key → value → the final dumps that hold it."""
    held: dict[Value, dict[Value, list[Operation]]] = {}
    for dump in (each for each in history.dumps if each.type == "ok"):
        for key, value in (map(identity, row) for row in rows_of(dump, space)):
            held.setdefault(key, {}).setdefault(value, []).append(dump)
    return held


def _shown(history: History) -> dict[str | None, list[Operation]]:
    """Key → the final reads of the set that showed elements."""
    reads = [read for read in history.select(f="read", phase="final") if read.type == "ok"]
    return by_key([read for read in reads if isinstance(read.value, list | tuple)])


def _shows(value: Value, reads: Iterable[Operation]) -> Iterator[tuple[str, list[Operation]]]:
    for read in reads:
        if value in map(identity, read.value):
            yield f"the final read at {read.node} shows it", [read]


def _proofs(
    write: Operation, value: Value, operations: list[Operation], held: Mapping[Value, list[Operation]]
) -> Iterator[tuple[str, list[Operation]]]:
    if value in held:
        nodes = ", ".join(str(dump.node) for dump in held[value])
        yield f"{nodes} held it at the end", held[value]
    for other in operations:
        if other.f != "cas" or other.type != "ok" or identity(other.value[0]) != value:
            continue
        if other.invoke_index > (write.complete_index or 0):
            yield f"a later compare-and-set at {other.node} found it there and replaced it", [other]


def _witness(write: Operation, value: Value, how: str, proof: list[Operation]) -> Witness:
    named = [write, *proof]
    return Witness(
        rule="overruled-rollback",
        summary=f"{write.node} answered process {write.process} that its {write.f} of {value_words(value)} to key "
        f"{write.key} was rolled back ({write.error}), and yet {how}",
        events=tuple(sorted({event for operation in named for event in operation.events})),
        key=write.key,
        node=write.node,
        start_ns=write.invoke_ns,
        end_ns=max(operation.complete_ns or operation.invoke_ns for operation in named),
    )


def _verdict(rolled_back: int, witnesses: list[Witness]) -> Verdict:
    details: dict[str, Any] = {
        "rolled_back": rolled_back,
        "overruled": len(witnesses),
        "vacuous": rolled_back == 0,
    }
    summary = f"no write that was reported rolled back was there at the end ({many(rolled_back, 'write')})"
    if witnesses:
        count = f"{many(len(witnesses), 'write')} of {rolled_back} that were reported rolled back stayed"
        summary = f"{count}: {witnesses[0].summary}"
    elif not rolled_back:
        summary = "nothing to judge: no write was reported rolled back"
    return Verdict(
        checker=NAME,
        result="invalid" if witnesses else "valid",
        summary=summary,
        model=MODEL,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )
