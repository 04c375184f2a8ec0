"""Logs of servers as columns, and the cuts and operations that they are judged with.

A record of a server's log, in the order in which it was written:

    prepared, committed, rolled-back   of a transaction; `participants` are all nodes that must have it (those that are
                                       no baseline servers are left out of every comparison). `by` "recovery": other
                                       participants decided it in place of its dead near node. A committed one has
                                       `writes`: (key, version), and versions of a key ascend, and may have a `sign`:
                                       the cut after which it committed, by the node that committed it first
    start, finish                      of a cut; a finish has the sets `included` and `excluded`
    base                               a base snapshot (`cut` is its id): the whole state of the node there
    rebalanced                         data came as a copy from another node, not as records

A node's BEFORE of a cut, which a restore of it brings back: what it committed before START and FINISH does not exclude,
and what it committed behind START and FINISH includes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy

from checkers.cuts.trace import Int8s, Int32s, Int64s, name_of
from checkers.history.errors import HistoryError

Kind = Literal["prepared", "committed", "rolled-back", "start", "finish", "base", "rebalanced"]
Version = int | tuple[int, ...]

KINDS: tuple[Kind, ...] = ("prepared", "committed", "rolled-back", "start", "finish", "base", "rebalanced")
PREPARED, COMMITTED, ROLLED_BACK, START, FINISH, BASE, REBALANCED = range(len(KINDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record; what its kind does not have stays empty."""

    kind: Kind
    xid: Any = None
    cut: Any = None
    participants: Sequence[str] = ()
    writes: Sequence[tuple[Any, Version]] = ()
    included: Sequence[Any] = ()
    excluded: Sequence[Any] = ()
    by: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLog:
    """The records of one server. `damage`: a sentence if those behind the last one cannot be read.

    `is_whole` False: the log begins later than the node did (older segments are gone).
    """

    node: str
    records: Sequence[Record]
    damage: str = ""
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """n records of the servers, one log after the other.

    first      int64[nodes + 1]   the records of log i are first[i] … first[i+1]-1
    kind       int8[n]            index in KINDS
    xid, cut   int32[n]           codes in `xids` and `cuts`; -1: none
    recovered  bool[n]            decided by recovery
    sign       int32[n]           a number for each sign; -1: none
    taking     int32[p, 2]        (record, log) for each participant that has a log
    included, excluded int32[·, 2]  (record of a FINISH, xid)
    writes     int64[w, 3]        (record, key, rank of the version among all versions)
    """

    nodes: tuple[str, ...]
    first: Int64s
    kind: Int8s
    xid: Int32s
    cut: Int32s
    recovered: Any
    sign: Int32s
    taking: Int32s
    included: Int32s
    excluded: Int32s
    writes: Int64s
    xids: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    damage: Mapping[str, str] = field(default_factory=dict)
    cut_off: frozenset[str] = frozenset()
    """Nodes with a log that begins late."""
    marks: Mapping[tuple[int, str], Mapping[str, list[int]]] = field(init=False, repr=False, compare=False)
    """By kind (START or FINISH) and cut, and then by node: the records."""

    def __post_init__(self) -> None:
        marks: dict[tuple[int, str], dict[str, list[int]]] = {}
        for record in numpy.flatnonzero((self.kind == START) | (self.kind == FINISH)).tolist():
            name = (int(self.kind[record]), self.cuts[self.cut[record]])
            marks.setdefault(name, {}).setdefault(self.nodes[self.node_of(record)], []).append(record)
        object.__setattr__(self, "marks", marks)

    def node_of(self, record: int) -> int:
        """The log of a record."""
        return int(numpy.searchsorted(self.first[1:], record, side="right"))

    def place(self, record: int) -> dict[str, Any]:
        """Where a record is, as JSON: its node, and its position in that log (0 is the first)."""
        node = self.node_of(record)
        return {"node": self.nodes[node], "record": int(record) - int(self.first[node])}

    def described(self, record: int) -> str:
        """A record for a person: `committed t7 (n1, record 12)`."""
        place = self.place(record)
        about = self.xids[self.xid[record]] if self.xid[record] >= 0 else ""
        about = self.cuts[self.cut[record]] if self.cut[record] >= 0 else about
        kind = KINDS[self.kind[record]]
        return f"{kind}{' ' if about else ''}{about} ({place['node']}, record {place['record']})"

    def of_cut(self, kind: int, cut: str) -> Mapping[str, list[int]]:
        """By node the records START or FINISH of the cut, in their order."""
        return self.marks.get((kind, cut), {})


def logs_of(given: Iterable[NodeLog]) -> Logs:
    """The columns of some logs. Raises HistoryError for a node with two logs, a kind that is none, or a record
    without the transaction or the cut that it is of."""
    return _Builder(list(given)).logs()


class _Builder:
    def __init__(self, given: Sequence[NodeLog]) -> None:
        self.given = given
        self.nodes = {log.node: place for place, log in enumerate(given)}
        if len(self.nodes) < len(given):
            raise HistoryError(expected="one log a node", came="two of one", attempt="join them first")
        self.xids: dict[str, int] = {}
        self.cuts: dict[str, int] = {}
        self.keys: dict[str, int] = {}
        self.signs: dict[str, int] = {}
        self.rows: list[tuple[int, int, int, bool, int]] = []
        self.taking: list[tuple[int, int]] = []
        self.included: list[tuple[int, int]] = []
        self.excluded: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int, tuple[int, ...]]] = []

    def logs(self) -> Logs:
        first = [0]
        for log in self.given:
            for record in log.records:
                self._record(record)
            first.append(len(self.rows))
        table = numpy.array(self.rows, numpy.int64).reshape(-1, 5)
        return Logs(
            nodes=tuple(self.nodes),
            first=numpy.array(first, numpy.int64),
            kind=table[:, 0].astype(numpy.int8),
            xid=table[:, 1].astype(numpy.int32),
            cut=table[:, 2].astype(numpy.int32),
            recovered=table[:, 3].astype(bool),
            sign=table[:, 4].astype(numpy.int32),
            taking=numpy.array(self.taking, numpy.int32).reshape(-1, 2),
            included=numpy.array(self.included, numpy.int32).reshape(-1, 2),
            excluded=numpy.array(self.excluded, numpy.int32).reshape(-1, 2),
            writes=self._ranked(),
            xids=tuple(self.xids),
            cuts=tuple(self.cuts),
            keys=tuple(self.keys),
            damage={log.node: log.damage for log in self.given if log.damage},
            cut_off=frozenset(log.node for log in self.given if not log.is_whole),
        )

    def _record(self, record: Record) -> None:
        expected = "" if record.kind in KINDS else f"a kind among {', '.join(KINDS)}"
        if record.kind in ("prepared", "committed", "rolled-back") and record.xid is None:
            expected = f"the xid of a {record.kind} record"
        elif record.kind in ("start", "finish") and record.cut is None:
            expected = f"the cut of a {record.kind} record"
        if expected:
            raise HistoryError(expected=expected, came=repr(record), attempt="decode the log again")
        place = len(self.rows)
        xid = -1 if record.xid is None else self._code(self.xids, record.xid)
        cut = -1 if record.cut is None else self._code(self.cuts, record.cut)
        sign = self._code(self.signs, record.sign) if record.sign else -1
        self.rows.append((KINDS.index(record.kind), xid, cut, record.by == "recovery", sign))
        self.taking += [(place, self.nodes[node]) for node in record.participants if node in self.nodes]
        self.included += [(place, self._code(self.xids, named)) for named in record.included]
        self.excluded += [(place, self._code(self.xids, named)) for named in record.excluded]
        for key, version in record.writes:
            parts = version if isinstance(version, tuple) else (version,)
            self.writes.append((place, self._code(self.keys, key), parts))

    def _ranked(self) -> Int64s:
        ranks = {version: rank for rank, version in enumerate(sorted({write[2] for write in self.writes}))}
        rows = [(place, key, ranks[version]) for place, key, version in self.writes]
        return numpy.array(rows, numpy.int64).reshape(-1, 3)

    @staticmethod
    def _code(codes: dict[str, int], identifier: Any) -> int:
        return codes.setdefault(name_of(identifier), len(codes))


Outcome = Literal["finished", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One cut of a series. Times by the clock of the operations and of the trace, -1: unknown.

    outcomes       by node how the whole cut ended, as that node reports it
    causes         what the harness did, or saw, that excuses a cut that does not finish
    had_to_fail    what happened while it ran that no cut may survive: sentences
    """

    id: str
    asked_ns: int = -1
    ended_ns: int = -1
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    causes: Sequence[str] = ()
    had_to_fail: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A transaction as its client saw it. `completed_ns` -1: no answer. `ok`: it was acknowledged.

    `wrote`: it changed something, so that some log has it if it committed. `saw`: the transactions whose effects its
    answer shows; they had committed by then, whether they were acknowledged or not. `events`: its lines in the history.
    """

    xid: Any
    process: int
    invoked_ns: int
    completed_ns: int = -1
    ok: bool = False
    wrote: bool = True
    saw: Sequence[Any] = ()
    events: tuple[int, ...] = ()
