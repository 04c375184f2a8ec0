"""The logs of a cluster as arrays, replayed: by transaction what became of it in each log."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy

from checkers.compiled import load
from checkers.logs.wal import replay_kernels
from checkers.logs.wal.columns import CONFIRM, DEMOTE, NOP, PROMOTE, ROLLBACK, VOTE, WRITE, Rows, of_logs
from checkers.logs.wal.marks import marks
from checkers.logs.wal.plain import StoredRecords
from checkers.logs.wal.record import LogRules, NodeLog, Promotes, Record
from checkers.logs.wal.replay import Fate, Limbo, Replayed, Waiting
from checkers.logs.wal.replay_kernels import (
    ABSENT,
    DECISION,
    HAS_PENDING,
    HEAD,
    NO_ROOM,
    ORDERED,
    PENDING,
    POSITION,
    REGS,
    TAIL,
)
from checkers.logs.wal.replay_kernels import NOP as VOID
from checkers.logs.wal.row_kernels import ENDS

Array = Any  # numpy's
FATES: Final[tuple[Fate | None, ...]] = (None, "nop", "committed", "confirmed", "rolled back", "pending")
"""By their numbers in `replay_kernels`."""
CONTROL: Final = (PROMOTE, DEMOTE, VOTE)
"""Kinds of few rows, of which records are made in any case."""
_QUEUE: Final = 1 << 10
"""Entries that the queue has room for at first."""


@dataclass(kw_only=True)
class Node:
    """The log of one node. `at` has the places of its rows in `rows`; `fates` (numbers of FATES) and `decided` (the
    place in this log of the row that did; -1: none) are by transaction; `order` has the confirmed synchronous ones as
    they took effect.
    """

    log: NodeLog
    rows: Rows
    at: Array
    fates: Array
    decided: Array
    order: Array
    control: Sequence[tuple[int, Record]]
    """PROMOTEs, DEMOTEs and votes, with their places; without their files."""
    contradictions: list[int] = field(default_factory=list)
    """The places of CONFIRMs and ROLLBACKs that name no entry of the queue as it was when they were written."""

    @property
    def counts(self) -> Counter[Fate]:
        many = numpy.bincount(self.fates, minlength=len(FATES)).tolist()
        return Counter({fate: count for fate, count in zip(FATES, many, strict=True) if fate and count})

    @cached_property
    def kinds(self) -> Array:
        """The kinds of its rows."""
        return self.rows.kind[self.at]

    @cached_property
    def is_data(self) -> Array:
        """Which of its rows are of transactions."""
        return (self.kinds == WRITE) | (self.kinds == NOP)

    @cached_property
    def end(self) -> Mapping[int, int]:
        """By origin the last lsn."""
        return dict(self.log.begins) | last_lsns(self.rows, self.at, self.log.begins)

    def some(self, places: Sequence[int]) -> list[Record]:
        """The records at ascending places."""
        records = self.log.records
        if isinstance(records, StoredRecords):
            return records.some(places)
        return [records[place] for place in places]

    def is_of(self, transaction: int) -> Array:
        """Which of its rows are of a transaction."""
        return self.is_data & (self.rows.transaction[self.at] == transaction)

    def ends(self, place: int) -> bool:
        """Whether the row there is the last one of its transaction."""
        return bool(self.rows.bits[self.at[place]] & ENDS)


@dataclass(frozen=True, kw_only=True)
class Logs:
    """The logs of all nodes, replayed, and the rules by which they are read."""

    nodes: Sequence[Node]
    rows: Rows
    """Of all logs together."""
    rules: LogRules

    @classmethod
    def of(cls, logs: Sequence[NodeLog], rules: LogRules) -> Logs:
        """Raises HistoryError of numbers that have no place in arrays."""
        rows, ats = _stored(logs) or of_logs(logs)
        nodes = [_replayed(log, rows, at, rules.promotes) for log, at in zip(logs, ats, strict=True)]
        return cls(nodes=nodes, rows=rows, rules=rules)

    @property
    def is_complete(self) -> bool:
        """The log of every member is here, and whole."""
        return self.rules.is_complete([node.log for node in self.nodes])

    @cached_property
    def held(self) -> Array:
        """Which rows a log holds: files before a new beginning of a log do not count."""
        is_held = numpy.zeros(len(self.rows.kind), dtype=bool)
        for node in self.nodes:
            is_held[node.at] = True
        return is_held

    @cached_property
    def is_confirmed(self) -> Array:
        """By transaction: some log has it among those that it confirms."""
        confirmed = numpy.zeros(self.rows.transactions, dtype=bool)
        for node in self.nodes:
            confirmed[node.order] = True
        return confirmed

    def have(self, *fates: int) -> Array:
        """By transaction: whether it has one of these fates in some log."""
        has_fate = numpy.zeros(self.rows.transactions, dtype=bool)
        for node in self.nodes:
            has_fate |= numpy.isin(node.fates, fates)
        return has_fate


def by_origin(rows: Rows, vclock: Mapping[int, int]) -> Array:
    """A vclock as an array; 0 for an origin that it does not name."""
    lsns = numpy.zeros(rows.origins, dtype=numpy.int64)
    for origin, lsn in vclock.items():
        lsns[origin] = lsn
    return lsns


def last_lsns(rows: Rows, at: Array, before: Mapping[int, int]) -> dict[int, int]:
    """By origin the greatest lsn of the rows, or the one before them if that is greater."""
    origins, lsns = rows.origin[at], rows.lsn[at]
    return {
        origin: max(int(lsns[origins == origin].max()), before.get(origin, 0))
        for origin in numpy.unique(origins).tolist()
    }


def _stored(logs: Sequence[NodeLog]) -> tuple[Rows, list[Array]] | None:
    """The rows of logs that were read as arrays, if all were."""
    stored: list[StoredRecords] = []
    for log in logs:
        if not isinstance(log.records, StoredRecords) or (stored and log.records.rows is not stored[0].rows):
            return None
        vclocks = (log.begins, *(snapshot.vclock for snapshot in log.snapshots))
        if any(not 0 <= origin < log.records.rows.origins for vclock in vclocks for origin in vclock):
            return None
        stored.append(log.records)
    return (stored[0].rows, [records.at for records in stored]) if stored else None


def _replayed(log: NodeLog, rows: Rows, at: Array, promotes: Promotes) -> Node:
    places = numpy.flatnonzero(numpy.isin(rows.kind[at], CONTROL)).tolist()
    node = Node(
        log=log,
        rows=rows,
        at=at,
        fates=numpy.zeros(rows.transactions, dtype=numpy.int8),
        decided=numpy.full(rows.transactions, -1, dtype=numpy.int32),
        order=numpy.empty(len(at), dtype=numpy.int32),
        control=[(place, rows.record(int(at[place]))) for place in places],
    )
    _Queue(node, promotes).replay()
    if log.damage is not None:
        _believe_less(node)
    return node


def _believe_less(node: Node) -> None:
    """Of a log with missing rows only the fate of a transaction counts that its CONFIRM or ROLLBACK names.

    What else a decision covers may have been decided by a row that is missing. Such a transaction is pending.
    """
    rows, own = node.rows, node.at[node.is_data]
    last, is_named = numpy.zeros_like(node.decided), numpy.zeros(rows.transactions, dtype=bool)
    last[rows.transaction[own]] = own
    decided = numpy.flatnonzero(node.decided >= 0)
    last, by = last[decided], node.at[node.decided[decided]]
    names_it = (rows.owner[by] == rows.origin[last]) & (rows.until[by] == rows.lsn[last])
    is_named[decided] = names_it & numpy.isin(rows.kind[by], (CONFIRM, ROLLBACK))
    node.fates[~is_named & (node.fates != ABSENT) & (node.fates != VOID)] = PENDING
    node.decided[~is_named] = -1
    node.order = node.order[is_named[node.order]]


class _Queue:
    """Replays one log: `replay_kernels` where only rows and usual CONFIRMs come, `Limbo` at any other decision."""

    def __init__(self, node: Node, promotes: Promotes) -> None:
        rows = node.rows
        self._node = node
        self._result = Replayed(replace(node.log, records=()))
        self._limbo = Limbo(self._result, promotes)
        if any(record.kind in ("promote", "demote") and record.waits is None for _, record in node.control):
            self._limbo.waits = marks(node.log.records, promotes)
        self._regs = numpy.zeros(REGS, dtype=numpy.int64)
        self._entries = numpy.zeros((_QUEUE, 4), dtype=numpy.int64)
        self._begins = by_origin(rows, node.log.begins)
        self._confirmed_of = numpy.zeros(rows.origins, dtype=numpy.int64)
        self._place_of: dict[int, int] = {}
        """The places of decisions, by the ids of their records, which the limbo keeps."""
        self._decisions: list[Record] = []

    def replay(self) -> None:
        node, rows, regs = self._node, self._node.rows, self._regs
        kernels = load(replay_kernels, len(node.at))
        while True:
            answer = kernels.replay(
                node.at, rows.kind, rows.bits, rows.origin, rows.owner, rows.lsn, rows.until, rows.transaction,
                regs, self._begins, self._confirmed_of, self._entries, node.fates, node.decided, node.order,
            )  # fmt: skip
            if answer == NO_ROOM:
                self._entries = numpy.concatenate((self._entries, numpy.zeros_like(self._entries)))
            elif answer == DECISION:
                self._decide(int(regs[POSITION]))
                if self._result.contradictions:
                    self._result.contradictions.clear()
                    node.contradictions.append(int(regs[POSITION]))
                regs[POSITION] += 1
            else:
                break
        node.order = node.order[: regs[ORDERED]].copy()

    def _decide(self, place: int) -> None:
        """Hand the queue to the limbo, and take it back."""
        limbo, regs, node, result = self._limbo, self._regs, self._node, self._result
        entries = self._entries[regs[HEAD] : regs[TAIL]].tolist()
        limbo.queue = deque(
            Waiting((origin, name), last, bool(waits)) for name, origin, last, waits in entries
        )
        limbo.confirmed_of = {origin: lsn for origin, lsn in enumerate(self._confirmed_of.tolist()) if lsn}
        decision = node.rows.record(int(node.at[place]))
        self._decisions.append(decision)
        self._place_of[id(decision)] = place
        limbo.decide(decision)
        for (_, name), fate in result.fates.items():
            node.fates[name] = FATES.index(fate)
        for (_, name), by in result.decided_by.items():
            node.decided[name] = self._place_of[id(by)]
        for _, name in result.order:
            node.order[regs[ORDERED]] = name
            regs[ORDERED] += 1
        # The limbo keeps only what it has decided since: the kernel goes on with the queue as it left it.
        result.fates, result.decided_by, result.order = {}, {}, []
        for origin, lsn in limbo.confirmed_of.items():
            self._confirmed_of[origin] = lsn
        regs[HEAD], regs[TAIL] = 0, len(limbo.queue)
        for number, entry in enumerate(limbo.queue):
            self._entries[number] = entry.id[1], entry.id[0], entry.last, entry.is_synchronous
        regs[HAS_PENDING] = bool(limbo.pending)
