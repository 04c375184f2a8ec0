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
from checkers.history.operation import READS, Operation, micros
from checkers.history.value_rows import BEYOND, NOBODY, Numbers, Rows
from checkers.history.values import identity, many, value_words
from checkers.verdict import Result, Verdict, Witness, concluded, witness

Array = Any  # numpy's
NAME = "dirty"
MODEL = "read-uncommitted"
WRITES = ("write", "append", "add")
"""Operations that leave, or add, their value."""


def check(history: History) -> Verdict:
    """Whether every dirty read returned nothing, or a value that a client had asked to write before the read ended.

    Judged are operations of mode "dirty": read, and txn that only read. Of a list that no client asked to write as a
    whole, each element is judged. `details["asked"]`: how many such reads there are, answered or not; 0 if the store
    answered reads that were asked in this mode, and each of them in another one.
    """
    witnesses, asked, reads, undone = _judged(history)
    if asked and not reads and _are_answered_in_another_mode(history):
        asked = 0
    return _verdict(witnesses, asked, reads, undone)


def _judged(history: History) -> tuple[list[Witness], int, int, Sequence[int]]:
    """The witnesses, how many dirty reads were asked, how many were answered, and for each shown value of a surely
    failed write the place of the read."""
    columns, numbers = history.columns, Numbers(history)
    asked = _dirty_reads(history)
    reads = asked[columns.type[asked] == OK]
    shown = numbers.rows(reads, _read_values, names=("read",))
    shown = shown.at(shown.value != ABSENT)
    writes = numbers.under_keys_of(shown, columns.places((*WRITES, "cas", "txn"), None, None, None))
    written = numbers.rows(numbers.changing(writes), _written_values, names=WRITES)
    shown = _apart(numbers, shown, written)
    if not history.start.is_plain:
        shown = numbers.but(shown, lambda key: _elements(history.start.of(key)))
    first, possible = numbers.first_askers(written, shown)
    is_wrong = _only_later(columns, first, shown)
    witnesses = list(_witnesses(history, numbers, shown.at(is_wrong), first[is_wrong]))
    undone = shown.place[~is_wrong & _only_later(columns, possible, shown)]
    return witnesses, len(asked), len(reads), undone.tolist()


def _dirty_reads(history: History) -> Array:
    """The places of dirty reads, and of dirty transactions that only read."""
    columns = history.columns
    places = columns.places(("read", "txn"), None, None, None)
    places = places[columns.mode[places] == columns.code("dirty")]
    transactions = numpy.flatnonzero(columns.f[places] == columns.code("txn"))
    is_read = numpy.ones(len(places), dtype=bool)
    is_read[transactions] = [
        all(f in READS for f, _, _ in micros(transaction)) for transaction in history.at(places[transactions])
    ]
    return places[is_read]


def _apart(numbers: Numbers, shown: Rows, written: Rows) -> Rows:
    """The rows, with a row for each element in place of a list that no client asked to write as a whole."""
    rich = numpy.flatnonzero(shown.value >= BEYOND)
    if not len(rich):
        return shown
    first, _ = numbers.first_askers(written, shown.at(rich))
    lists = [
        row for row in rich[first == NOBODY].tolist() if isinstance(_value(numbers, shown, row), list | tuple)
    ]
    elements = [
        (int(shown.place[row]), int(shown.key[row]), numbers.of_value(element))
        for row in lists
        for element in _value(numbers, shown, row)
    ]
    rest = numpy.delete(numpy.arange(len(shown)), lists)
    return shown.at(rest).and_(numpy.array(elements, dtype=numpy.int64).reshape(-1, 3))


def _value(numbers: Numbers, shown: Rows, row: int) -> Any:
    return numbers.value(int(shown.value[row]))


def _elements(value: Any) -> list[Any]:
    """The values that a read may show of a value that was there before: the whole, and the elements of a list."""
    return [value, *(value if isinstance(value, list | tuple) else ())]


def _only_later(columns: Columns, asker: Array, shown: Rows) -> Array:
    """Whether the operation at each place was invoked after the read in `shown` had ended, or there is none."""
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
    """Whether the store has no dirty reads and says so: its answers name another mode, whose promise then counts."""
    columns = history.columns
    answered = columns.places(("read", "txn"), "ok", None, None)
    answered = columns.invoke[answered[columns.mode[answered] != columns.code("dirty")]]
    others = set(answered.tolist())
    asked = (event.index for event in history.events if event.type == "invoke" and event.mode == "dirty")
    return any(index in others for index in asked)


def _written_values(operation: Operation) -> Iterator[tuple[str | None, Any]]:
    match operation.f, operation.value:
        case "cas", [old, new, *_] if identity(old) != identity(new):
            yield operation.key, new
        case ("cas", _):
            return
        case "txn", list():
            yield from ((key, value) for f, key, value in micros(operation) if f not in READS)
        case "txn", _:
            return
        case _, value:
            yield operation.key, value


def _read_values(read: Operation) -> Iterator[tuple[str | None, Any]]:
    if read.f != "txn":
        yield read.key, read.value
    else:
        yield from ((key, value) for _, key, value in micros(read))


def _witness(read: Operation, key: str | None, value: Any, askers: Sequence[Operation]) -> Witness:
    rule = "read-from-the-future" if askers else "never-written"
    at_key = "" if key is None else f" of key {key}"
    why = "before any client had asked to write it" if askers else "which no client ever asked to write"
    named = [*askers[:1], read]
    summary = f"a dirty read{at_key} at {read.node} returned {value_words(value)}, {why}"
    return witness(rule, summary, named, key=key, node=read.node)


def _verdict(witnesses: Sequence[Witness], asked: int, reads: int, undone: Sequence[int]) -> Verdict:
    details: dict[str, Any] = {
        "dirty_reads": reads,
        "asked": asked,
        "undone_values_read": len(undone),
        "violations": len(witnesses),
        "vacuous": reads == 0,
        "findings": [],
    }
    if undone:
        details["findings"] = [
            f"{many(len({*undone}), 'dirty read')} of {reads} showed a value whose write surely failed"
        ]
    summary = f"dirty reads ({reads}) returned only values that a client had asked to write"
    if not reads:
        summary = f"nothing to judge: of {asked} dirty reads none was answered"
    result: Result = "valid" if reads else "unknown"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)
