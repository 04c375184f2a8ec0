"""The smallest cycle of each class.

Components show in linear time whether there is a cycle; only their members are searched. A closed walk that passes a
transaction twice is not a cycle: it is two smaller ones, each of a class that is as bad or worse. The search leaves it
out. Then it tries every path of a small graph (`exhaustive`); in a large one, it may miss a class beside worse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy

from checkers.limits import OutOfTime, shielded, why_ended
from checkers.transactional import exhaustive
from checkers.transactional.anomalies import CYCLES, ORDERS
from checkers.transactional.classes import (
    BY_PREDICATE,
    EVERYTHING,
    CycleClass,
    classes_in_time,
    plain_classes,
)
from checkers.transactional.columns import Int32s, Int64s
from checkers.transactional.graph import (
    PROCESS,
    REALTIME,
    RW_PREDICATE,
    Cycle,
    Edge,
    Graph,
    Time,
    in_order,
    with_steps,
)
from checkers.transactional.graph_kernels import Automaton, Room

ANY = 2**30
STEPS = 5_000_000
"""How many edges a kernel may look at between two looks at the clock, if there is a time limit: some 20 ms."""
EDGES_MAX = 1_000_000_000
"""How many edges a search may look at in all: some 5 s."""
PLAIN_EDGES_MAX = 1_000_000
"""The same for kernels that are not compiled: some 2 s."""
TRANSITIVE_MAX = 200_000
"""How many "the same client did this first" there may be for all pairs to be edges, and not neighbours only."""


class OutOfBudget(Exception):
    """The budget was spent; the cycles that were found until then stand."""


class Limit:
    """The limits of a search: the edges that it looks at, and seconds, only if a time limit is set (`checkers.limits`).

    The same history has the same verdict on every machine unless the time limit is met; then `words` say so.
    """

    def __init__(self, edges: int) -> None:
        self.edges = edges
        self.why_late = ""

    def slice(self) -> int:
        """How many edges may be looked at before the next call; raises OutOfBudget at the end."""
        if self.late() or self.edges <= 0:
            raise OutOfBudget
        return min(STEPS, self.edges)

    def late(self) -> bool:
        """Whether a time limit was met, now or before."""
        self.why_late = self.why_late or why_ended()
        return bool(self.why_late)

    def words(self) -> str:
        """Which of the two was spent."""
        return f"{self.why_late}: it" if self.late() else "the budget of the search"


class Search:
    """Looks for the smallest cycle of every class, worst first, within `limit`.

    `cycles` holds the cycles by name of their class; `undecided` the classes that the limit did not suffice for.
    """

    def __init__(self, kernels: Any, graph: Graph, time: Time, limit: Limit) -> None:
        self.kernels = kernels
        self.graph = graph
        self.time = time
        self.limit = limit
        self.cycles: dict[str, Cycle] = {}
        self.undecided: list[str] = []
        self.predicates = bool((graph.kind == RW_PREDICATE).any())
        self.by_any = cache(lambda: self._components(graph, EVERYTHING))

    def run(self) -> None:
        """Fill `cycles` and `undecided`."""
        levels = (self._plain, self._process, *([self._realtime] if self.time.has_real_time else []))
        for suffix, level in zip(ORDERS, levels, strict=False):
            try:
                for name, find in level():
                    self._look_for(name, suffix, find)
            except OutOfBudget:
                names = (
                    name + suffix for name in CYCLES if self.predicates or name not in BY_PREDICATE.values()
                )
                self.undecided += [name for name in names if not self._known(name, suffix)]

    def _known(self, name: str, suffix: str) -> bool:
        """Whether a cycle of the class, or one that needs less (of time, of predicates), was found, or given up."""
        plain = name.removesuffix(suffix)
        names = [plain] + [item for item, other in BY_PREDICATE.items() if other == plain]
        before = ORDERS[: ORDERS.index(suffix) + 1]
        return name in self.undecided or any(
            base + order in self.cycles for base in names for order in before
        )

    def _look_for(self, name: str, suffix: str, find: Callable[[], Cycle | None]) -> None:
        if self._known(name, suffix):
            return
        try:
            cycle = find()
        except OutOfBudget:
            self.undecided.append(name)
            return
        if cycle is not None:
            self.cycles[name] = cycle

    def _plain(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        graph, component = self._cyclic(self.graph)
        if len(graph.source) == 0:
            return
        for wanted in plain_classes(predicates=self.predicates):
            starts = numpy.flatnonzero(numpy.isin(graph.kind, wanted.starts))
            yield wanted.name, partial(self._closing, graph, component, starts, wanted)

    def _process(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        if not len(self.graph.source):
            return
        graph, component = self._cyclic(in_order(self.kernels, self.graph, self.time, 1))
        members = numpy.unique(graph.source).astype(numpy.int64)
        if not (graph.kind == PROCESS).any():
            return
        if self._pairs(members) <= TRANSITIVE_MAX:  # steps over several others: the components are the same
            graph = graph.within(self.kernels, graph.kind != PROCESS)
            graph = with_steps(self.kernels, graph, *self._process_pairs(members))
            graph = graph.within(self.kernels, component[graph.source] == component[graph.target])
        starts = numpy.flatnonzero(graph.kind == PROCESS)
        for wanted in classes_in_time((PROCESS,), predicates=self.predicates):
            yield wanted.name + "-process", partial(self._closing, graph, component, starts, wanted)

    def _realtime(self) -> Iterator[tuple[str, Callable[[], Cycle | None]]]:
        _, earliest, _ = self.by_any()
        starts = numpy.flatnonzero(earliest < self.time.invoke)
        if not len(starts):
            return
        for wanted in classes_in_time(predicates=self.predicates):
            yield wanted.name + "-realtime", partial(self._back_in_time, starts, earliest, wanted)

    def _components(self, graph: Graph, automaton: Automaton) -> tuple[Int32s, Int64s, int]:
        self.limit.slice()
        components: tuple[Int32s, Int64s, int] = self.kernels.components(
            graph.offsets, graph.target, graph.kind, automaton.table, self.time.ends, automaton.accepting
        )
        return components

    def _cyclic(self, graph: Graph) -> tuple[Graph, Int32s]:
        """The edges of `graph` that lie on any cycle, and every node's component."""
        component, _, _ = self.by_any() if graph is self.graph else self._components(graph, EVERYTHING)
        chosen = component[graph.source] == component[graph.target]
        return graph.within(self.kernels, chosen), component

    def _process_pairs(self, members: Int64s) -> tuple[Int32s, Int32s]:
        """All pairs of `members` that one client ran one after the other."""
        members = members[self.time.taking_part[members]]
        ranked = members[numpy.argsort(self.time.process[members], kind="stable")]
        process = self.time.process[ranked]
        sources, targets = [numpy.zeros(0, numpy.int64)], [numpy.zeros(0, numpy.int64)]
        for distance in range(1, len(ranked)):
            same = numpy.flatnonzero(process[:-distance] == process[distance:])
            if not len(same):
                break
            over = same[self.time.ends[ranked[same]] < self.time.invoke[ranked[same + distance]]]
            sources.append(ranked[over])
            targets.append(ranked[over + distance])
        return numpy.concatenate(sources).astype(numpy.int32), numpy.concatenate(targets).astype(numpy.int32)

    def _pairs(self, members: Int64s) -> int:
        _, sizes = numpy.unique(self.time.process[members], return_counts=True)
        return int((sizes.astype(numpy.int64) ** 2).sum())

    def _closing(self, graph: Graph, component: Int32s, starts: Int64s, wanted: CycleClass) -> Cycle | None:
        if not len(starts):
            return None
        automaton, least = wanted.automaton, wanted.least
        rank, _, _ = self._components(graph, wanted.automaton)
        # The start with the ends nearest in time is likely on a short cycle: what is found first prunes the rest.
        near = numpy.abs(graph.source[starts].astype(numpy.int64) - graph.target[starts])
        starts = starts[numpy.argsort(near, kind="stable")]
        room = _room(len(graph), len(automaton.accepting))
        position, best = 0, ANY
        while position < len(starts) and best > least:
            steps = self.limit.slice()
            position, best, left = self.kernels.shortest_closing(
                *(graph.edges, automaton, starts, position, best, least, component, rank, steps, room)
            )
            self.limit.edges -= steps - left
        numbers = room.edges[:best].tolist() if best < ANY else None
        if self._worth_every_path(graph, wanted, best):
            numbers = exhaustive.closing(graph, starts, wanted, best - 1) or numbers
        return tuple(_merged([graph.edge(number) for number in numbers])) if numbers else None

    def _back_in_time(self, starts: Int64s, by_any: Int64s, wanted: CycleClass) -> Cycle | None:
        """`by_any`: the earliest end to which each transaction leads by dependencies of any kind.

        To find the same by those of the class takes long. It spares paths that lead nowhere, so it is not needed where
        one of the first starts has the smallest cycle that there can be.
        """
        states, least = len(wanted.automaton.accepting), wanted.least
        best, numbers = self._shortest(starts, numpy.repeat(by_any, states), wanted, len(self.graph.source))
        if best > least:
            _, earliest, _ = self._components(self.graph, wanted.automaton)
            starts = starts[earliest[starts * states] < self.time.invoke[starts]]
            best, numbers = self._shortest(starts, earliest, wanted)
        if self._worth_every_path(self.graph, wanted, best):
            numbers = exhaustive.back_in_time(self.graph, self.time, starts, wanted, best - 2) or numbers
        if not numbers:
            return None
        path = [self.graph.edge(number) for number in numbers]
        return (Edge(path[-1].target, path[0].source, REALTIME), *path)

    def _shortest(
        self, starts: Int64s, earliest: Int64s, wanted: CycleClass, edges_max: int = 0
    ) -> tuple[int, list[int]]:
        """(the length of the smallest cycle, its edges but the one in time); (ANY, []) if there is none.

        `edges_max`: at the first start after so many edges it ends with what it has found, and at no cost.
        """
        graph, time, automaton = self.graph, self.time, wanted.automaton
        room = _room(len(graph), len(automaton.accepting))
        position, best = 0, ANY
        while position < len(starts) and best > wanted.least:
            steps = edges_max or self.limit.slice()
            position, best, left = self.kernels.shortest_back_in_time(
                *(graph.edges, automaton, starts, position, best, wanted.least),
                *(time.invoke, time.ends, earliest, steps, room),
            )
            if edges_max:
                break
            self.limit.edges -= steps - left
        return best, room.edges[: best - 1].tolist() if best < ANY else []

    def _worth_every_path(self, graph: Graph, wanted: CycleClass, best: int) -> bool:
        """Whether to try every path: the kernels know one way to each state, which misses cycles beside a worse one."""
        return (
            best > wanted.least
            and bool(self.cycles)
            and len(wanted.automaton.accepting) > 1
            and len(graph.source) <= exhaustive.EDGES_MAX
        )


def searched(kernels: Any, graph: Graph, time: Time, limit: Limit) -> Search:
    """The search when it has run, or has noted what a time limit left undecided."""
    search = Search(kernels, graph, time, limit)
    try:
        search.run()
    except OutOfTime:
        with shielded():
            search.run()  # behind the limit it only notes what is not decided
    return search


def _room(nodes: int, states: int) -> Room:
    total = nodes * states
    return Room(
        edges=numpy.zeros(total + 2, numpy.int64),
        path=numpy.zeros(total + 1, numpy.int64),
        seen=numpy.full(total, -1, numpy.int32),
        mark=numpy.zeros(nodes, numpy.int8),
        parent=numpy.zeros(total, numpy.int64),
        by_edge=numpy.zeros(total, numpy.int64),
        queue=numpy.zeros(total + 1, numpy.int64),
    )


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
