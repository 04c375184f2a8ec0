"""Dirty reads: they may show any value that a client has asked to write, also one that is rolled back later.

So the only violation is a value that no client had asked to write by then. The checker also counts the shown
values of writes that surely failed later: they are allowed, but may surprise a reader. If no dirty read was answered,
there is nothing to judge, and the verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from checkers.history.columns import Columns
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, OK
from checkers.history.operation import Operation
from checkers.value_rows import NOBODY, Numbers, Rows
from checkers.values import identity
from checkers.verdict import Result, Verdict, Witness, concluded

Array = Any  # numpy's
NAME = "dirty"
MODEL = "read-uncommitted"


def check(history: History) -> Verdict:
    """Whether every dirty read returned nothing, or a value that a client had asked to write before the read ended.

    Judged are operations read, and txn that only read, of mode "dirty"; of lists, each element. `details["asked"]`: how
    many such reads were invoked, answered or not; 0 if the store answered them, and each in another mode.
    """
    witnesses, asked, reads, undone = _judged(history)
    if asked and not reads and _are_answered_in_another_mode(history):
        asked = 0
    return _verdict(witnesses, asked, reads, undone)


def _judged(history: History) -> tuple[list[Witness], int, int, int]:
    """And how many dirty reads were asked, and answered, and how many values of surely failed writes they showed."""
    columns, numbers = history.columns, Numbers(history)
    asked = columns.places(("read", "txn"), None, None, None)
    asked = asked[columns.mode[asked] == columns.code("dirty")]
    reads = asked[columns.type[asked] == OK]
    shown = numbers.rows(reads, _seen, names=("read",))
    shown = shown.at(shown.value != ABSENT)
    writes = numbers.under_keys_of(shown, columns.places(("write", "cas", "txn"), None, None, None))
    first, possible = numbers.first_askers(
        numbers.rows(numbers.changing(writes), _written, names=("write",)), shown
    )
    is_wrong = _only_later(columns, first, shown)
    witnesses = list(_witnesses(history, numbers, shown.at(is_wrong), first[is_wrong]))
    undone = int((~is_wrong & _only_later(columns, possible, shown)).sum())
    return witnesses, len(asked), len(reads), undone


def _only_later(columns: Columns, asker: Array, shown: Rows) -> Array:
    """Whether the operations at these places were asked for when the reads of `shown` had ended, or there are none."""
    is_there = asker != NOBODY
    is_later = ~is_there
    is_later[is_there] = columns.invoke[asker[is_there]] > columns.complete[shown.place[is_there]]
    return is_later


def _witnesses(history: History, numbers: Numbers, wrong: Rows, first: Array) -> Iterator[Witness]:
    """`first`: of each row the place of the operation that first asked for its value, which was too late."""
    reads = history.at(wrong.place)
    for read, key, value, asker in zip(
        reads, wrong.key.tolist(), wrong.value.tolist(), first.tolist(), strict=True
    ):
        askers = [] if asker == NOBODY else history.at(numpy.array([asker]))
        yield _witness(read, numbers.key(key), numbers.value(value), askers)


def _are_answered_in_another_mode(history: History) -> bool:
    """The store has no dirty reads, and says so in its answers: their promise is that of the mode which they name."""
    columns = history.columns
    answered = columns.places(("read", "txn"), "ok", None, None)
    answered = columns.invoke[answered[columns.mode[answered] != columns.code("dirty")]]
    others = set(answered.tolist())
    asked = (event.index for event in history.events if event.type == "invoke" and event.mode == "dirty")
    return any(index in others for index in asked)


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


def _verdict(witnesses: Sequence[Witness], asked: int, reads: int, undone: int) -> Verdict:
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
