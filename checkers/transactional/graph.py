"""The graph of dependencies, and orders that agree with it.

Nodes are transactions, edges say "must come before". An order of all transactions that agrees with the edges that a
model cares for is the proof that no cycle of them exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from checkers.transactional.columns import OK, Columns, Int8s, Int32s, Int64s
from checkers.transactional.graph_kernels import Edges

WW, WR, RW, RW_PREDICATE, PROCESS = range(5)
REALTIME = 5
KINDS = ("ww", "wr", "rw", "rw", "process", "realtime")
NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Edge:
    """`cause` and `effect` are the micro-operations that prove it (-1 where real or process time does)."""

    source: int
    target: int
    kind: int
    cause: int = -1
    effect: int = -1


Cycle = tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Edges in rows: those from `node` are offsets[node] … offsets[node+1]-1 of the five arrays beside it."""

    offsets: Int64s
    source: Int32s
    target: Int32s
    kind: Int8s
    cause: Int32s
    effect: Int32s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def edges(self) -> Edges:
        """The arrays that kernels read."""
        return Edges(self.offsets, self.source, self.target, self.kind)

    def edge(self, number: int) -> Edge:
        columns = (self.source, self.target, self.kind, self.cause, self.effect)
        return Edge(*(int(column[number]) for column in columns))

    def fractured(self) -> Int64s:
        """The rw edges (no predicate's) from a transaction to one of which it read something else (Bailis, 2014)."""
        there = self.source.astype(numpy.int64) * len(self) + self.target
        back = self.target.astype(numpy.int64) * len(self) + self.source
        return numpy.flatnonzero((self.kind == RW) & numpy.isin(back, there[self.kind == WR]))

    def within(self, kernels: Any, chosen: NDArray[numpy.bool_]) -> Graph:
        """The same nodes, and only the edges that are chosen."""
        return graph_of(
            kernels,
            len(self),
            self.source[chosen],
            self.target[chosen],
            self.kind[chosen],
            self.cause[chosen],
            self.effect[chosen],
        )


def graph_of(
    kernels: Any, count: int, source: Int32s, target: Int32s, kind: Int8s, cause: Int32s, effect: Int32s
) -> Graph:
    """The graph of so many nodes with these edges, sorted into rows."""
    source = numpy.ascontiguousarray(source)
    offsets, place = kernels.rows(source, count)
    return Graph(
        offsets=offsets,
        source=source[place],
        target=target[place],
        kind=kind[place],
        cause=cause[place],
        effect=effect[place],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """When each transaction was invoked and surely over, in event indexes; and its client."""

    invoke: Int64s
    ends: Int64s
    process: Int64s
    taking_part: NDArray[numpy.bool_]
    has_real_time: bool = True

    @classmethod
    def of(cls, columns: Columns, committed: Int8s) -> Time:
        """Only an ok transaction is ever over: an unsure one may take effect at any later time."""
        over = (columns.outcome == OK) & (columns.complete >= 0)
        invoke, complete = columns.invoke, columns.complete
        if _sparse(complete[over], len(columns)):
            invoke, complete = _ranked(invoke, complete)
        return cls(
            invoke=invoke,
            ends=numpy.where(over, complete, NEVER),
            process=columns.process,
            taking_part=committed == 1,
            has_real_time=columns.has_real_time,
        )

    def groups(self, txn: NDArray[Any], group: NDArray[Any]) -> tuple[Int64s, Int64s, Int64s]:
        """Rows of transactions by group, as `graph_kernels.pairs_in_time` wants them.

        (order: the rows by group and invocation; begin: where each group does; by_end: places in `order`.)
        """
        order = numpy.lexsort((self.invoke[txn], group))
        ranked = group[order]
        begin = numpy.flatnonzero(numpy.diff(ranked, prepend=ranked[:1] - 1, append=ranked[-1:] + 1))
        by_end = numpy.lexsort((self.ends[txn[order]], ranked))
        return order, begin.astype(numpy.int64), by_end


def _sparse(complete: Int64s, count: int) -> bool:
    """Whether the events are too far apart to stand in an array, or two transactions ended at one."""
    if not len(complete):
        return False
    return bool(complete.max() > 16 * count + 1024) or int(numpy.bincount(complete).max()) > 1


def _ranked(invoke: Int64s, complete: Int64s) -> tuple[Int64s, Int64s]:
    """The same order of events, numbered from 0. Transactions that began and ended at the same event are concurrent."""
    ends = numpy.repeat([0, 1], len(invoke))
    # Of one event the beginnings stand before the ends: only what ended at an earlier event comes before.
    order = numpy.lexsort((ends, numpy.concatenate([invoke, complete])))
    rank = numpy.empty(len(order), numpy.int64)
    rank[order] = numpy.arange(len(order))
    return rank[: len(invoke)].copy(), rank[len(invoke) :].copy()


def completed_at(ends: Int64s, taking_part: NDArray[numpy.bool_]) -> Int32s:
    """int32[events]: the node that was over at each event, -1 for none."""
    nodes = numpy.flatnonzero((ends < NEVER) & taking_part)
    closed = numpy.full(int(ends[nodes].max()) + 1 if len(nodes) else 0, -1, numpy.int32)
    # One node an event: `Time.of` has ranked the events anew if two ended at one.
    closed[ends[nodes]] = nodes
    return closed


def with_steps(kernels: Any, graph: Graph, source: Int32s, target: Int32s) -> Graph:
    """The graph and steps of one client, or of one session, to its next."""
    nothing = numpy.full(len(source), -1, numpy.int32)
    return graph_of(
        kernels,
        len(graph),
        numpy.concatenate([graph.source, source]),
        numpy.concatenate([graph.target, target]),
        numpy.concatenate([graph.kind, numpy.full(len(source), PROCESS, numpy.int8)]),
        numpy.concatenate([graph.cause, nothing]),
        numpy.concatenate([graph.effect, nothing]),
    )


def in_order(kernels: Any, graph: Graph, time: Time, order: int) -> Graph:
    """The graph and steps from ended to later begun transactions: in each session (order 1), anywhere (2), none (0).

    Only the nearest, the rest follows.
    """
    if order == 0:
        return graph
    members = numpy.flatnonzero(time.taking_part).astype(numpy.int32)
    group = time.process[members] if order == 1 else numpy.zeros(len(members), numpy.int64)
    by_invocation, begin, by_end = time.groups(members, group)
    rows = members[by_invocation]
    room = 64 * len(rows) + 1024
    while True:
        source, target, whole = kernels.pairs_in_time(
            begin, time.invoke[rows], time.ends[rows], by_end, rows, rows, room
        )
        if whole:
            return with_steps(kernels, graph, source, target)
        room *= 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The constraints of an order: edges, and real time (see `graph_kernels.serial_order`).

    `split`: every transaction stands twice, t where its snapshot is taken and n + t where it commits.
    """

    graph: Graph
    gate: Int64s
    closed: Int32s
    split: bool

    @classmethod
    def of(cls, kernels: Any, graph: Graph, time: Time, base: str, *, realtime: bool) -> Constraints:
        """The constraints of the model's base; `graph` holds the order of sessions too if that counts."""
        count = len(graph)
        none = numpy.full(count, -1, numpy.int64)
        gate = time.invoke if realtime else none
        closed = completed_at(time.ends, time.taking_part) if realtime else numpy.zeros(0, numpy.int32)
        if base not in SPLIT:
            graph = graph.within(kernels, numpy.isin(graph.kind, ORDERED.get(base, ORDERED_WEAKLY)))
            return cls(graph=graph, gate=gate, closed=closed, split=False)
        gate = numpy.concatenate([gate, none])
        closed = numpy.where(closed >= 0, closed + count, closed).astype(numpy.int32)
        wins = base == "snapshot-isolation"
        return cls(graph=_twice(kernels, graph, first_wins=wins), gate=gate, closed=closed, split=True)

    def order(self, kernels: Any, time: Time) -> Int32s | None:
        """An order of the participating nodes within the constraints; None if there is none."""
        graph, count = self.graph, len(time.taking_part)
        nodes, total = kernels.serial_order(graph.offsets, graph.target, self.gate, self.closed)
        if total < len(graph):
            return None
        chosen: Int32s = nodes[time.taking_part[nodes % count]]
        return chosen


SPLIT = ("snapshot-isolation", "prefix")
"""The models with a snapshot before the commit."""
ORDERED: dict[str, tuple[int, ...]] = {
    "repeatable-read": (WW, WR, RW, PROCESS),
    "serializable": (WW, WR, RW, RW_PREDICATE, PROCESS),
}
"""The edges that must not form a circle; of any other model those of `ORDERED_WEAKLY`."""
ORDERED_WEAKLY = (WW, WR, PROCESS)


def _twice(kernels: Any, graph: Graph, *, first_wins: bool) -> Graph:
    """Snapshots before their commits, commits before snapshots that depend on them; rw: a snapshot before a commit.

    ww: a commit before a commit, and if the first committer wins before the other's snapshot.
    """
    count = len(graph)
    anti = (graph.kind == RW) | (graph.kind == RW_PREDICATE)
    late = anti | (graph.kind == WW) & (not first_wins)
    every = numpy.arange(count, dtype=numpy.int32)
    nothing = numpy.full(count, -1, numpy.int32)
    return graph_of(
        kernels,
        2 * count,
        numpy.concatenate([numpy.where(anti, graph.source, graph.source + count).astype(numpy.int32), every]),
        numpy.concatenate(
            [numpy.where(late, graph.target + count, graph.target).astype(numpy.int32), every + count]
        ).astype(numpy.int32),
        numpy.concatenate([graph.kind, numpy.full(count, PROCESS, numpy.int8)]),
        numpy.concatenate([graph.cause, nothing]),
        numpy.concatenate([graph.effect, nothing]),
    )
