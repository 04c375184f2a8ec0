"""The audit of logs that are columns: the same verdicts as from objects, in memory that does not grow with objects.

Objects are made of what a verdict names: rows that break a rule (`checkers.wal.broken`), and operations whose answers
the logs contradict. Where something has no place in columns the answer is None, and the logs are judged as objects
(`checkers.wal`). So a rule that looks at every row is said twice, as a question of arrays here, in `broken` or in
`node_columns`, and as a search for witnesses in `agreement`; rules about votes and terms, and what PROMOTEs do to the
queue, are those of the objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy

from checkers import wal
from checkers.compiled import load
from checkers.history.columns import TYPES, Columns
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, PAIR, PLAIN
from checkers.history.operation import SUBMITTED, Operation
from checkers.history.stored import StoredOperations
from checkers.verdict import WITNESSES_MAX, Verdict, Witness
from checkers.wal import early, replay_kernels
from checkers.wal.broken import CONTROL, MOST, Broken, broken
from checkers.wal.columns import (
    NO_KEY,
    ORIGINS_MAX,
    Builder,
    Rows,
    StoredRecords,
    numbered,
)
from checkers.wal.node_columns import FATES, Node, held
from checkers.wal.record import LogRules, NodeLog, Record
from checkers.wal.replay import Limbo, Replayed, Waiting
from checkers.wal.replay_kernels import (
    COMMITTED,
    CONFIRMED,
    DECISION,
    DONE,
    HAS_PENDING,
    HEAD,
    NO_ROOM,
    ORDERED,
    PENDING,
    POSITION,
    REGS,
    ROLLED_BACK,
    TAIL,
)
from checkers.wal.settle import Settled, settled_history

Array = Any  # numpy's
REGISTERS = frozenset({"read", "write", "cas", "dump"})
"""The operations that can be joined to rows by columns."""
_QUEUE = 1 << 10
"""Entries that it has room for to begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """As `harness.judge.audit` wants them."""

    logs: Verdict
    early: Verdict
    settled: Settled


def judged(logs: Sequence[NodeLog], rules: LogRules, history: History, *, is_final: bool) -> Verdicts | None:
    """None if something has no place in columns. `is_final`: as of `settle`."""
    operations = history.operations
    if not isinstance(operations, StoredOperations) or not history.names <= REGISTERS:
        return None
    if operations.columns.code(SUBMITTED) >= 0:
        return None  # columns do not say which writes were only to be submitted
    nodes = _replayed(logs, rules)
    if nodes is None:
        return None
    rows = nodes[0].rows if nodes else Builder(0).rows
    marks = _Marks.of(operations.columns, nodes, rows)
    if marks is None:
        return None
    settled, denied = _settled(history, operations, marks, nodes, rows, is_final=is_final)
    return Verdicts(
        logs=_agree(nodes, rules, history, settled, denied),
        early=_early(history, operations, marks, nodes),
        settled=settled,
    )


def agree(logs: Sequence[NodeLog], rules: LogRules) -> Verdict | None:
    """As `wal.check`; None if something has no place in columns."""
    nodes = _replayed(logs, rules)
    return None if nodes is None else _agree(nodes, rules)


def _agree(
    nodes: Sequence[Node],
    rules: LogRules,
    history: History | None = None,
    settled: Settled | None = None,
    denied: Mapping[str, int] = MappingProxyType({}),
) -> Verdict:
    found = broken(nodes, rules) if nodes else Broken()
    is_confirmed = numpy.zeros(nodes[0].rows.transactions if nodes else 0, dtype=bool)
    for node in nodes:
        is_confirmed[node.order] = True
    return wal.verdict_on(
        nodes,
        rules,
        int(is_confirmed.sum()),
        [*found.witnesses, *(() if settled is None else wal.contradictions(settled))],
        {**found.counts, **denied},
        early.times_of_rows(history, found.logs, ()) if history is not None and found.logs else {},
    )


def _has_places(log: NodeLog) -> bool:
    vclocks = (log.begins, *(snapshot.vclock for snapshot in log.snapshots))
    return all(0 <= origin < ORIGINS_MAX for vclock in vclocks for origin in vclock)


# ---- the queue of each log


def _replayed(logs: Sequence[NodeLog], rules: LogRules) -> list[Node] | None:
    """None if something has no place in columns."""
    if not all(isinstance(log.records, StoredRecords) and _has_places(log) for log in logs):
        return None
    nodes = [_replay(log, rules) for log in logs]
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def _replay(log: NodeLog, rules: LogRules) -> Node | None:
    """None if a transaction has something else among its rows."""
    records = log.records
    assert isinstance(records, StoredRecords)
    rows, at = records.rows, records.at
    kinds = rows.kind[at]
    control = tuple(rows.record(row) for row in at[numpy.isin(kinds, CONTROL)].tolist())
    node = Node(
        log=log,
        rows=rows,
        at=at,
        fates=numpy.zeros(rows.transactions, dtype=numpy.int8),
        decided=numpy.full(rows.transactions, -1, dtype=numpy.int32),
        order=numpy.empty(len(at), dtype=numpy.int32),
        control=Replayed(replace(log, records=control)),
    )
    return node if _Queue(node, rules).replay() else None


class _Queue:
    """Replays one log: `replay_kernels` where only rows and usual CONFIRMs come, `Limbo` at any other decision."""

    def __init__(self, node: Node, rules: LogRules) -> None:
        self._node = node
        self._limbo = Limbo(node.control, rules.promotes)
        self._regs = numpy.zeros(REGS, dtype=numpy.int64)
        self._entries = numpy.zeros((_QUEUE, 4), dtype=numpy.int64)
        self._begins = numpy.zeros(ORIGINS_MAX, dtype=numpy.int64)
        for origin, lsn in node.log.begins.items():
            self._begins[origin] = lsn
        self._confirmed_of = numpy.zeros(ORIGINS_MAX, dtype=numpy.int64)
        self._rows_of: dict[int, int] = {}
        """The places of decisions, by the ids of their objects, which the limbo keeps."""
        self._decisions: list[Record] = []

    def replay(self) -> bool:
        node, rows, regs = self._node, self._node.rows, self._regs
        while True:
            answer = load(replay_kernels).replay(
                node.at, rows.kind, rows.bits, rows.origin, rows.owner, rows.lsn, rows.until, rows.transaction,
                regs, self._begins, self._confirmed_of, self._entries, node.fates, node.decided, node.order,
            )  # fmt: skip
            if answer == NO_ROOM:
                self._entries = numpy.concatenate((self._entries, numpy.zeros_like(self._entries)))
            elif answer == DECISION:
                self._decide(int(node.at[regs[POSITION]]))
                if node.control.contradictions:
                    node.control.contradictions.clear()
                    node.contradictions.append(int(regs[POSITION]))
                regs[POSITION] += 1
            else:
                break
        node.order = node.order[: regs[ORDERED]].copy()
        return bool(answer == DONE)

    def _decide(self, row: int) -> None:
        """Hand the queue to the limbo, and take it back."""
        limbo, regs, node = self._limbo, self._regs, self._node
        entries = self._entries[regs[HEAD] : regs[TAIL]].tolist()
        limbo.queue = deque(
            Waiting((origin, name), last, bool(waits)) for name, origin, last, waits in entries
        )
        limbo.confirmed_of = {origin: lsn for origin, lsn in enumerate(self._confirmed_of.tolist()) if lsn}
        decision = node.rows.record(row)
        self._decisions.append(decision)
        self._rows_of[id(decision)] = row
        limbo.decide(decision)
        found = node.control
        for (_, name), fate in found.fates.items():
            node.fates[name] = FATES.index(fate)
        for (_, name), by in found.decided_by.items():
            node.decided[name] = self._rows_of[id(by)]
        for _, name in found.order:
            node.order[regs[ORDERED]] = name
            regs[ORDERED] += 1
        found.fates, found.decided_by, found.order = {}, {}, []
        for origin, lsn in limbo.confirmed_of.items():
            self._confirmed_of[origin] = lsn
        regs[HEAD], regs[TAIL] = 0, len(limbo.queue)
        for place, entry in enumerate(limbo.queue):
            self._entries[place] = entry.id[1], entry.id[0], entry.last, entry.is_synchronous
        regs[HAS_PENDING] = bool(limbo.pending)


# ---- what clients were told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """The content of `settle.Marks`, by operation and by transaction, as arrays."""

    is_writing: Array
    is_marked: Array
    """Operations with a mark that no other has."""
    mark: Array
    """Of each operation that writes, else of no meaning."""
    one: Array
    """By mark a transaction that writes it, -1: none."""
    is_many: Array
    """By mark whether there are several."""
    is_there: Array
    """By mark whether a row has it."""
    at: Array
    """The rows with a mark."""
    of_rows: Array
    """Their marks."""

    @classmethod
    def of(cls, columns: Columns, nodes: Sequence[Node], rows: Rows) -> _Marks | None:
        is_write, is_cas = (columns.f == columns.code(name) for name in ("write", "cas"))
        if (is_write & (columns.kind != PLAIN)).any() or (is_cas & (columns.kind != PAIR)).any():
            return None
        is_writing = (is_write | is_cas) & (columns.key != 0)
        known = {key: number for number, key in enumerate(rows.keys)}
        numbers = numpy.array(
            [known.get(str(word), len(known) + at) for at, word in enumerate(columns.words)],
            dtype=numpy.int64,
        )
        places = numpy.flatnonzero(is_writing)
        marked = numpy.flatnonzero(held(nodes) & (rows.key != NO_KEY))
        if not len(places):
            return None
        found, count = numbered(
            numpy.concatenate((numbers[columns.key[places]], rows.key[marked])),
            numpy.concatenate((columns.new[places], rows.value[marked])),
        )
        of_operations, of_rows = found[: len(places)], found[len(places) :]
        mark = numpy.zeros(len(columns), dtype=numpy.int32)
        mark[places] = of_operations
        writers = numpy.bincount(of_operations, minlength=count)
        one = numpy.full(count, -1, dtype=numpy.int32)
        transactions = rows.transaction[marked]
        one[of_rows] = transactions
        is_many = numpy.zeros(count, dtype=bool)
        is_many[of_rows[one[of_rows] != transactions]] = True
        return cls(
            is_writing=is_writing,
            is_marked=is_writing & (writers[mark] == 1),
            mark=mark,
            one=one,
            is_many=is_many,
            is_there=one >= 0,
            at=marked,
            of_rows=of_rows,
        )


def _settled(
    history: History,
    operations: StoredOperations,
    marks: _Marks,
    nodes: Sequence[Node],
    rows: Rows,
    *,
    is_final: bool,
) -> tuple[Settled, dict[str, int]]:
    """As `settle`, with MOST operations that the logs contradict, and the number of all by the names of the rules.

    No transaction (-1) is the last place of arrays.
    """
    columns = operations.columns
    is_done, is_denied, is_open = (numpy.zeros(rows.transactions + 1, dtype=bool) for _ in range(3))
    for node in nodes:
        is_done[:-1] |= numpy.isin(node.fates, (CONFIRMED, COMMITTED))
        is_denied[:-1] |= numpy.isin(node.fates, (ROLLED_BACK, replay_kernels.NOP))
        is_open[:-1] |= node.fates == PENDING
    has, one = marks.is_there[marks.mark], marks.one[marks.mark]
    is_deletion = (columns.f == columns.code("write")) & (columns.kind == PLAIN) & (columns.new == ABSENT)
    is_joined = marks.is_marked & ~marks.is_many[marks.mark] & ~(is_deletion & ~has)
    done, denied, pending = (has & each[one] for each in (is_done, is_denied, is_open))
    happened = is_joined & done & ~denied
    did_not = is_joined & ~done & ~pending if is_final else numpy.zeros_like(happened)
    is_ok, is_fail, is_info = (columns.type == TYPES.index(name) for name in ("ok", "fail", "info"))
    is_left = is_info & marks.is_writing & ~(happened | did_not)
    revealed = _revealed(history, columns, marks, rows, is_done | is_open) if is_final else []
    contradicted: list[Sequence[int]] = [
        *(numpy.flatnonzero(each).tolist() for each in (is_ok & did_not, is_fail & happened)),
        revealed,
    ]
    lost, kept, shown = (
        tuple(operations.at(numpy.array(places[:MOST], dtype=numpy.int64))) for places in contradicted
    )
    settled = Settled(
        history=settled_history(history, columns.invoke[is_info & did_not]),
        happened=tuple(columns.invoke[is_info & happened].tolist()),
        did_not=tuple(columns.invoke[is_info & did_not].tolist()),
        open=tuple(columns.invoke[is_left].tolist()),
        lost=lost,
        kept=kept,
        revealed=shown,
    )
    return settled, dict(zip(wal.CONTRADICTIONS, map(len, contradicted), strict=True))


def _revealed(history: History, columns: Columns, marks: _Marks, rows: Rows, is_known: Array) -> list[int]:
    """The refusals that showed a value which every log discarded; only the line of a refusal tells what it showed."""
    is_kept = numpy.zeros(len(marks.one), dtype=bool)
    is_kept[marks.of_rows[is_known[rows.transaction[marks.at]]]] = True
    discarded = marks.at[~is_kept[marks.of_rows]]
    pairs = zip(rows.key[discarded].tolist(), rows.value[discarded].tolist(), strict=True)
    values = {(rows.keys[key], value) for key, value in pairs}
    keys = {key for key, _ in values}
    codes = [code for code, word in enumerate(columns.words) if word in keys]
    refused = (
        (columns.type == TYPES.index("fail")) & (columns.f == columns.code("cas")) & (columns.complete >= 0)
    )
    found: list[int] = []
    for place in numpy.flatnonzero(refused & numpy.isin(columns.key, codes)).tolist():
        match history.events[int(columns.complete[place])].value:
            case [_, _, int(shown)] if (columns.words[columns.key[place]], shown) in values:
                found.append(place)
    return found


def _early(history: History, operations: StoredOperations, marks: _Marks, nodes: Sequence[Node]) -> Verdict:
    """As `early.check_by_clocks`."""
    columns = operations.columns
    ahead_ns, names = early.clocks(history)
    if early.has_clock_faults(history):
        return early.by_clocks(0)
    clock_ns = numpy.full(ORIGINS_MAX, ABSENT, dtype=numpy.int64)
    for origin, name in names.items():
        if 0 <= origin < ORIGINS_MAX and name in ahead_ns:
            clock_ns[origin] = ahead_ns[name]
    one = marks.one[marks.mark]
    is_joined = marks.is_marked & (one >= 0) & ~marks.is_many[marks.mark]
    is_joined &= (columns.type == TYPES.index("ok")) & (columns.complete >= 0)
    judged = 0
    late: list[tuple[int, int, Node, int]] = []
    for node in nodes:
        own = numpy.flatnonzero(is_joined & (columns.node == columns.code(node.log.node)))
        decision = node.decided[one[own]]
        own, decision = own[decision >= 0], decision[decision >= 0]
        ahead, written_ns = clock_ns[node.rows.origin[decision]], node.rows.time[decision]
        is_told = (ahead != ABSENT) & (written_ns != 0)
        judged += int(is_told.sum())
        late_ns = written_ns - ahead - columns.complete_ns[own]
        is_late = is_told & (late_ns > early.LATE_NS)
        each = (column[is_late].tolist() for column in (own, late_ns, decision))
        late += [(place, ns, node, row) for place, ns, row in zip(*each, strict=True)]
    late.sort(key=lambda each: each[0])
    witnesses = [
        _late(operation, int(one[place]), node, row, ns)
        for (place, ns, node, row), operation in zip(
            late[:WITNESSES_MAX],
            operations.at(numpy.array([each[0] for each in late[:WITNESSES_MAX]], dtype=numpy.int64)),
            strict=True,
        )
    ]
    return early.by_clocks(judged, witnesses, len(late))


def _late(operation: Operation, transaction: int, node: Node, decision: int, late_ns: int) -> Witness:
    """`decision`: a row."""
    place = int((node.at == decision).argmax())
    return early.late(operation, node.rows.id_of(transaction), node.some([place])[0], late_ns)
