"""Circles of transactions that send to logs and poll them, such as Kafka's: those that `jepsen.tests.kafka` looks for.

    wr  T2 polled what T1 sent     ww  what T2 sent stands right behind what T1 sent, of the entries that are known

| rule | what must not be |
|---|---|
| G1c | a circle of wr: each transaction polled what the one before it in the circle had sent |
| G1c-process, G1c-realtime | the same with steps of "the same client did this first", of "this had ended before" |

A transaction polls only what is committed, so whatever it polled was sent by one before it. Circles that need ww are
findings (G0, G1c, with the same suffixes): entries of concurrent transactions stand between each other in a log, and no
isolation is promised of them. There is no rw: a poll says nothing of the entries behind those that it gave.

Nodes are sends, polls and transactions that did not surely fail. A transaction of unknown outcome shows what it polled,
too. A value that two operations sent has no known sender. Offsets at which two values stand give no ww: see
`checkers.domain.offsets`, which judges the logs themselves. `history.log_entries` has the form of the operations.

Cost: linear in the entries, and the search for circles (`search`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy

from checkers import compiled
from checkers.history.history import History
from checkers.history.log_entries import JUDGED, polled_by, sent_by
from checkers.history.operation import Operation
from checkers.limits import given, shielded
from checkers.transactional import graph_kernels
from checkers.transactional.anomalies import ANOMALIES
from checkers.transactional.columns import READ, WRITE, Columns, columns_of_entries
from checkers.transactional.explanation import Explanation, with_time
from checkers.transactional.graph import WR, WW, Edge, Graph, Time, graph_of
from checkers.transactional.search import EDGES_MAX, PLAIN_EDGES_MAX, Limit, Search, searched
from checkers.verdict import Result, Verdict

NAME = "log-cycles"
MODEL = "what a transaction polls was sent by one before it"
RULES = ("G1c", "G1c-process", "G1c-realtime")

Sender = tuple[int, int]
"""The number of a transaction, and of the micro-operation that sent a value."""


def check(history: History) -> Verdict:
    """Whether the transactions have an order in which each polls only what was sent before it.

    `details`: transactions, edges by kind, anomalies (a picture of each), violations, findings, undecided.
    """
    operations = [operation for operation in history.select(f=JUDGED) if operation.type != "fail"]
    columns = replace(columns_of_entries(operations, _micros), has_real_time=history.has_real_time)
    senders = _senders(columns)
    wr = list(_wr(columns, senders))
    ww = list(_ww(operations, columns, senders))
    searches = [_search(columns, edges) for edges in (wr, [*wr, *ww])]
    with shielded():
        return _verdict(history, columns, {"wr": len(wr), "ww": len(ww)}, *searches)


def _micros(operation: Operation) -> Iterator[tuple[int, Any, Any]]:
    for entry in sent_by(operation):
        yield WRITE, entry.key, entry.value
    for entry in polled_by(operation):
        yield READ, entry.key, entry.value


def _senders(columns: Columns) -> dict[tuple[int, int], Sender | None]:
    """By key and value, as the columns number them; None: two operations sent it."""
    senders: dict[tuple[int, int], Sender | None] = {}
    for txn, micro, name in _entries(columns, WRITE):
        known = senders.setdefault(name, (txn, micro))
        if known is not None and known[0] != txn:
            senders[name] = None
    return senders


def _entries(columns: Columns, f: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """(transaction, micro-operation, (key, value)) of what was sent, or of what was polled."""
    micros = numpy.flatnonzero(columns.f == f)
    owners = numpy.searchsorted(columns.first, micros, side="right") - 1
    names = zip(columns.key[micros].tolist(), columns.value[micros].tolist(), strict=True)
    return zip(owners.tolist(), micros.tolist(), names, strict=True)


def _wr(columns: Columns, senders: Mapping[tuple[int, int], Sender | None]) -> Iterator[Edge]:
    there: set[tuple[int, int]] = set()
    for txn, micro, name in _entries(columns, READ):
        sender = senders.get(name)
        if sender is not None and sender[0] != txn and (sender[0], txn) not in there:
            there.add((sender[0], txn))
            yield Edge(sender[0], txn, WR, cause=sender[1], effect=micro)


def _ww(
    operations: Sequence[Operation], columns: Columns, senders: Mapping[tuple[int, int], Sender | None]
) -> Iterator[Edge]:
    """Between the senders of entries that stand one behind the other, of those whose offset is known."""
    logs: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    micro = 0
    for operation in operations:
        for entry in (*sent_by(operation), *polled_by(operation)):  # as in `_micros`
            is_sure = operation.type == "ok" or columns.f[micro] == READ
            if entry.offset is not None and is_sure:
                logs[int(columns.key[micro])][entry.offset].add(int(columns.value[micro]))
            micro += 1
    for key, log in logs.items():
        for before, after in pairwise(log[offset] for offset in sorted(log)):
            if len(before) == len(after) == 1:
                one, other = senders.get((key, min(before))), senders.get((key, min(after)))
                if one is not None and other is not None and one[0] != other[0]:
                    yield Edge(one[0], other[0], WW, cause=one[1], effect=other[1])


def _search(columns: Columns, edges: Sequence[Edge]) -> Search:
    """The search in the plain twin of the kernels, as long as that is the faster way."""
    time = Time.of(columns, numpy.ones(len(columns), numpy.int8))
    kernels, budget = compiled.load(graph_kernels, len(edges) + len(columns)), given().steps or EDGES_MAX
    if kernels is graph_kernels and budget > PLAIN_EDGES_MAX:
        search = searched(kernels, _graph(kernels, columns, edges), time, Limit(PLAIN_EDGES_MAX))
        if not search.undecided or search.limit.late():
            return search
        kernels = compiled.load(graph_kernels)
    return searched(kernels, _graph(kernels, columns, edges), time, Limit(budget))


def _graph(kernels: Any, columns: Columns, edges: Sequence[Edge]) -> Graph:
    table = numpy.array(
        [(edge.source, edge.target, edge.kind, edge.cause, edge.effect) for edge in edges], numpy.int32
    ).reshape(-1, 5)
    source, target, kind, cause, effect = (numpy.ascontiguousarray(column) for column in table.T)
    return graph_of(kernels, len(columns), source, target, kind.astype(numpy.int8), cause, effect)


class _Words(Explanation):
    """The words of logs."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns, "rw-register")
        self.past, self.read, self.steps = "sent {} to {}", "polled {1} of {0}", ("poll", "send")

    def _why_later(self, edge: Edge) -> str:
        return ", at a higher offset"


def _verdict(
    history: History, columns: Columns, edges: Mapping[str, int], search: Search, with_ww: Search
) -> Verdict:
    words = _Words(columns)
    cycles = {**with_ww.cycles, **search.cycles}
    names = [name for name in ANOMALIES if name in cycles]
    violations = [name for name in names if name in search.cycles]
    witnesses = {name: with_time(words.cycle_witness(name, cycles[name]), history) for name in names}
    undecided = [name for name in search.undecided if name in RULES]
    polled = int((columns.f == READ).sum())
    result: Result = "valid"
    summary = (
        f"{len(columns)} sends, polls and transactions have an order in which each polls what was sent before"
    )
    if violations:
        result, summary = "invalid", witnesses[violations[0]].summary
    elif not polled:
        result, summary = "unknown", "no client polled anything: there is nothing to judge"
    elif undecided:
        result = "unknown"
        summary = f"{search.limit.words()} did not suffice to rule out {', '.join(undecided)}"
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=MODEL,
        witnesses=tuple(witnesses[name] for name in violations),
        details={
            "transactions": len(columns),
            "judged": polled,
            "edges": dict(edges),
            "anomalies": {name: words.cycle_json(cycles[name]) for name in names},
            "violations": violations,
            "findings": [witnesses[name].summary for name in names if name not in violations],
            "undecided": undecided,
            **({} if polled else {"vacuous": True}),
        },
    )
