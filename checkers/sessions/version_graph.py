"""The order of versions: a graph over the values of one key, with the two steps behind each edge.

An edge says that its source is the older value. Where the edges make a cycle, no order of the versions fits. Edges of
four kinds come from two successive steps of one process, by what they did:

    read, read      monotonic-reads             write, write    monotonic-writes
    write, read     read-your-writes            read, write     writes-follow-reads

and two always hold: nothing is older than the initial value, and a compare-and-set makes its value from an older one.

Coherence asks more than all edges together. A register holds one value at a time, so the steps of one value stand
together, and a compare-and-set stands directly behind the value that it replaced. Values made from one another form a
*chain*; the order is one of chains, not of values. With unique values that is exact, and linear
(Gibbons & Korach, "Testing Shared Memories", 1997, where the writer of every read is known).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from checkers.history.operation import Operation
from checkers.history.values import Value
from checkers.sessions.steps import Key, Step

if TYPE_CHECKING:
    from networkx import DiGraph

Kind = Literal[
    "monotonic-reads", "monotonic-writes", "read-your-writes", "writes-follow-reads", "replaced", "initial"
]
STARTS_MAX = 32
"""From so many values a shortest cycle is searched."""
ALWAYS: frozenset[Kind] = frozenset({"replaced", "initial"})


class Edge(NamedTuple):
    """`older` must come before `newer`, because of two steps (one, for a compare-and-set; none, for the initial)."""

    older: Value
    newer: Value
    kind: Kind
    because: tuple[Operation, ...]


@dataclass(slots=True)
class Graph:
    """Edges by the two nodes that they join (values, or heads of chains); of several between the same two the first."""

    edges: dict[Value, dict[Value, Edge]] = field(default_factory=dict)

    def add(self, older: Value, newer: Value, edge: Edge) -> None:
        self.edges.setdefault(older, {}).setdefault(newer, edge)
        self.edges.setdefault(newer, {})


def edges_of(key: Key) -> Iterator[Edge]:
    """Every edge of the key, of all kinds; those from the initial value only if an edge leads back to that value."""
    first = False
    for steps in key.sessions.values():
        for edge in _edges_of_session(steps):
            first = first or edge.newer == key.start or (edge.kind == "replaced" and edge.older == key.start)
            yield edge
    if first:
        yield from (Edge(key.start, value, "initial", ()) for value in key.writers)


def _edges_of_session(steps: Iterable[Step]) -> Iterator[Edge]:
    last_read: tuple[Value, Operation] | None = None
    last_write: tuple[Value, Operation] | None = None
    for step in steps:
        operation = step.operation
        # What a compare-and-set read comes before what it wrote, and neither counts as an earlier step of itself.
        for value in step.read:
            yield from _edge(last_read, value, operation, "monotonic-reads")
            yield from _edge(last_write, value, operation, "read-your-writes")
        for value in step.wrote:
            yield from _edge(last_write, value, operation, "monotonic-writes")
            yield from _edge(last_read, value, operation, "writes-follow-reads", to_itself=True)
            for old in step.read:
                yield Edge(old, value, "replaced", (operation,))
        # The process did not learn of any other step: its later ones need not come after it.
        if step.sure:
            last_read = (step.read[0], operation) if step.read else last_read
            last_write = (step.wrote[0], operation) if step.wrote else last_write


def _edge(
    before: tuple[Value, Operation] | None,
    value: Value,
    operation: Operation,
    kind: Kind,
    *,
    to_itself: bool = False,
) -> Iterator[Edge]:
    """The edge. None if both steps are about one value: that is in order, except a read before its own write."""
    if before is not None and (before[0] != value or to_itself):
        yield Edge(before[0], value, kind, (before[1], operation))


def graph(edges: Iterable[Edge], kinds: frozenset[Kind]) -> Graph:
    """The edges of these kinds, and those that hold in any case."""
    made = Graph()
    for edge in edges:
        if edge.kind in kinds or edge.kind in ALWAYS:
            made.add(edge.older, edge.newer, edge)
    return made


# ---- cycles


def cycle(made: Graph) -> tuple[Edge, ...] | None:
    """A cycle with few edges; None if there is none."""
    left = list(_in_cycles(made.edges))
    if not left:
        return None
    from networkx import DiGraph, strongly_connected_components  # for violations alone: it loads for a while

    place = {value: at for at, value in enumerate(left)}  # None is a value, and no node of networkx
    places = DiGraph(
        (place[value], place[newer]) for value in left for newer in made.edges[value] if newer in place
    )
    circles = [component for component in strongly_connected_components(places) if len(component) > 1]
    in_circles = set().union(*circles, (at for at in places if places.has_edge(at, at)))
    ways = [_shortest(places, start) for start in sorted(in_circles)[:STARTS_MAX]]
    best = min(ways, key=len)
    return tuple(
        made.edges[left[source]][left[target]]
        for source, target in zip(best, (*best[1:], best[0]), strict=True)
    )


def _in_cycles(edges: Mapping[Value, Mapping[Value, Edge]]) -> dict[Value, None]:
    """The values that remain when values without predecessor, then without successor, are removed repeatedly."""
    left = dict.fromkeys(edges)
    backward: dict[Value, list[Value]] = {value: [] for value in edges}
    for value, after in edges.items():
        for newer in after:
            backward[newer].append(value)
    _peel(left, edges, {value: len(before) for value, before in backward.items()})
    _peel(left, backward, {value: sum(newer in left for newer in edges[value]) for value in left})
    return left


def _peel(left: dict[Value, None], follow: Mapping[Value, Iterable[Value]], degree: dict[Value, int]) -> None:
    bare = deque(value for value in left if not degree[value])
    while bare:
        value = bare.popleft()
        del left[value]
        for other in follow[value]:
            if other in left:
                degree[other] -= 1
                if not degree[other]:
                    bare.append(other)


def _shortest(places: DiGraph[int], start: int) -> list[int]:
    """A shortest cycle from `start` on. `start` must be in a cycle."""
    from networkx import bfs_predecessors

    came = dict(bfs_predecessors(places, start))
    way = [next(last for last in (start, *came) if places.has_edge(last, start))]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


# ---- chains


@dataclass(frozen=True, slots=True)
class Chains:
    """Values made from one another: the (head, place) and the edge to the next of each value. `twice`: two operations
    that replaced the same value.
    """

    place: Mapping[Value, tuple[Value, int]]
    following: Mapping[Value, Edge]
    twice: tuple[Operation, Operation] | None

    def between(self, value: Value, other: Value) -> tuple[Edge, ...]:
        """The edges from one value of a chain to the other, whichever of them is older."""
        if self.place[value][1] > self.place[other][1]:
            value, other = other, value
        way = []
        while value != other:
            way.append(self.following[value])
            value = way[-1].newer
        return tuple(way)


def chains(edges: Iterable[Edge], values: Iterable[Value]) -> Chains:
    """The chains that the compare-and-sets among the edges make."""
    following: dict[Value, Edge] = {}
    twice: tuple[Operation, Operation] | None = None
    for edge in edges:
        if edge.kind != "replaced":
            continue
        first = following.setdefault(edge.older, edge)
        if first is not edge and twice is None:
            twice = (first.because[0], edge.because[0])
    made_from = {edge.newer for edge in following.values()}
    place: dict[Value, tuple[Value, int]] = {}
    for head in values:
        if head in made_from:
            continue
        value, number = head, 0
        place[value] = (head, 0)
        while value in following and following[value].newer not in place:
            value, number = following[value].newer, number + 1
            place[value] = (head, number)
    return Chains(place, following, twice)


def chain_graph(edges: Iterable[Edge], linked: Chains) -> Graph:
    """Edges between chains. Of edges within a chain only those against its order, as edges of the chain to itself."""
    made = Graph()
    for edge in edges:
        older, newer = linked.place.get(edge.older), linked.place.get(edge.newer)
        # Values that were made from one another in a circle: shown by `cycle`.
        if older is None or newer is None:
            continue
        if older[0] != newer[0] or older[1] >= newer[1]:
            made.add(older[0], newer[0], edge)
    return made
