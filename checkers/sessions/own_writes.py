"""Every earlier own write before each read: what read-your-writes asks by itself.

Terry et al. (1994): a read sees all earlier writes of its session, so it gives the value of the last or of a newer one.
`version_graph` has an edge from the *last* own write alone. That is enough where own writes keep their order. Without
monotonic-writes it is too little: a process that wrote 1, wrote 3 and then read 3 says that 1 is older than 3.

A read after n own writes would take n edges. Here the writes of a session are joined into blocks of 2, 4, 8, …, each
with an edge from its two halves. A read takes one edge from each block that it needs, so there are O(n log n) edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from checkers.history.operation import Operation
from checkers.history.values import Value
from checkers.sessions.steps import Key, Step
from checkers.sessions.version_graph import Edge, cycle, edges_of, graph

READ_YOUR_WRITES: Literal["read-your-writes"] = "read-your-writes"


@dataclass(frozen=True, slots=True)
class _Block:
    """The 2**level own writes of a process from `index` * 2**level on."""

    process: int
    level: int
    index: int


@dataclass(slots=True)
class _Session:
    """The writes that a process knows to have taken effect, in its order."""

    process: int
    writes: list[tuple[Value, Operation]] = field(default_factory=list)
    place: dict[Value, int] = field(default_factory=dict)

    def wrote(self, value: Value, operation: Operation) -> Iterator[Edge]:
        """The edges of the blocks that this write makes whole."""
        self.place[value] = len(self.writes)
        self.writes.append((value, operation))
        level, index = 1, len(self.writes)
        while index % 2 == 0:
            index //= 2
            for half in (2 * index - 2, 2 * index - 1):
                block = _Block(self.process, level, index - 1)
                yield self._edge(level - 1, half, block, ())
            level += 1

    def read(self, value: Value, operation: Operation) -> Iterator[Edge]:
        """Edges from all writes so far, but the one that was read."""
        place = self.place.get(value, len(self.writes))
        for first, end in ((0, place), (place + 1, len(self.writes))):
            begin = first
            while begin < end:
                level = (end - begin).bit_length() - 1
                while begin % (1 << level):
                    level -= 1
                yield self._edge(level, begin >> level, value, (operation,))
                begin += 1 << level

    def _edge(self, level: int, index: int, newer: Value, because: tuple[Operation, ...]) -> Edge:
        if level:
            return Edge(_Block(self.process, level, index), newer, READ_YOUR_WRITES, because)
        value, write = self.writes[index]
        return Edge(value, newer, READ_YOUR_WRITES, (write, *because))


def cycle_of_own_writes(key: Key) -> tuple[Edge, ...] | None:
    """A cycle of values if some process did not read its own writes; None if every process did."""
    edges = [edge for edge in edges_of(key) if edge.kind != READ_YOUR_WRITES]
    for process, steps in key.sessions.items():
        edges += _edges_of_session(process, steps)
    circle = cycle(graph(edges, frozenset({READ_YOUR_WRITES})))
    return None if circle is None else tuple(_between_values(circle))


def _edges_of_session(process: int, steps: Sequence[Step]) -> Iterator[Edge]:
    session = _Session(process)
    for step in steps:
        for value in step.read:
            yield from session.read(value, step.operation)
        for value in step.wrote if step.sure else ():
            yield from session.wrote(value, step.operation)


def _between_values(circle: Sequence[Edge]) -> Iterator[Edge]:
    """The same cycle without blocks: an edge into a block and the one out of it become one."""
    begin = next(place for place, edge in enumerate(circle) if not isinstance(edge.older, _Block))
    older: Value = None
    because: tuple[Operation, ...] = ()
    for edge in (*circle[begin:], *circle[:begin]):
        if not isinstance(edge.older, _Block):
            older, because = edge.older, ()
        because += edge.because
        if not isinstance(edge.newer, _Block):
            yield edge._replace(older=older, because=because)
