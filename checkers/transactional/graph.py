"""The graph of dependencies, and the smallest cycle of each class in it.

Nodes are transactions, edges say "must come before". A class of cycles is an edge to begin with and an automaton for
the way back (see `anomalies` for what the classes mean, `graph_kernels` for how they are walked):

- plain classes begin with an edge that their cycles must have, and come back to its source
- with -process they begin with "the same client did this first", and come back to its source
- with -realtime they begin at a transaction, and come to one which had ended before that began; one such step is
  enough, see `shortest_back_in_time`

Whether there is any cycle at all is seen in linear time, by components; only their members are searched. A closed walk
that passes a transaction twice is no cycle: it is two smaller ones, each of a class of its own, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from checkers.transactional.anomalies import CYCLES, ORDERS
from checkers.transactional.columns import OK, Columns, Int8s, Int32s, Int64s

WW, WR, RW, RW_PREDICATE, PROCESS = range(5)
REALTIME = 5
KINDS = ("ww", "wr", "rw", "rw", "process", "realtime")
NEVER = 2**62
ANY = 2**30
STEPS = 5_000_000
"""How many edges a kernel may look at between two looks at the clock: some 20 ms."""
TRANSITIVE_MAX = 200_000
"""How many "the same client did this first" there may be for all pairs to be edges, and not neighbours only."""


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

    def edge(self, number: int) -> Edge:
        columns = (self.source, self.target, self.kind, self.cause, self.effect)
        return Edge(*(int(column[number]) for column in columns))

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
    """When transactions were asked and surely over, in event indexes; whose they were."""

    invoke: Int64s
    ends: Int64s
    process: Int64s
    taking_part: NDArray[numpy.bool_]

    @classmethod
    def of(cls, columns: Columns, committed: Int8s) -> Time:
        """Only an ok transaction is ever over: an unsure one may take effect at any later time."""
        over = (columns.outcome == OK) & (columns.complete >= 0)
        return cls(
            invoke=columns.invoke,
            ends=numpy.where(over, columns.complete, NEVER),
            process=columns.process,
            taking_part=committed == 1,
        )


def completed_at(ends: Int64s, taking_part: NDArray[numpy.bool_]) -> Int32s:
    """int32[events]: the node that was over at each event, -1 for none."""
    nodes = numpy.flatnonzero((ends < NEVER) & taking_part)
    closed = numpy.full(int(ends[nodes].max()) + 1 if len(nodes) else 0, -1, numpy.int32)
    closed[ends[nodes]] = nodes
    return closed


Rules = Mapping[str, tuple[Sequence[int], Sequence[Mapping[int, int]], Sequence[int]]]

_D = (WW, WR)


def _to(state: int, *kinds: int) -> dict[int, int]:
    return dict.fromkeys(kinds, state)


def _closing(item: Sequence[int]) -> Rules:
    """Class → kinds of the edge to begin with, states as kind → state, accepting states. `item`: kinds of rw."""
    single = [_to(0, *_D)]
    apart = [
        _to(1, *_D),  # 0: after the first rw
        _to(1, *_D) | _to(2, *item),  # 1: after something else, one rw so far
        _to(3, *_D),  # 2: after another rw
        _to(3, *_D) | _to(2, *item),  # 3: after something else, two rw or more
    ]
    together = [
        _to(1, *_D) | _to(2, *item),  # 0: after rw
        _to(1, *_D) | _to(3, *item),  # 1: after something else
        _to(2, *_D, *item),  # 2: there were two rw in a row
        _to(1, *_D) | _to(2, *item),  # 3: after rw, and with the first edge that makes two in a row
    ]
    return {
        "G0": ((WW,), [_to(0, WW)], (0,)),
        "G1c": ((WR,), [_to(0, *_D)], (0,)),
        "G-single": (item[-1:], single, (0,)),
        "G-nonadjacent": (item[-1:], apart, (3,)),
        "G2-item": (item[-1:], together, (2, 3)),
    }


def _path(item: Sequence[int], also: Sequence[int]) -> Rules:
    """As `_closing`, for cycles that begin with a step in time, itself neither ww, wr nor rw; `also`: more of these."""
    d = (*_D, *also)
    apart = [
        _to(0, *d) | _to(1, *item),  # 0: no rw so far
        _to(2, *d),  # 1: after the first rw
        _to(2, *d) | _to(3, *item),  # 2: after something else, one rw so far
        _to(4, *d),  # 3: after another rw
        _to(4, *d) | _to(3, *item),  # 4: after something else, two rw or more
    ]
    together = [_to(0, *d) | _to(1, *item), _to(0, *d) | _to(2, *item), _to(2, *d, *item)]
    return {
        "G0": ((), [_to(0, WW, *also)], (0,)),
        "G1c": ((), [_to(0, WW, *also) | _to(1, WR), _to(1, *d)], (1,)),
        "G-single": ((), [_to(0, *d) | _to(1, *item), _to(1, *d)], (1,)),
        "G-nonadjacent": ((), apart, (3, 4)),
        "G2-item": ((), together, (2,)),
    }


_LEAST = {"G0": 2, "G1c": 2, "G-single": 2, "G-nonadjacent": 4, "G2-item": 2}
_LEAST_IN_TIME = {"G0": 2, "G1c": 2, "G-single": 2, "G-nonadjacent": 4, "G2-item": 3}
_BY_PREDICATE = {
    "G-single": "G-single-predicate",
    "G-nonadjacent": "G-nonadjacent-predicate",
    "G2-item": "G2",
}


def _automaton(
    states: Sequence[Mapping[int, int]], accepting: Sequence[int]
) -> tuple[NDArray[numpy.int8], Int8s]:
    table = numpy.full((len(states), 5), -1, numpy.int8)
    for state, after in enumerate(states):
        for kind, target in after.items():
            table[state, kind] = target
    marks = numpy.zeros(len(states), numpy.int8)
    marks[list(accepting)] = 1
    return table, marks


_EVERY = _automaton([_to(0, WW, WR, RW, RW_PREDICATE, PROCESS)], (0,))
_DEPENDENCIES = _automaton([_to(0, WW, WR, RW, RW_PREDICATE)], (0,))


class OutOfTime(Exception):
    """The time limit was met; what was found until then stands."""


class Search:
    """Looks for the smallest cycle of every class, worst first, until `deadline_s` of `clock`.

    `cycles` holds what was found, by name; `undecided` the classes that time did not suffice for.
    """

    def __init__(
        self, kernels: Any, graph: Graph, time: Time, deadline_s: float, clock: Callable[[], float]
    ) -> None:
        self.kernels = kernels
        self.graph = graph
        self.time = time
        self.deadline_s = deadline_s
        self.clock = clock
        self.cycles: dict[str, Cycle] = {}
        self.undecided: list[str] = []
        self.predicates = bool((graph.kind == RW_PREDICATE).any())

    def run(self) -> None:
        """Fill `cycles` and `undecided`."""
        for suffix, level in zip(ORDERS, (self._plain, self._process, self._realtime), strict=True):
            try:
                for name, find in level():
                    self._look_for(name, suffix, find)
            except OutOfTime:
                names = (
                    name + suffix for name in CYCLES if self.predicates or name not in _BY_PREDICATE.values()
                )
                self.undecided += [name for name in names if not self._known(name, suffix)]

    def _known(self, name: str, suffix: str) -> bool:
        """Whether a cycle of the class, or one that needs less (of time, of predicates), was found, or given up."""
        plain = name.removesuffix(suffix)
        names = [plain] + [item for item, other in _BY_PREDICATE.items() if other == plain]
        before = ORDERS[: ORDERS.index(suffix) + 1]
        return name in self.undecided or any(
            each + order in self.cycles for each in names for order in before
        )

    def _look_for(self, name: str, suffix: str, find: Callable[[], Cycle | None]) -> None:
        if self._known(name, suffix):
            return
        try:
            cycle = find()
        except OutOfTime:
            self.undecided.append(name)
            return
        if cycle is not None:
            self.cycles[name] = cycle

    def with_clients_order(self) -> Graph:
        """The graph with "the same client did this first" between neighbours."""
        return self._with_process_edges(range(len(self.graph)), all_pairs=False)

    def _plain(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        graph, component = self._cyclic(self.graph)
        if len(graph.source) == 0:
            return
        for name, start_kinds, automaton, least in self._classes(_closing, _LEAST, ()):
            starts = numpy.flatnonzero(numpy.isin(graph.kind, start_kinds))
            yield name, partial(self._closing, graph, component, starts, automaton, least)

    def _process(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        if not len(self.graph.source):
            return
        graph, component = self._cyclic(self.with_clients_order())
        members = numpy.unique(graph.source).astype(numpy.int64)
        if not (graph.kind == PROCESS).any():
            return
        if self._pairs(members) <= TRANSITIVE_MAX:
            graph, component = self._cyclic(self._with_process_edges(members, all_pairs=True))
        starts = numpy.flatnonzero(graph.kind == PROCESS)
        for name, _, automaton, least in self._classes(_path, _LEAST_IN_TIME, (PROCESS,)):
            yield name + "-process", partial(self._closing, graph, component, starts, automaton, least)

    def _realtime(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        _, earliest, _ = self._components(self.graph, _DEPENDENCIES)
        starts = numpy.flatnonzero(earliest < self.time.invoke)
        if not len(starts):
            return
        for name, _, automaton, least in self._classes(_path, _LEAST_IN_TIME, ()):
            yield name + "-realtime", partial(self._back_in_time, starts, automaton, least)

    def _classes(
        self, rules: Callable[..., Rules], least: Mapping[str, int], also: Sequence[int]
    ) -> Iterator[tuple[str, Sequence[int], tuple[Any, Int8s], int]]:
        """Every class with its automaton, worst first; those by predicate only where somebody read so."""
        arguments = (also,) if rules is _path else ()
        for name, (start, states, accepting) in rules((RW,), *arguments).items():
            yield name, start, _automaton(states, accepting), least[name]
        if not self.predicates:
            return
        for name, (start, states, accepting) in rules((RW, RW_PREDICATE), *arguments).items():
            if name in _BY_PREDICATE:
                yield _BY_PREDICATE[name], start, _automaton(states, accepting), least[name]

    def _components(self, graph: Graph, automaton: tuple[Any, Int8s]) -> tuple[Int32s, Int64s, int]:
        self._look_at_the_clock()
        found: tuple[Int32s, Int64s, int] = self.kernels.components(
            graph.offsets, graph.target, graph.kind, *_swapped(automaton, self.time.ends)
        )
        return found

    def _cyclic(self, graph: Graph) -> tuple[Graph, Int32s]:
        """The edges of `graph` that lie on any cycle, and every node's component."""
        component, _, _ = self._components(graph, _EVERY)
        chosen = component[graph.source] == component[graph.target]
        return graph.within(self.kernels, chosen), component

    def _look_at_the_clock(self) -> None:
        if self.clock() > self.deadline_s:
            raise OutOfTime

    def _with_process_edges(self, members: Any, *, all_pairs: bool) -> Graph:
        """The graph and, among `members`, "the same client did this first"; of neighbours only, or of all pairs."""
        source, target = self._process_pairs(numpy.asarray(members, numpy.int64), all_pairs=all_pairs)
        nothing = numpy.full(len(source), -1, numpy.int32)
        graph = self.graph
        return graph_of(
            self.kernels,
            len(graph),
            numpy.concatenate([graph.source, source]),
            numpy.concatenate([graph.target, target]),
            numpy.concatenate([graph.kind, numpy.full(len(source), PROCESS, numpy.int8)]),
            numpy.concatenate([graph.cause, nothing]),
            numpy.concatenate([graph.effect, nothing]),
        )

    def _process_pairs(self, members: Int64s, *, all_pairs: bool) -> tuple[Int32s, Int32s]:
        members = members[self.time.taking_part[members]]
        ranked = members[numpy.argsort(self.time.process[members], kind="stable")]
        process = self.time.process[ranked]
        sources, targets = [], []
        distance = 1
        while distance < len(ranked):
            same = numpy.flatnonzero(process[:-distance] == process[distance:])
            over = same[self.time.ends[ranked[same]] < self.time.invoke[ranked[same + distance]]]
            sources.append(ranked[over])
            targets.append(ranked[over + distance])
            if not all_pairs or not len(same):
                break
            distance += 1
        none = [numpy.zeros(0, numpy.int64)]
        return (
            numpy.concatenate(sources or none).astype(numpy.int32),
            numpy.concatenate(targets or none).astype(numpy.int32),
        )

    def _pairs(self, members: Int64s) -> int:
        _, sizes = numpy.unique(self.time.process[members], return_counts=True)
        return int((sizes.astype(numpy.int64) ** 2).sum())

    def _closing(
        self, graph: Graph, component: Int32s, starts: Int64s, automaton: tuple[Any, Int8s], least: int
    ) -> Cycle | None:
        if not len(starts):
            return None
        rank, _, _ = self._components(graph, automaton)
        # The start whose ends lie nearest in time is likely on a short cycle: what is found first prunes the rest.
        near = numpy.abs(graph.source[starts].astype(numpy.int64) - graph.target[starts])
        starts = starts[numpy.argsort(near, kind="stable")]
        room = _Room(len(graph), len(automaton[1]))
        position, best = 0, ANY
        while position < len(starts) and best > least:
            self._look_at_the_clock()
            position, best = self.kernels.shortest_closing(
                *(
                    graph.offsets,
                    graph.target,
                    graph.kind,
                    graph.source,
                    *automaton,
                    starts,
                    position,
                    best,
                    least,
                ),
                *(component, rank, STEPS, *room.arrays),
            )
        if best == ANY:
            return None
        edges = [graph.edge(number) for number in room.found[:best]]
        return tuple(_merged(edges))

    def _back_in_time(self, starts: Int64s, automaton: tuple[Any, Int8s], least: int) -> Cycle | None:
        graph, time = self.graph, self.time
        _, earliest, _ = self._components(graph, automaton)
        states = len(automaton[1])
        starts = starts[earliest[starts * states] < time.invoke[starts]]
        room = _Room(len(graph), states)
        position, best = 0, ANY
        while position < len(starts) and best > least:
            self._look_at_the_clock()
            position, best = self.kernels.shortest_back_in_time(
                *(graph.offsets, graph.target, graph.kind, *automaton, starts, position, best, least),
                *(time.invoke, time.ends, earliest, STEPS, *room.arrays),
            )
        if best == ANY:
            return None
        path = [graph.edge(number) for number in room.found[: best - 1]]
        return (Edge(path[-1].target, path[0].source, REALTIME), *path)


class _Room:
    """What the kernels search in."""

    def __init__(self, nodes: int, states: int) -> None:
        total = nodes * states
        self.found = numpy.zeros(total + 2, numpy.int64)
        self.arrays = (
            self.found,
            numpy.full(total, -1, numpy.int32),
            numpy.zeros(nodes, numpy.int8),
            numpy.zeros(total, numpy.int64),
            numpy.zeros(total, numpy.int64),
            numpy.zeros(total + 1, numpy.int64),
        )


def _swapped(automaton: tuple[Any, Int8s], ends: Int64s) -> tuple[Any, Int64s, Int8s]:
    return automaton[0], ends, automaton[1]


def _merged(edges: Sequence[Edge]) -> list[Edge]:
    """Steps of one client that follow each other, round the cycle, are one step. The first edge is such a step if any
    is.
    """
    merged: list[Edge] = []
    for edge in edges:
        if merged and edge.kind == PROCESS == merged[-1].kind:
            merged[-1] = Edge(merged[-1].source, edge.target, PROCESS)
        else:
            merged.append(edge)
    if len(merged) > 2 and merged[0].kind == PROCESS == merged[-1].kind:
        last = merged.pop()
        merged[0] = Edge(last.source, merged[0].target, PROCESS)
    return merged


def serial_order(
    kernels: Any, graph: Graph, time: Time, base: str, order: int, process_edges: Graph | None
) -> Int32s | None:
    """A proof that no cycle forbids `base`: an order of the transactions that its edges agree with, None if none does.

    For snapshot isolation every transaction stands twice, t where its snapshot is taken and n + t where it commits. For
    parallel snapshot isolation there is no such order (None).
    """
    graph = process_edges if order == 1 and process_edges is not None else graph
    kinds = _ORDERED.get(base)
    count = len(graph)
    none = numpy.full(count, -1, numpy.int64)
    gate = time.invoke if order == 2 else none
    closed = completed_at(time.ends, time.taking_part) if order == 2 else numpy.zeros(0, numpy.int32)
    if base == "snapshot-isolation":
        graph = _twice(kernels, graph, time)
        gate = numpy.concatenate([gate, none])
        closed = numpy.where(closed >= 0, closed + count, closed).astype(numpy.int32)
        kinds = _ORDERED["serializable"]
    if kinds is None:
        return None
    wanted = numpy.zeros(5, numpy.int8)
    wanted[list(kinds)] = 1
    found, total = kernels.serial_order(graph.offsets, graph.target, graph.kind, wanted, gate, closed)
    if total < len(graph):
        return None
    chosen: Int32s = found[time.taking_part[found % count]]
    return chosen


_ORDERED: dict[str, tuple[int, ...]] = {
    "read-uncommitted": (WW, PROCESS),
    "read-committed": (WW, WR, PROCESS),
    "read-atomic": (WW, WR, PROCESS),
    "repeatable-read": (WW, WR, RW, PROCESS),
    "serializable": (WW, WR, RW, RW_PREDICATE, PROCESS),
}


def _twice(kernels: Any, graph: Graph, time: Time) -> Graph:
    """Snapshots before their commits, commits before snapshots that depend on them; rw: a snapshot before a commit."""
    count = len(graph)
    anti = (graph.kind == RW) | (graph.kind == RW_PREDICATE)
    every = numpy.arange(count, dtype=numpy.int32)
    nothing = numpy.full(count, -1, numpy.int32)
    return graph_of(
        kernels,
        2 * count,
        numpy.concatenate([numpy.where(anti, graph.source, graph.source + count).astype(numpy.int32), every]),
        numpy.concatenate(
            [numpy.where(anti, graph.target + count, graph.target).astype(numpy.int32), every + count]
        ).astype(numpy.int32),
        numpy.concatenate([graph.kind, numpy.full(count, PROCESS, numpy.int8)]),
        numpy.concatenate([graph.cause, nothing]),
        numpy.concatenate([graph.effect, nothing]),
    )
