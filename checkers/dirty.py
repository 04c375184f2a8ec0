"""Dirty reads: they may show any value that a client has asked to write, also one that is rolled back later.

So the only violation is a value that no client had asked to write by then. The checker also counts the shown
values of writes that surely failed later: they are allowed, but may surprise a reader. If no dirty read was answered,
there is nothing to judge, and the verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, OK
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations
from checkers.value_columns import first_asked, odd_keys
from checkers.values import identity
from checkers.verdict import Result, Verdict, Witness, concluded

NAME = "dirty"
MODEL = "read-uncommitted"


def check(history: History) -> Verdict:
    """Whether every dirty read returned nothing, or a value that a client had asked to write before the read ended.

    Judged are operations read, and txn that only read, of mode "dirty"; of lists, each element. `details["asked"]`: how
    many such reads were invoked, answered or not; 0 if the store answered them, and each in another mode.
    """
    decided = _of_columns(history)
    if decided is None:
        witnesses, told = _of_operations(history)
    else:
        told, keys = decided
        witnesses = _of_operations(history, keys)[0] if keys else []
    is_elsewhere = told.asked and not told.reads and _are_answered_in_another_mode(history)
    return _verdict(witnesses, told if not is_elsewhere else _Told())


@dataclass(frozen=True, slots=True)
class _Told:
    """How many dirty reads were asked and answered, and how many showed the value of a write that surely failed."""

    asked: int = 0
    reads: int = 0
    undone: int = 0


def _of_operations(
    history: History, keys: Container[str | None] | None = None
) -> tuple[list[Witness], _Told]:
    """The witnesses under these keys (None: all), and the counts of their reads."""
    asked_for = [each for each in history.select(f=("read", "txn"), keys=keys) if each.mode == "dirty"]
    reads = [each for each in asked_for if each.type == "ok"]
    asked: dict[tuple[str | None, object], list[Operation]] = {}
    for operation in history.select(f=("write", "cas", "txn"), keys=keys):
        for key, value in _written(operation):
            asked.setdefault((key, identity(value)), []).append(operation)
    witnesses: list[Witness] = []
    undone = 0
    for read in reads:
        for key, value in _seen(read):
            askers = asked.get((key, identity(value)), [])
            in_time = [asker for asker in askers if not read.precedes(asker)]
            if not in_time:
                witnesses.append(_witness(read, key, value, askers))
            elif all(asker.type == "fail" for asker in in_time):
                undone += 1
    return witnesses, _Told(len(asked_for), len(reads), undone)


def _of_columns(history: History) -> tuple[_Told, set[str | None]] | None:
    """The counts of all reads, and the keys with witnesses. None if the check takes more than columns."""
    operations = history.operations
    if not isinstance(operations, StoredOperations) or "txn" in history.names:
        return None
    columns = operations.columns
    asked = numpy.flatnonzero((columns.f == columns.code("read")) & (columns.mode == columns.code("dirty")))
    reads = asked[columns.type[asked] == OK]
    if odd_keys(columns, reads).any():
        return None
    seen = reads[columns.new[reads] != ABSENT]
    asked_first, may_be_first = first_asked(columns, seen, columns.new[seen])
    is_wrong = asked_first > columns.complete[seen]
    is_undone = ~is_wrong & (may_be_first > columns.complete[seen])
    told = _Told(len(asked), len(reads), int(is_undone.sum()))
    return told, {columns.words[code] for code in numpy.unique(columns.key[seen[is_wrong]]).tolist()}


def _are_answered_in_another_mode(history: History) -> bool:
    """The store has no dirty reads, and says so in its answers: their promise is that of the mode which they name."""
    operations = history.operations
    if isinstance(operations, StoredOperations):
        columns = operations.columns
        is_read = (columns.f == columns.code("read")) | (columns.f == columns.code("txn"))
        others = is_read & (columns.type == OK) & (columns.mode != columns.code("dirty"))
        answered = set(columns.invoke[others].tolist())
    else:
        reads = history.select(f=("read", "txn"), outcome="ok")
        answered = {each.invoke_index for each in reads if each.mode != "dirty"}
    asked = (event.index for event in history.events if event.type == "invoke" and event.mode == "dirty")
    return any(index in answered for index in asked)


def _written(operation: Operation) -> Iterator[tuple[str | None, Any]]:
    match operation.f, operation.value:
        case "write", value:
            yield operation.key, value
        case "cas", [old, new, *_] if identity(old) != identity(new):
            yield operation.key, new
        case "txn", list() as micros:
            yield from ((str(key), value) for f, key, value in micros if f in ("w", "append"))


def _seen(read: Operation) -> Iterator[tuple[str | None, Any]]:
    micros = read.value if read.f == "txn" else [["r", read.key, read.value]]
    for f, key, value in micros:
        if f == "r" and value is not None:
            for each in value if isinstance(value, list) else [value]:
                yield key, each


def _witness(read: Operation, key: str | None, value: Any, askers: Sequence[Operation]) -> Witness:
    rule = "read-from-the-future" if askers else "never-written"
    why = "before any client had asked to write it" if askers else "which no client ever asked to write"
    named = [*askers[:1], read]
    return Witness(
        rule=rule,
        summary=f"a dirty read of key {key} at {read.node} returned {value}, {why}",
        events=tuple(sorted(event for operation in named for event in operation.events)),
        key=key,
        node=read.node,
        start_ns=min(operation.invoke_ns for operation in named),
        end_ns=max(operation.complete_ns or operation.invoke_ns for operation in named),
    )


def _verdict(witnesses: Sequence[Witness], told: _Told) -> Verdict:
    reads, asked, undone = told.reads, told.asked, told.undone
    details: dict[str, Any] = {
        "dirty_reads": reads,
        "asked": asked,
        "undone_values_read": undone,
        "violations": len(witnesses),
        "vacuous": reads == 0,
        "findings": [],
    }
    if undone:
        details["findings"] = [f"{undone} of {reads} dirty reads showed a value whose write surely failed"]
    summary = f"dirty reads ({reads}) returned only values that a client had asked to write"
    if not reads:
        summary = f"nothing to judge: of {asked} dirty reads none was answered"
    result: Result = "valid" if reads else "unknown"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)
