"""Dirty reads: anything that somebody has asked to write may be seen, also what is rolled back later.

So the only violation is a value that nobody had asked to write by then. How many values were shown whose write
then surely failed is reported: allowed, but more than a reader may expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.value_order import comparable
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

NAME = "dirty"
MODEL = "read-uncommitted"


def check(history: History) -> Verdict:
    """Whether every dirty read returned what somebody had asked to write before it ended, or nothing."""
    reads = [operation for operation in history.select(f="read", outcome="ok") if operation.mode == "dirty"]
    asked = {key: _askers(group) for key, group in by_key(history.select(f=("write", "cas"))).items()}
    witnesses: list[Witness] = []
    undone = 0
    for read in reads:
        if read.value is None:
            continue
        askers = asked.get(read.key, {}).get(comparable(read.value), [])
        in_time = [asker for asker in askers if not read.precedes(asker)]
        if not in_time:
            witnesses.append(_witness(read, askers))
        elif all(asker.type == "fail" for asker in in_time):
            undone += 1
    return _verdict(witnesses, len(reads), undone)


def _askers(operations: Sequence[Operation]) -> dict[object, list[Operation]]:
    askers: dict[object, list[Operation]] = {}
    for operation in operations:
        value = operation.value if operation.f == "write" else operation.value[1]
        askers.setdefault(comparable(value), []).append(operation)
    return askers


def _witness(read: Operation, askers: Sequence[Operation]) -> Witness:
    rule = "read-from-the-future" if askers else "never-written"
    why = "before anybody had asked to write it" if askers else "which nobody ever asked to write"
    named = [*askers[:1], read]
    return Witness(
        rule=rule,
        summary=f"a dirty read of key {read.key} at {read.node} returned {read.value}, {why}",
        events=tuple(sorted(event for operation in named for event in operation.events)),
        key=read.key,
        node=read.node,
        start_ns=min(operation.invoke_ns for operation in named),
        end_ns=max(operation.complete_ns or operation.invoke_ns for operation in named),
    )


def _verdict(witnesses: Sequence[Witness], reads: int, undone: int) -> Verdict:
    details: dict[str, Any] = {
        "dirty_reads": reads,
        "undone_values_read": undone,
        "violations": len(witnesses),
        "vacuous": reads == 0,
        "findings": [],
    }
    if undone:
        details["findings"] = [f"{undone} of {reads} dirty reads showed a value whose write surely failed"]
    summary = f"dirty reads ({reads}) returned only what somebody had asked to write"
    if witnesses:
        summary = witnesses[0].summary
    elif not reads:
        summary = "nothing to judge: there was no dirty read"
    return Verdict(
        checker=NAME,
        result="invalid" if witnesses else "valid",
        summary=summary,
        model=MODEL,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )
