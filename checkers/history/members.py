"""The members of the cluster at each moment of a run, and how many made a quorum then.

They stand in lines of the process "harness", f "members": `nodes`, `quorum`, and `settled` (true once every member
knows the change; until then some nodes count as before). `joins` names an address to which a new node comes, with
another identity and an empty disk. A run without such lines has the members and the quorum of its header throughout.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.faults import Span
from checkers.history.history import History
from checkers.history.operation import Event, Operation

if TYPE_CHECKING:
    from checkers.history.columns import Columns

Array = Any  # numpy's


class _Line(msgspec.Struct, frozen=True):
    nodes: tuple[str, ...]
    quorum: int | None = None
    settled: bool = True
    joins: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """The counted nodes, and how many of them make a quorum (None: not known)."""

    nodes: tuple[str, ...]
    quorum: int | None

    @property
    def starving(self) -> int:
        """So many silent nodes leave no quorum."""
        assert self.quorum is not None
        return len(self.nodes) - self.quorum + 1


def counts(history: History, during: Span) -> tuple[Count, ...]:
    """All counts that a node may have used at some moment of that time. A statement true of each is certain."""
    first = Count(history.header.nodes, history.header.quorum)
    if not history.told_members:
        return (first,)
    start, end = during
    changes = _changes(history)
    known = changes.settled[bisect_left(changes.times_ns, start)]
    then = changes.counts[max(known, 0) : bisect_right(changes.times_ns, end)]
    return tuple(dict.fromkeys(then if known >= 0 else (first, *then)))


def least_quorum(history: History, during: Span) -> int | None:
    """The least quorum by which a node may have counted at some moment of that time; None if one is unknown."""
    every = counts(history, during)
    known = [count.quorum for count in every if count.quorum is not None]
    return min(known) if len(known) == len(every) else None


def at_the_end(history: History) -> tuple[str, ...]:
    """The members at the end of the run."""
    nodes = history.header.nodes
    for _, line in _lines(history):
        nodes = line.nodes
    return nodes


def is_settled_at_the_end(history: History) -> bool:
    """Whether all members knew the last change; true if there was none."""
    settled = True
    for _, line in _lines(history):
        settled = line.settled
    return settled


def left(history: History) -> tuple[str, ...]:
    """The nodes that had left when the run was over, and had not been replaced."""
    members = at_the_end(history)
    return tuple(node for node in history.header.nodes if node not in members)


def answered_by(history: History, operation: Operation) -> str:
    """The name of the node that answered; a node that took the place of another on an empty disk has another name.

    If the node at that address was replaced between invocation and completion, it is not known which of the two
    answered. The name is then unique to the operation.
    """
    node = operation.node or ""
    if not history.told_members:
        return node
    first = identity(history, node, operation.invoke_index)
    if identity(history, node, operation.complete_index or operation.invoke_index) != first:
        return f"{node}, asked at event {operation.invoke_index}"
    return f"{node}, identity number {first + 1}" if first else node


def servers(history: History, columns: Columns, places: Array) -> Array:
    """`answered_by` of answered operations: equal numbers for equal names, -1 for a name that is unique."""
    import numpy

    node = columns.node[places].astype(numpy.int64)
    came = _changes(history).came if history.told_members else {}
    server = node * (1 + max(map(len, came.values()), default=0))
    for name, indexes in came.items():
        at = numpy.flatnonzero(node == columns.code(name))
        first = numpy.searchsorted(indexes, columns.invoke[places[at]])
        last = numpy.searchsorted(indexes, columns.complete[places[at]])
        server[at] = numpy.where(first == last, server[at] + first, -1)
    return server


def identity(history: History, node: str, index: int) -> int:
    """How many new nodes had come to the address before the event `index`. An answer of one does not bind the next."""
    return bisect_left(_changes(history).came.get(node, ()), index)


def have_changed(history: History) -> bool:
    """Whether a node left or joined."""
    return any(line.joins or set(line.nodes) != set(history.header.nodes) for _, line in _lines(history))


def quorums(history: History) -> tuple[int | None, ...]:
    """Every quorum of the run, the header's first."""
    return (history.header.quorum, *(line.quorum for _, line in _lines(history)))


@dataclass(frozen=True, slots=True)
class _Changes:
    """The lines of one history in their order, and what every operation needs of them."""

    events: tuple[Event, ...]
    lines: tuple[_Line, ...]
    times_ns: tuple[int, ...]
    counts: tuple[Count, ...]
    settled: tuple[int, ...]
    """By number of lines the place of the last settled one among them; -1: none."""
    came: dict[str, tuple[int, ...]]
    """The events at which a new node came to an address."""


_last: list[_Changes] = []
"""The changes of the history that was asked about last: callers ask once an operation."""


def _changes(history: History) -> _Changes:
    for changes in _last:
        if changes.events is history.told_members:
            return changes
    _last[:] = [changes := _read(history.told_members)]
    return changes  # another thread may have asked about another history since


def _read(events: tuple[Event, ...]) -> _Changes:
    lines = tuple(map(_line, events))
    settled = [-1]
    came: dict[str, list[int]] = {}
    for place, (event, line) in enumerate(zip(events, lines, strict=True)):
        settled.append(place if line.settled else settled[-1])
        if line.joins:
            came.setdefault(line.joins, []).append(event.index)
    return _Changes(
        events,
        lines,
        tuple(event.time_ns for event in events),
        tuple(Count(line.nodes, line.quorum) for line in lines),
        tuple(settled),
        {node: tuple(indexes) for node, indexes in came.items()},
    )


def _lines(history: History) -> Iterator[tuple[Event, _Line]]:
    return zip(history.told_members, _changes(history).lines, strict=True)


def _line(event: Event) -> _Line:
    try:
        return msgspec.convert(event.value, _Line)
    except msgspec.ValidationError as error:
        raise HistoryError(
            expected="who is a member, on a line of the harness",
            came=str(error),
            attempt="check that the line was written by this version's harness",
            line=event.index + 2,
        ) from error
