"""Log-assisted settling: the outcome of operations that the client never learned, as far as the nodes' logs prove it.

An operation is joined to its transaction by a value that it alone wrote. A log counts only if no other log
contradicts it:

- *happened*: a log confirms the transaction. It may have taken effect at any time after it was asked, and how late is
  not known: it stays an operation without end.
- *did not*: no log holds it, or every log that holds it rolled it back or made it void; and no log was lost, and the
  nodes were quiet and equal at the end, so that nothing was still on its way. It becomes a failure.
- anything else stays open; so does a deletion without a row, because nothing may have been there. Where logs contradict
  each other nothing is settled: that is an anomaly of the logs.

The verdict over the history from `settle` stands beside the one over the plain history, never in its place: a wrong log
must not hide a client's observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy
from msgspec import structs

from checkers.history.columns import TYPES
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations
from checkers.wal.record import Id, Record
from checkers.wal.replay import Fate, Replayed

DID_NOT = "settled by the logs: it did not happen"
CONFIRMED_READS = ("read-confirmed", "linearizable")
Mark = tuple[str, object]
"""Key and value that one operation alone wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`history` with what is settled; the operations by what became of them, as indexes of their invocations.

    `lost` are operations that were answered ok and that the logs discarded; `kept` those that were answered as surely
    not done, and that a log confirms. Either contradicts the client, whatever the checkers say.
    """

    history: History
    happened: tuple[int, ...]
    did_not: tuple[int, ...]
    open: tuple[int, ...]
    lost: tuple[Operation, ...]
    kept: tuple[Operation, ...]
    revealed: tuple[Operation, ...] = ()
    """Refused transactions that showed a value which every log discarded: what they saw was not confirmed."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of each operation, by the index of its invocation; and the transactions that write each mark."""

    written: Mapping[int, list[Mark]]
    transactions: Mapping[Mark, set[Id]]

    @classmethod
    def of(cls, history: History, nodes: Iterable[Replayed]) -> Marks:
        return cls(_marks(history), _transactions(nodes))


def settle(
    history: History, nodes: Sequence[Replayed], *, is_final: bool, known: Marks | None = None
) -> Settled:
    """Settle the writes of `history` (f: write, cas, txn) with new values that no other operation wrote to their keys.

    `is_final`: every node's whole log is here, and the nodes were equal when it was taken. `known`: if it is.
    """
    known = known or Marks.of(history, nodes)
    marks, found = known.written, known.transactions
    settled: dict[str, list[int]] = {"happened": [], "did not": [], "open": []}
    lost: list[Operation] = []
    kept: list[Operation] = []
    for operation in history.operations:
        written = marks.get(operation.invoke_index)
        ids = {name for mark in written or () for name in found.get(mark, ())}
        is_unjoined = written is None or (operation.is_deletion and not ids)
        fates = None if is_unjoined else _fates(ids, nodes, is_final)
        if fates is None:
            if operation.type == "info" and _written(operation):
                settled["open"].append(operation.invoke_index)
        elif operation.type == "info":
            settled[fates].append(operation.invoke_index)
        elif operation.type == "ok" and fates == "did not":
            lost.append(operation)
        elif operation.type == "fail" and fates == "happened":
            kept.append(operation)
    return Settled(
        history=settled_history(history, settled["did not"]),
        happened=tuple(settled["happened"]),
        did_not=tuple(settled["did not"]),
        open=tuple(settled["open"]),
        lost=tuple(lost),
        kept=tuple(kept),
        revealed=tuple(_revealing(history, nodes, found)) if is_final else (),
    )


def settled_history(history: History, did_not: Iterable[int]) -> History:
    """The history with what surely did not happen (indexes of invocations) as failed."""
    failed = frozenset(did_not)

    def after(operations: Iterable[Operation]) -> Iterator[Operation]:
        for each in operations:
            is_failed = each.invoke_index in failed
            yield structs.replace(each, type="fail", error=DID_NOT) if is_failed else each

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


def _revealing(
    history: History, nodes: Sequence[Replayed], found: Mapping[Mark, set[Id]]
) -> Iterator[Operation]:
    """A value that was confirmed at any time may be shown: it need not be the newest."""
    for operation in history.operations:
        shown = _shown_by_refusal(operation, history)
        if shown is None or shown not in found:
            continue
        fates = {node.fates[name] for name in found[shown] for node in nodes if name in node.fates}
        if fates <= {"rolled back", "nop"}:
            yield operation


def _shown_by_refusal(operation: Operation, history: History) -> Mark | None:
    """Key and value in the answer of a refused transaction, if the store promises that they are confirmed."""
    if operation.type != "fail" or operation.complete_index is None:
        return None
    match operation.f, operation.key, history.events[operation.complete_index].value:
        case "transfer", _, {"from": str(account), "found": int(balance)}:
            return account, balance
        case "cas", str(key), [_, _, found] | (_, _, found) if found is not None:
            return key, found
    return None


def joined(known: Marks) -> Mapping[int, list[Id]]:
    """By the index of its invocation: the one transaction of each operation that can be joined to one."""
    found = known.transactions
    names = {
        index: {name for mark in marks for name in found.get(mark, ())}
        for index, marks in known.written.items()
    }
    return {index: list(each) for index, each in names.items() if len(each) == 1}


def shown(history: History, known: Marks) -> Mapping[int, list[Id]]:
    """By the index of its invocation: the transactions whose values an answer shows, where the store promises that they
    are confirmed. Values that several operations or transactions write are left out.
    """
    unique = {mark for marks in known.written.values() for mark in marks}
    named = {mark: ids for mark, ids in known.transactions.items() if len(ids) == 1 and mark in unique}
    return {
        operation.invoke_index: [name for mark in _shown(operation, history) for name in named.get(mark, ())]
        for operation in history.operations
        if operation.complete_index is not None
    }


def _shown(operation: Operation, history: History) -> list[Mark]:
    """Key and value, of a list the last element: what a confirmed read or a refusal shows."""
    refusal = _shown_by_refusal(operation, history)
    if refusal is not None:
        return [refusal]
    if operation.type != "ok" or operation.mode not in CONFIRMED_READS:
        return []
    match operation.f, operation.key, operation.value:
        case "read", str(key), int() | str() as value:
            return [(key, value)]
        case "txn", _, list() as parts if all(part[0] == "r" for part in parts):
            values = (
                (part[1], part[2][-1] if isinstance(part[2], list) and part[2] else part[2]) for part in parts
            )
            return [(key, value) for key, value in values if isinstance(value, int | str)]
    return []


def _written(operation: Operation) -> list[Mark]:
    """The values it puts in place: of a transaction the last one under each key."""
    match operation.f, operation.key, operation.value:
        case "write", str(key), value:
            return [(key, value)]
        case "cas", str(key), (_, value):
            return [(key, value)]
        case "txn", _, list() as parts:
            last = {part[1]: part[2] for part in parts if part[0] in ("append", "w")}
            return list(last.items())
    return []


def _marks(history: History) -> Mapping[int, list[Mark]]:
    """By invocation: what this operation, and no other, writes; operations that share anything are left out."""
    written = {operation.invoke_index: _written(operation) for operation in history.operations}
    writers = Counter(mark for marks in written.values() for mark in marks)
    return {
        index: marks
        for index, marks in written.items()
        if marks and all(writers[mark] == 1 for mark in marks)
    }


def _transactions(nodes: Iterable[Replayed]) -> Mapping[Mark, set[Id]]:
    found: dict[Mark, set[Id]] = {}
    read: dict[Id, tuple[Record, ...]] = {}
    for node in nodes:
        for name, rows in node.transactions.items():
            if read.setdefault(name, rows) is not rows and _are_alike(read[name], rows):
                continue
            for row in rows:
                mark = mark_of(row)
                if mark is not None:
                    found.setdefault(mark, set()).add(name)
    return found


def _are_alike(one: Sequence[Record], other: Sequence[Record]) -> bool:
    """Whether two logs hold a transaction with the same content."""
    return len(one) == len(other) and all(
        row.body == its.body and row.kind == its.kind for row, its in zip(one, other, strict=True)
    )


def mark_of(row: Record) -> Mark | None:
    """Key and value of a row, None for a deletion; of a list what was appended last."""
    if row.kind == "write" and row.is_whole and not row.tuple and isinstance(row.key, str):
        return row.key, None
    match row.tuple:
        case (str(key), [*_, int() | str() as last]):
            return key, last
        case (str(key), int() | str() | float() | None as value):
            return key, value
    return None


def _fates(ids: set[Id], nodes: Sequence[Replayed], is_final: bool) -> str | None:
    """`happened`, `did not` or `open`; None if the value cannot be joined to one transaction."""
    if len(ids) > 1:
        return None
    said: set[Fate] = {node.fates[name] for name in ids for node in nodes if name in node.fates}
    if said & {"confirmed", "committed"}:
        return "open" if said & {"rolled back", "nop"} else "happened"
    if is_final and said <= {"rolled back", "nop"}:
        return "did not"
    return "open"
