"""The smallest simple cycle of a class by trying every path, for graphs of a few transactions.

A breadth-first search remembers one way to each state of a class's automaton. Where that way passes a transaction
twice, a longer way that doesn't is never tried (to find one is NP-hard), and the class would lack its name beside the
worse anomalies that are in the way. Where there is little to try, everything is tried.
"""

from __future__ import annotations

from collections.abc import Iterable

from checkers.transactional.classes import CycleClass
from checkers.transactional.columns import Int64s
from checkers.transactional.graph import Graph, Time

EDGES_MAX = 400
STEPS_MAX = 50_000
"""Some 20 ms; beyond, what was found until then stands."""


class Paths:
    """Every simple path of a class through a small graph, shortest kept.

    `best` holds the edges of the shortest so far, by number; `limit` how many edges a shorter one may have.
    """

    def __init__(self, graph: Graph, wanted: CycleClass, limit: int) -> None:
        self.offsets, self.target, self.kind = (
            column.tolist() for column in (graph.offsets, graph.target, graph.kind)
        )
        self.table = wanted.automaton.table.tolist()
        self.accepting = wanted.automaton.accepting.tolist()
        self.limit = limit
        self.steps = STEPS_MAX
        self.best: list[int] | None = None

    def shortest_from(self, origins: Iterable[tuple[int, int, frozenset[int]]]) -> list[int] | None:
        """`origins`: a start edge or -1, the transaction to walk from, and those at which a path may end."""
        for start, origin, goals in origins:
            self._walk([] if start < 0 else [start], origin, 0, {origin}, goals)
        return self.best

    def _walk(self, path: list[int], here: int, state: int, passed: set[int], goals: frozenset[int]) -> None:
        for edge in range(self.offsets[here], self.offsets[here + 1]):
            if len(path) >= self.limit or self.steps <= 0:
                return
            self.steps -= 1
            after, there = self.table[state][self.kind[edge]], self.target[edge]
            if after < 0 or there in passed:
                continue
            if there in goals and self.accepting[after]:
                self.best, self.limit = [*path, edge], len(path)
                return
            self._walk([*path, edge], there, after, passed | {there}, goals)


def closing(graph: Graph, starts: Int64s, wanted: CycleClass, limit: int) -> list[int] | None:
    """The edges of the smallest simple cycle of at most `limit` edges that begins with one of `starts`, or None."""
    sources, targets = graph.source[starts].tolist(), graph.target[starts].tolist()
    origins = zip(starts.tolist(), targets, (frozenset((source,)) for source in sources), strict=True)
    return Paths(graph, wanted, limit).shortest_from(origins)


def back_in_time(
    graph: Graph, time: Time, starts: Int64s, wanted: CycleClass, limit: int
) -> list[int] | None:
    """The edges of the shortest simple path of at most `limit` edges from a start to a node that ended before it."""
    invoke, ends = time.invoke.tolist(), time.ends.tolist()
    origins = (
        (-1, start, frozenset(node for node, end in enumerate(ends) if end < invoke[start]))
        for start in starts.tolist()
    )
    return Paths(graph, wanted, limit).shortest_from(origins)
