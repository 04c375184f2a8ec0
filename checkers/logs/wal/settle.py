"""Log-assisted settling: outcomes that no client learned, as far as the nodes' logs prove them.

An operation is joined to its transaction by a value that it alone wrote. A log counts only if no other log
contradicts it:

- *happened*: a log confirms the transaction. It may have taken effect at any time after its invocation, and how late is
  unknown: it stays an operation without end.
- *did not*: no log holds it, or every log that holds it rolled it back or made it void; and no log was lost, and the
  nodes were quiet and equal at the end, so that nothing was still on its way. It becomes a failure.
- anything else stays open; so does a deletion without a row, because nothing may have been there. Where logs contradict
  each other nothing is settled: that is an anomaly of the logs.

The verdict over the history from `settle` stands beside the one over the plain history, never in its place: a wrong log
must not hide a client's observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import Any, Final

import numpy
from msgspec import structs

from checkers.history.columns import TYPES
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, FAIL, INFO, OK, PAIR, PLAIN
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations
from checkers.logs.wal.columns import NO_KEY, numbered
from checkers.logs.wal.nodes import Logs
from checkers.logs.wal.record import Id, Mark, mark_of
from checkers.logs.wal.replay_kernels import COMMITTED, CONFIRMED, NOP, PENDING, ROLLED_BACK
from checkers.verdict import WITNESSES_MAX

Array = Any  # numpy's
DID_NOT = "settled by the logs: it did not happen"
CONFIRMED_READS = ("read-confirmed", "linearizable")
MOST: Final = 5 * WITNESSES_MAX
"""Operations of a kind that the logs contradict, of which objects are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`history` with the settled outcomes; the operations by outcome, as indexes of their invocations.

    `lost` are operations that were answered ok and that the logs discarded. `kept` were answered as surely failed, and
    a log confirms them. `revealed` are refused transactions that showed a value which every log discarded, so the value
    was not confirmed. Each contradicts the client, whatever the checkers say. At most MOST of each are here; `counts`
    has how many there are.
    """

    history: History
    happened: tuple[int, ...]
    did_not: tuple[int, ...]
    open: tuple[int, ...]
    lost: tuple[Operation, ...]
    kept: tuple[Operation, ...]
    revealed: tuple[Operation, ...]
    counts: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The marks that operations write, and those that rows have, as numbers: arrays of one length each."""

    history: History
    logs: Logs
    operation: Array
    """The place of an operation, once for each mark that it writes."""
    written: Array
    """These marks."""
    row: Array
    """The rows of some log that have a mark."""
    held: Array
    """These marks."""
    count: int
    only_deletes: Array
    """By operation: it writes no mark with a value, and is no compare-and-set, which finds a row."""

    @classmethod
    def of(cls, history: History, logs: Logs) -> Marks:
        columns, rows = history.columns, logs.rows
        is_write, is_cas = (columns.f == columns.code(name) for name in ("write", "cas"))
        is_simple = (is_write & (columns.kind == PLAIN)) | (is_cas & (columns.kind == PAIR))
        simple = numpy.flatnonzero(is_simple & (columns.key != 0))
        rich = numpy.flatnonzero((is_write | is_cas | (columns.f == columns.code("txn"))) & ~is_simple)
        keys: dict[object, int] = {key: number for number, key in enumerate(rows.keys)}
        numbers = numpy.array([keys.setdefault(word, len(keys)) for word in columns.words], dtype=numpy.int64)
        marks = [
            (place, keys.setdefault(key, len(keys)), rows.codes.of(value))
            for place, operation in zip(rich.tolist(), history.at(rich), strict=True)
            for key, value in _written(operation)
        ]
        place, key, value = numpy.array(marks, dtype=numpy.int64).reshape(-1, 3).T
        held = numpy.flatnonzero(logs.held & (rows.key != NO_KEY))
        numbers_of_marks, count = numbered(
            numpy.concatenate((numbers[columns.key[simple]], key, rows.key[held])),
            numpy.concatenate((columns.new[simple], value, rows.value[held])),
        )
        written = len(simple) + len(place)
        only_deletes = ~is_cas
        only_deletes[simple[columns.new[simple] != ABSENT]] = False
        only_deletes[place[value != ABSENT]] = False
        return cls(
            history=history,
            logs=logs,
            operation=numpy.concatenate((simple, place)),
            written=numbers_of_marks[:written],
            row=held,
            held=numbers_of_marks[written:],
            count=count,
            only_deletes=only_deletes,
        )

    @cached_property
    def writers(self) -> Array:
        """By mark how many operations write it."""
        return numpy.bincount(self.written, minlength=self.count)

    @cached_property
    def is_writing(self) -> Array:
        """By operation: it writes a mark."""
        return self._with_mark(numpy.ones(len(self.operation), dtype=bool))

    @cached_property
    def is_own(self) -> Array:
        """By operation: it writes marks, and no other operation writes any of them."""
        return self.is_writing & ~self._with_mark(self.writers[self.written] != 1)

    @cached_property
    def transaction(self) -> Array:
        """By operation the one transaction that writes its marks; -1: none does, -2: several do."""
        by_mark, is_many = self.of_marks
        written_by = by_mark[self.written]
        most = numpy.full(len(self.history.columns), -1, dtype=numpy.int64)
        numpy.maximum.at(most, self.operation, written_by)
        is_other = is_many[self.written] | ((written_by >= 0) & (written_by != most[self.operation]))
        most[self._with_mark(is_other)] = -2
        return most

    @cached_property
    def of_marks(self) -> tuple[Array, Array]:
        """By mark a transaction that writes it (-1: none), and whether there are several."""
        transactions = self.logs.rows.transaction[self.row]
        by_mark = numpy.full(self.count, -1, dtype=numpy.int64)
        by_mark[self.held] = transactions
        is_many = numpy.zeros(self.count, dtype=bool)
        is_many[self.held[by_mark[self.held] != transactions]] = True
        return by_mark, is_many

    def _with_mark(self, chosen: Array) -> Array:
        """By operation: whether one of its marks is chosen."""
        has_mark = numpy.zeros(len(self.history.columns), dtype=bool)
        has_mark[self.operation[chosen]] = True
        return has_mark


def settle(history: History, logs: Logs, *, is_final: bool, marks: Marks | None = None) -> Settled:
    """Settle the writes of `history` (f: write, cas, txn) with new values that no other operation wrote to their keys.

    `is_final`: every node's whole log is here, and the nodes were equal when it was taken. `marks`: if they are known.
    """
    columns = history.columns
    marks = marks or Marks.of(history, logs)
    name = marks.transaction
    is_joined = marks.is_own & (name > -2) & ~(marks.only_deletes & (name < 0))
    done, denied, pending = (
        numpy.append(logs.have(*fates), False)[numpy.maximum(name, -1)]  # of no transaction the last one
        for fates in ((CONFIRMED, COMMITTED), (ROLLED_BACK, NOP), (PENDING,))
    )
    # A log that contradicts another one proves neither.
    happened = is_joined & done & ~denied
    did_not = is_joined & ~done & ~pending & is_final
    is_info = columns.type == INFO
    contradicted = (
        numpy.flatnonzero((columns.type == OK) & did_not),
        numpy.flatnonzero((columns.type == FAIL) & happened),
        _revealing(marks) if is_final else numpy.empty(0, dtype=numpy.int64),
    )
    lost, kept, revealed = (tuple(history.at(places[:MOST])) for places in contradicted)
    return Settled(
        history=settled_history(history, columns.invoke[is_info & did_not]),
        happened=tuple(columns.invoke[is_info & happened].tolist()),
        did_not=tuple(columns.invoke[is_info & did_not].tolist()),
        open=tuple(columns.invoke[is_info & marks.is_writing & ~(happened | did_not)].tolist()),
        lost=lost,
        kept=kept,
        revealed=revealed,
        counts=(len(contradicted[0]), len(contradicted[1]), len(contradicted[2])),
    )


def settled_history(history: History, did_not: Iterable[int]) -> History:
    """The history with the operations `did_not` (indexes of invocations) as failed."""
    failed = frozenset(did_not)

    def after(operations: Iterable[Operation]) -> Iterator[Operation]:
        for operation in operations:
            is_failed = operation.invoke_index in failed
            yield structs.replace(operation, type="fail", error=DID_NOT) if is_failed else operation

    columns = history.columns
    is_failed = numpy.isin(columns.invoke, numpy.array(sorted(failed), dtype=numpy.int64))
    columns = replace(
        columns,
        type=numpy.where(is_failed, TYPES.index("fail"), columns.type).astype(columns.type.dtype),
        error=numpy.where(is_failed, len(columns.words), columns.error).astype(columns.error.dtype),
        words=(*columns.words, DID_NOT),
    )
    operations = StoredOperations(
        columns, lambda: tuple(after(history.operations)), lambda places: tuple(after(history.at(places)))
    )
    return replace(history, operations=operations)


def _revealing(marks: Marks) -> Array:
    """The refusals that showed a value which every log discarded. A refusal may show any value that was ever confirmed:
    it need not be the newest."""
    columns, rows = marks.history.columns, marks.logs.rows
    is_kept = numpy.zeros(marks.count, dtype=bool)
    is_known = marks.logs.have(CONFIRMED, COMMITTED, PENDING)
    is_kept[marks.held[is_known[rows.transaction[marks.row]]]] = True
    discarded = marks.row[~is_kept[marks.held]]
    values = set(zip(rows.key[discarded].tolist(), rows.value[discarded].tolist(), strict=True))
    keys = {rows.keys[key]: key for key, _ in values}
    codes = [code for code, word in enumerate(columns.words) if word in keys]
    is_cas = (columns.f == columns.code("cas")) & numpy.isin(columns.key, codes)
    refused = (columns.type == FAIL) & (columns.complete >= 0) & bool(values)
    revealing = []
    for place in numpy.flatnonzero(refused & (is_cas | (columns.f == columns.code("transfer")))).tolist():
        f, key = columns.words[columns.f[place]], columns.words[columns.key[place]]
        mark = _refusal(f, key, marks.history.events[int(columns.complete[place])].value)
        if mark is not None and (keys.get(mark[0]), rows.codes.of(mark[1])) in values:
            revealing.append(place)
    return numpy.array(revealing, dtype=numpy.int64)


def _refusal(f: str | None, key: str | None, answer: object) -> Mark | None:
    """Key and value in the answer of a refused transaction, if the store promises that they are confirmed."""
    match f, key, answer:
        case "transfer", _, {"from": str(account), "found": int(balance)}:
            return account, balance
        case "cas", str(), [_, _, value] | (_, _, value) if value is not None:
            return key, value
    return None


def joined(marks: Marks) -> Mapping[int, Sequence[Id]]:
    """By the index of its invocation: the one transaction of each operation that can be joined to one."""
    places = numpy.flatnonzero(marks.is_own & (marks.transaction >= 0))
    names = marks.logs.rows.ids_of(marks.transaction[places])
    indexes = marks.history.columns.invoke[places].tolist()
    return {index: [name] for index, name in zip(indexes, names, strict=True)}


def shown(marks: Marks) -> Mapping[int, Sequence[Id]]:
    """By the index of its invocation: the transactions whose values an answer shows, where the store promises that they
    are confirmed. Values that several operations or transactions write are left out.
    """
    history, rows = marks.history, marks.logs.rows
    by_mark, is_many = marks.of_marks
    is_own = numpy.zeros(marks.count, dtype=bool)
    is_own[marks.written[marks.is_own[marks.operation]]] = True
    is_named = (is_own & ~is_many)[marks.held]
    at = marks.row[is_named]
    names = rows.ids_of(by_mark[marks.held[is_named]])
    keys = [rows.keys[key] for key in rows.key[at].tolist()]
    named = dict(zip(zip(keys, rows.value[at].tolist(), strict=True), names, strict=True))
    return {
        operation.invoke_index: [
            named[key, rows.codes.of(value)]
            for key, value in _shown(operation, history)
            if (key, rows.codes.of(value)) in named
        ]
        for operation in history.operations
        if operation.complete_index is not None
    }


def _shown(operation: Operation, history: History) -> Iterator[Mark]:
    """Key and value (of a list the last element) that a confirmed read or a refusal shows."""
    assert operation.complete_index is not None
    shows: list[Mark | None] = []
    match operation.type, operation.f, operation.value:
        case "fail", f, _:
            shows = [_refusal(f, operation.key, history.events[operation.complete_index].value)]
        case "ok", "read", int() | str() as value if operation.mode in CONFIRMED_READS:
            shows = [mark_of(operation.key, value)]
        case "ok", "txn", list() as parts if operation.mode in CONFIRMED_READS:
            for part in parts:
                match part:
                    case ["r", key, value, *_]:
                        shows.append(mark_of(key, value))
                    case _:  # not only reads: the store promises nothing of them
                        return
    yield from (mark for mark in shows if mark is not None and mark[1] is not None)


def _written(operation: Operation) -> list[Mark]:
    """The mark of each write; of a transaction the last one under each key."""
    last: dict[object, object] = {}
    match operation.f, operation.value:
        case ("write", value) | ("cas", (_, value)):
            last[operation.key] = value
        case "txn", list() as parts:
            for part in parts:
                match part:
                    case ["w", str() as under, put, *_]:
                        last[under] = put
                    case ["append", str() as under, put, *_]:
                        last[under] = [put]
    return list(filter(None, starmap(mark_of, last.items())))
