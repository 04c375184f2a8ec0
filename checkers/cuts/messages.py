"""L1, messages: a message violates a cut if it was received inside the cut and sent outside.

The frontier of a cut on a node is its colour change. A whole series of cuts that only grow is judged in one pass: if a
is the first cut that has the send inside, and b the first that has the receive inside, the message violates exactly the
cuts b … a-1. Their counts are the sums of a difference array. Cuts with colour changes on other nodes, or that do not
grow, are passes of their own.

A node without a colour change in a cut (a client that left early, a node that no marker reached) claims no side. Its
events are outside only if something outside happened before them; the message that brings them inside again is the
witness. So a cut is rejected only if an event outside of it happened before one inside, both on nodes with a colour
change.

Mattern's vector clocks answer the same question in another way: the cut is consistent if no node knew more of another
at its colour change than that node had done at its own. Where both ways differ, or where events happened before
themselves, the recording is broken and no cut is judged by it.

Rows that were never recorded (a torn life, a gap in its numbers, a life that the trace lacks) make those cuts unknown
that have such a row inside, or may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from checkers.compiled import load
from checkers.cuts import kernels
from checkers.cuts.trace import RECEIVE, SEND, Int32s, Int64s, Trace

WITNESS_ROWS_MAX = 1_000_000
CLOCK_BYTES_MAX = 1 << 30
"""Vector clocks of all sends may take this much; a longer trace is not checked a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A message from outside of a cut to its inside: the rows of its send and its receive.

    `path`: rows of sends and receives in turn, from an event outside on a node with a colour change to the receive. For
    most it is the message alone.
    """

    send: int
    receive: int
    path: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Messages:
    """What messages say of each cut (K cuts, as asked for).

    counts     how many messages violate it
    crossings  one of them, the one that was received first; None
    frontiers  int64[K, lives]: how many rows of each life are inside
    marked     bool[K, nodes]: the node has a colour change
    unknown    why the trace does not suffice, "" if it does
    doubled    nodes with a second colour change of the cut, and its row
    `broken` says why the recording contradicts itself, "" if it does not. `is_cross_checked`: by vector clocks.
    """

    counts: Int64s
    crossings: list[Crossing | None]
    frontiers: Int64s
    marked: Any
    unknown: list[str]
    doubled: list[list[tuple[str, int]]]
    broken: str = ""
    is_cross_checked: bool = False


def judge(trace: Trace, cuts: Sequence[str], ended_ns: Sequence[int] = ()) -> Messages:
    """Judge the cuts, which stand in the order of their series. `ended_ns`: when each was over, -1 if unknown."""
    known = _Known.of(trace)
    first, doubled = _colour_changes(trace, cuts)
    said = Messages(
        counts=numpy.zeros(len(cuts), numpy.int64),
        crossings=[None] * len(cuts),
        frontiers=numpy.zeros((len(cuts), len(trace.lives)), numpy.int64),
        marked=first >= 0,
        unknown=[""] * len(cuts),
        doubled=doubled,
        broken=known.broken,
    )
    if known.broken:
        return said
    for chain in _chains(first):
        _judge_chain(known, first, numpy.array(chain, numpy.int64), said)
    _cross_check(known, first, said)
    from checkers.cuts.recording import unknown  # after its values are there

    said.unknown = unknown(trace, known.sender_row, first, said.frontiers, list(ended_ns))
    return said


@dataclass(slots=True, kw_only=True)
class _Known:
    """The trace with what all passes need."""

    trace: Trace
    kernels: Any
    sender_row: Int32s
    sends: Int64s
    node_first: Int64s
    node_of_life: Int64s
    life_first: Int64s
    broken: str = ""
    _order: Int32s | None = field(default=None)
    _life_of: Int32s | None = field(default=None)

    @classmethod
    def of(cls, trace: Trace) -> _Known:
        loaded = load(kernels)
        sends = numpy.flatnonzero(trace.kind == SEND)
        life_first = numpy.array([*(life.first for life in trace.lives), len(trace)], numpy.int64)
        send_first = numpy.searchsorted(sends, life_first)
        sender_row = numpy.empty(len(trace), numpy.int32)
        numbers = trace.seq[sends]
        falls = numpy.flatnonzero(numpy.diff(numbers) <= 0) + 1
        wrong = falls[~numpy.isin(falls, send_first)]
        loaded.match(trace.kind, trace.seq, trace.peer, sends, send_first, sender_row)
        node_first, nodes = trace.node_first, trace.nodes
        self = cls(
            trace=trace,
            kernels=loaded,
            sender_row=sender_row,
            sends=sends,
            node_first=node_first,
            node_of_life=numpy.array([nodes.index(life.node) for life in trace.lives], numpy.int64),
            life_first=life_first,
        )
        if len(wrong):
            life = trace.lives[trace.life_of(int(sends[wrong[0]]))]
            self.broken = (
                f"{life.name} gave message {numbers[wrong[0]]} behind message {numbers[wrong[0] - 1]}"
            )
        return self

    @property
    def life_of(self) -> Int32s:
        """By row the life."""
        if self._life_of is None:
            lengths = numpy.diff(self.life_first)
            self._life_of = numpy.repeat(numpy.arange(len(lengths), dtype=numpy.int32), lengths)
        return self._life_of

    @property
    def order(self) -> Int32s:
        """All rows, each behind what happened before it; shorter if some row happened before itself."""
        if self._order is None:
            lives = len(self.trace.lives)
            before = numpy.arange(-1, lives - 1)
            before[numpy.diff(self.node_of_life, prepend=-1) > 0] = -1
            order = numpy.empty(len(self.trace), numpy.int32)
            room = [numpy.zeros(lives, numpy.int64) for _ in range(3)]
            placed = self.kernels.causal_order(
                self.sender_row,
                self.trace.peer,
                self.life_first[1:],
                before,
                self.life_first[:-1].copy(),
                *room,
                order,
            )
            self._order = order[:placed]
        return self._order


def _colour_changes(trace: Trace, cuts: Sequence[str]) -> tuple[Int64s, list[list[tuple[str, int]]]]:
    """By cut and node the row of the first colour change (-1: none), and the rows of further ones."""
    nodes, node_first = trace.nodes, trace.node_first
    first = numpy.full((len(cuts), len(nodes)), -1, numpy.int64)
    doubled: list[list[tuple[str, int]]] = [[] for _ in cuts]
    index = {name: place for place, name in enumerate(cuts)}
    of_mark = numpy.searchsorted(node_first[1:], trace.mark_row, side="right")
    for row, code, node in zip(
        trace.mark_row.tolist(), trace.mark_cut.tolist(), of_mark.tolist(), strict=True
    ):
        cut = index.get(trace.cuts[code])
        if cut is None:
            continue
        if first[cut, node] < 0:
            first[cut, node] = row
        else:
            doubled[cut].append((nodes[node], row))
    return first, doubled


def _chains(first: Int64s) -> Iterator[list[int]]:
    """The cuts in series that can be judged in one pass: colour changes on the same nodes, and none back."""
    chains: dict[tuple[bool, ...], list[list[int]]] = {}
    for cut, row in enumerate(first):
        marked = row >= 0
        of_these = chains.setdefault(tuple(marked.tolist()), [])
        for chain in of_these:
            if (first[chain[-1]][marked] <= row[marked]).all():
                chain.append(cut)
                break
        else:
            of_these.append([cut])
    for several in chains.values():
        yield from several


def _judge_chain(known: _Known, first: Int64s, chain: Int64s, said: Messages) -> None:
    marked = said.marked[chain[0]]
    if not marked.any():
        said.frontiers[chain] = numpy.diff(known.life_first)
        return
    labels = numpy.empty(len(known.trace), numpy.int32)
    frontiers = numpy.ascontiguousarray(first[chain])
    known.kernels.label(known.node_first, frontiers, marked, labels)
    is_open = ~marked[known.node_of_life]
    if is_open.any() and len(known.order) == len(known.trace):
        known.kernels.spread(
            known.order, known.sender_row, known.life_of, known.life_first[:-1], is_open, labels
        )
    difference = numpy.zeros(len(chain) + 1, numpy.int64)
    rows = numpy.empty(min(WITNESS_ROWS_MAX, len(known.trace)), numpy.int64)
    found = known.kernels.crossing(known.sender_row, labels, difference, rows)
    if found > len(rows):
        rows = numpy.empty(found, numpy.int64)
        known.kernels.crossing(known.sender_row, labels, numpy.zeros_like(difference), rows)
    said.counts[chain] = numpy.cumsum(difference)[:-1]
    said.frontiers[chain] = _sizes(known, labels, len(chain))
    for place, row in _earliest(known, labels, rows[:found], len(chain)):
        said.crossings[chain[place]] = _crossing(known, labels, marked, place, row)


def _sizes(known: _Known, labels: Int32s, cuts: int) -> Int64s:
    """By cut and life the number of rows inside: labels only grow within a life."""
    lives = [
        numpy.searchsorted(labels[life.first : life.end], numpy.arange(cuts), side="right")
        for life in known.trace.lives
    ]
    return numpy.array(lives, numpy.int64).reshape(len(known.trace.lives), cuts).T


def _earliest(known: _Known, labels: Int32s, rows: Int64s, cuts: int) -> Iterator[tuple[int, int]]:
    """For each cut that some of these receives violate, the first of them in time."""
    if not len(rows):
        return
    times = known.trace.time_ns
    order = numpy.argsort(times[rows], kind="stable") if len(times) else numpy.arange(len(rows))
    begins = labels[rows].astype(numpy.int64)
    ends = labels[known.sender_row[rows]].astype(numpy.int64)
    painter = numpy.empty(cuts, numpy.int64)
    known.kernels.paint(begins, ends, order, numpy.empty(cuts + 1, numpy.int64), painter)
    for place in numpy.flatnonzero(painter >= 0).tolist():
        yield place, int(rows[painter[place]])


def _crossing(known: _Known, labels: Int32s, marked: Any, cut: int, receive: int) -> Crossing:
    """The message, and how what is outside on a node with a colour change reached its sender."""
    path = [receive]
    while True:
        send = int(known.sender_row[path[-1]])
        path.append(send)
        life = known.trace.life_of(send)
        if marked[known.node_of_life[life]]:
            break
        behind = known.life_first[life] + numpy.searchsorted(
            labels[known.life_first[life] : send + 1], cut, side="right"
        )
        path.append(int(behind))
    return Crossing(send=path[1], receive=receive, path=tuple(reversed(path)))


def _cross_check(known: _Known, first: Int64s, said: Messages) -> None:
    """Compare with vector clocks, and say so if they disagree."""
    if len(known.order) < len(known.trace):
        where = known.trace.lives[int(known.life_of[_not_placed(known)])].name
        said.broken = f"an event of {where} happened before itself: a message was received before it was sent"
        return
    nodes = len(known.node_first) - 1
    if len(known.sends) * nodes * 4 > CLOCK_BYTES_MAX:
        return
    said.is_cross_checked = True
    seen = _seen(known, first)
    for cut in range(len(first)):
        marked = said.marked[cut]
        of_cut = first[cut][marked]
        done = of_cut - known.node_first[:-1][marked]
        knew = seen[numpy.searchsorted(numpy.unique(first[first >= 0]), of_cut)][:, marked]
        is_consistent = bool((knew <= done).all())
        if is_consistent != (said.counts[cut] == 0):
            said.broken = "vector clocks disagree with the colours of messages"
            return


def _not_placed(known: _Known) -> int:
    placed = numpy.zeros(len(known.trace), bool)
    placed[known.order] = True
    return int(numpy.flatnonzero(~placed & (known.trace.kind == RECEIVE))[0])


def _seen(known: _Known, first: Int64s) -> Int32s:
    """The clock of its node before each colour change, in the order of rows: int32[changes, nodes]."""
    nodes, lives = len(known.node_first) - 1, len(known.trace.lives)
    asked = numpy.unique(first[first >= 0])
    send_place = numpy.cumsum(known.trace.kind == SEND, dtype=numpy.int32) - numpy.int32(1)
    send_place[known.trace.kind != SEND] = -1
    seen = numpy.zeros((len(asked), nodes), numpy.int32)
    known.kernels.clocks(
        known.order,
        known.sender_row,
        send_place,
        known.life_of,
        known.node_of_life,
        known.node_first,
        asked,
        numpy.searchsorted(asked, known.node_first),
        numpy.zeros((lives, nodes), numpy.int32),
        numpy.zeros((nodes, nodes), numpy.int32),
        numpy.empty((len(known.sends), nodes), numpy.int32),
        seen,
    )
    return seen
