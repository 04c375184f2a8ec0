"""Rules over objects, one operation at a time: the slow, obvious twins of those over columns.

    with over_objects():
        expected = dirty.check(history)

Within it checks take every operation that columns would spare them, and count by walking through all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy

from checkers import guessing, strongest
from checkers.domain import rollback_honesty
from checkers.history import rest
from checkers.history.history import Header, History
from checkers.history.operation import Operation, Outcome, Phase
from checkers.history.value_rows import Numbers
from checkers.history.values import identity
from checkers.linearizable import checker
from checkers.replicas import convergence, dirty, early_timeout, overruled, prefix, quorum
from checkers.replicas.early_timeout import TIMED_OUT
from checkers.replicas.quorum import needs_quorum
from checkers.sessions import staleness
from checkers.verdict import Witness
from tests.checkers.replicas import convergence_over_objects, prefix_over_objects
from tests.checkers.sessions import staleness_over_objects


@contextmanager
def over_objects() -> Iterator[None]:
    """Every rule that has a twin here is that twin."""
    with ExitStack() as stack:
        for name in ("names", "outcomes", "has_finals"):
            stack.enter_context(patch.object(History, name, property(globals()[f"_{name}"])))
        for place, name, twin in (
            (History, "select", _select),
            (History, "keys", _keys),
            (guessing, "_telling", _all),
            (strongest, "_only_in_doubt", lambda history, *_: history),
            (checker, "of_columns", _nothing),
            (convergence, "_wrong_values", convergence_over_objects.wrong_values),
            (convergence, "gone_everywhere", convergence_over_objects.gone_everywhere),
            (dirty, "_judged", _dirty),
            (early_timeout, "_timeouts", _timeouts),
            (overruled, "_concerned", lambda history: history.select(f=("write", "cas", "add"))),
            (prefix, "_judged", prefix_over_objects.judged),
            (quorum, "_to_be_judged", _to_be_judged),
            (rest, "_end_of_load", _end_of_load),
            (staleness, "_judged", staleness_over_objects.judged),
            (rollback_honesty, "_concerned", lambda history: (history.operations, 0)),
            (Numbers, "_are_simple", _none_is_simple),
        ):
            stack.enter_context(patch.object(place, name, twin))
        yield


def _nothing(*_: Any, **__: Any) -> None:
    """Columns tell nothing."""


def _all(history: History) -> Sequence[Operation]:
    return history.operations


def _names(history: History) -> set[str]:
    return {each.f for each in history.operations}


def _outcomes(history: History) -> Counter[Outcome]:
    return Counter(each.type for each in history.operations)


def _has_finals(history: History) -> bool:
    return any(each.phase == "final" for each in history.operations)


def _select(
    history: History,
    *,
    f: str | Iterable[str] | None = None,
    outcome: Outcome | None = None,
    phase: Phase | None = None,
    node: str | None = None,
    keys: Container[str | None] | None = None,
) -> tuple[Operation, ...]:
    names = None if f is None else {f} if isinstance(f, str) else {*f}
    return tuple(
        each
        for each in history.operations
        if (names is None or each.f in names)
        and (outcome is None or each.type == outcome)
        and (phase is None or each.phase == phase)
        and (node is None or each.node == node)
        and (keys is None or each.key in keys)
    )


def _keys(
    history: History, *, f: str | Iterable[str] | None = None, phase: Phase | None = None
) -> set[str | None]:
    return {each.key for each in _select(history, f=f, phase=phase)}


def _end_of_load(history: History, until_ns: int) -> int:
    ends = [each.complete_ns or 0 for each in history.operations if each.phase == "load"]
    return max((end for end in ends if end <= until_ns), default=0)


def _timeouts(history: History, least_ns: int) -> tuple[int, Sequence[Operation]]:
    writes = [each for each in history.operations if each.f == "write" and each.value is not None]
    told = [each for each in writes if (each.error or "").endswith(TIMED_OUT)]
    return len(told), [each for each in told if (each.complete_ns or 0) - each.invoke_ns < least_ns]


def _none_is_simple(numbers: Numbers, places: Any, names: object) -> tuple[Any, Any]:
    return (numpy.zeros(len(places), dtype=bool),) * 2


def _dirty(history: History) -> tuple[list[Witness], int, int, list[int]]:
    """Read by read, value by value."""
    asked: dict[tuple[str | None, object], list[Operation]] = {}
    for operation in history.select(f=("write", "cas", "append", "add", "txn")):
        for key, value in dirty._written_values(operation):
            asked.setdefault((key, identity(value)), []).append(operation)
    witnesses: list[Witness] = []
    undone: list[int] = []
    many, reads = 0, 0
    for place, read in enumerate(history.operations):
        if read.f not in ("read", "txn") or read.mode != "dirty":
            continue
        if read.f == "txn" and any(f not in ("r", "read") for f, *_ in read.value):
            continue
        many += 1
        reads += read.type == "ok"
        for key, value in dirty._read_values(read) if read.type == "ok" else ():
            is_list = isinstance(value, list | tuple) and (key, identity(value)) not in asked
            start = history.start.of(key)
            there = {identity(each) for each in (start, *(start if isinstance(start, list) else ()))}
            for each in value if is_list else [value]:
                askers = asked.get((key, identity(each)), [])
                in_time = [asker for asker in askers if not read.precedes(asker)]
                if each is None and not is_list:
                    continue
                if not history.start.is_plain and identity(each) in there:
                    continue
                if not in_time:
                    witnesses.append(dirty._witness(read, key, each, askers))
                elif all(asker.type == "fail" for asker in in_time):
                    undone.append(place)
    return witnesses, many, reads, undone


def _to_be_judged(history: History, faults: object) -> tuple[Sequence[Operation], int]:
    header = history.header
    needing = [
        each
        for each in history.operations
        if needs_quorum(header, each)
        and _server(each, header) in header.nodes
        and each.complete_ns is not None
        and not each.is_submitted
    ]
    return needing, sum(each.type == "ok" for each in needing)


def _server(operation: Operation, header: Header) -> str:
    """The node that must have gathered the quorum; "" where that is not surely known."""
    if quorum._changes_nothing(operation) or operation.node is None:
        return ""
    is_leaderless = header.extra.get("leaderless") is True
    is_owner = operation.role == "owner" or operation.node == header.owner
    return operation.node if is_owner or is_leaderless else ""
