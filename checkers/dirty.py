"""Dirty reads: they may show any value that a client has asked to write, also one that is rolled back later.

So the only violation is a value that no client had asked to write by then. The checker also counts the shown
values of writes that surely failed later: they are allowed, but may surprise a reader. If no dirty read was answered,
there is nothing to judge, and the verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations
from checkers.value_order import comparable
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

NAME = "dirty"
MODEL = "read-uncommitted"


def check(history: History) -> Verdict:
    """Whether every dirty read returned nothing, or a value that a client had asked to write before the read ended.

    Judged are operations read, and txn that only read, of mode "dirty"; of lists, each element. `details["asked"]`: how
    many such reads were invoked, answered or not; 0 if the store answered them, and each in another mode.
    """
    all_reads = history.select(f=("read", "txn"))
    asked_for = [each for each in all_reads if each.mode == "dirty"]
    reads = [each for each in asked_for if each.type == "ok"]
    if not reads and _are_answered_in_another_mode(history, all_reads):
        asked_for = []
    asked: dict[tuple[str | None, object], list[Operation]] = {}
    for operation in history.select(f=("write", "cas", "txn")):
        for key, value in _written(operation):
            asked.setdefault((key, comparable(value)), []).append(operation)
    witnesses: list[Witness] = []
    undone = 0
    for read in reads:
        for key, value in _seen(read):
            askers = asked.get((key, comparable(value)), [])
            in_time = [asker for asker in askers if not read.precedes(asker)]
            if not in_time:
                witnesses.append(_witness(read, key, value, askers))
            elif all(asker.type == "fail" for asker in in_time):
                undone += 1
    return _verdict(witnesses, len(reads), len(asked_for), undone)


def _are_answered_in_another_mode(history: History, reads: Sequence[Operation]) -> bool:
    """The store has no dirty reads, and says so in its answers: their promise is that of the mode which they name."""
    operations = history.operations
    if isinstance(operations, StoredOperations) and operations.columns.code("dirty") < 0:
        return False
    dirty = {event.index for event in history.events if event.type == "invoke" and event.mode == "dirty"}
    return any(each.type == "ok" and each.mode != "dirty" and each.invoke_index in dirty for each in reads)


def _written(operation: Operation) -> Iterator[tuple[str | None, Any]]:
    match operation.f, operation.value:
        case "write", value:
            yield operation.key, value
        case "cas", value:
            yield operation.key, value[1]
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


def _verdict(witnesses: Sequence[Witness], reads: int, asked: int, undone: int) -> Verdict:
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
    if witnesses:
        summary = witnesses[0].summary
    elif not reads:
        summary = f"nothing to judge: of {asked} dirty reads none was answered"
    return Verdict(
        checker=NAME,
        result="invalid" if witnesses else "valid" if reads else "unknown",
        summary=summary,
        model=MODEL,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )
