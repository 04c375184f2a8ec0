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

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from checkers.cuts.links import Links
from checkers.cuts.recording import unknown
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
    """The judgement of each cut by its messages (K cuts, as asked for).

    counts     how many messages violate it
    crossings  the first of them to be received; None
    frontiers  int64[K, lives]: how many rows of each life are inside
    marked     bool[K, nodes]: the node has a colour change
    unknown    why the trace does not suffice, "" if it does
    doubled    nodes with a second colour change of the cut, and its row
    chains     by cut the receives that violate cuts of its pass: (first cut, end, row of the send), and its place there
    `links`: of the trace. `broken` says why the recording contradicts itself, "" if it does not. `is_cross_checked`: by
    vector clocks.
    """

    links: Links
    counts: Int64s
    crossings: list[Crossing | None]
    frontiers: Int64s
    marked: Any
    unknown: list[str]
    doubled: list[list[tuple[str, int]]]
    chains: dict[int, tuple[Int64s, int]] = field(default_factory=dict)
    broken: str = ""
    is_cross_checked: bool = False

    def crossed(self, trace: Trace, cut: int) -> frozenset[str]:
        """The transactions of the messages that violate a cut, as far as the trace says what messages are about."""
        rows, place = self.chains.get(cut, (numpy.zeros((0, 3), numpy.int64), 0))
        if not len(trace.xid):
            return frozenset()
        sends = rows[(rows[:, 0] <= place) & (place < rows[:, 1]), 2]
        return frozenset(trace.xids[code] for code in numpy.unique(trace.xid[sends]).tolist() if code >= 0)


def judge(
    trace: Trace,
    cuts: Sequence[str],
    asked_ns: Sequence[int] = (),
    ended_ns: Sequence[int] = (),
    sideless: Sequence[Collection[str]] = (),
) -> Messages:
    """Judge the cuts, which stand in the order of their series.

    `asked_ns`, `ended_ns`: when each was asked for and over by the clock of the trace, -1 if unknown. `sideless`: of
    each cut the nodes that claim no side of it, whatever their colour.
    """
    links = Links.of(trace)
    first, doubled = _colour_changes(trace, links, cuts, sideless or [()] * len(cuts))
    judged = Messages(
        links=links,
        counts=numpy.zeros(len(cuts), numpy.int64),
        crossings=[None] * len(cuts),
        frontiers=numpy.zeros((len(cuts), len(trace.lives)), numpy.int64),
        marked=first >= 0,
        unknown=[""] * len(cuts),
        doubled=doubled,
        broken=links.broken,
    )
    if links.broken:
        return judged
    for chain in _chains(first):
        _judge_chain(links, first, numpy.array(chain, numpy.int64), judged)
    _cross_check(links, first, judged)
    judged.unknown = unknown(
        trace,
        links.sender_row,
        first,
        judged.frontiers,
        asked_ns or [-1] * len(cuts),
        ended_ns or [-1] * len(cuts),
    )
    return judged


def _colour_changes(
    trace: Trace, links: Links, cuts: Sequence[str], sideless: Sequence[Collection[str]]
) -> tuple[Int64s, list[list[tuple[str, int]]]]:
    """By cut and node the row of the first colour change (-1: none), and the rows of further ones.

    A node without a log learns the colour again when it starts again. Before the first message of a later life that is
    no second change.
    """
    nodes, node_first = trace.nodes, trace.node_first
    first = numpy.full((len(cuts), len(nodes)), -1, numpy.int64)
    doubled: list[list[tuple[str, int]]] = [[] for _ in cuts]
    index = {name: place for place, name in enumerate(cuts)}
    of_mark = numpy.searchsorted(node_first[1:], trace.mark_row, side="right")
    for row, code, node in zip(
        trace.mark_row.tolist(), trace.mark_cut.tolist(), of_mark.tolist(), strict=True
    ):
        cut = index.get(trace.cuts[code])
        if cut is None or nodes[node] in sideless[cut]:
            continue
        if first[cut, node] < 0:
            first[cut, node] = row
        elif not _opens_a_later_life(trace, links, row, int(first[cut, node])):
            doubled[cut].append((nodes[node], row))
    return first, doubled


def _opens_a_later_life(trace: Trace, links: Links, row: int, first: int) -> bool:
    """The life that has this row began behind the row `first`, and has colour changes alone before this one."""
    begin = int(links.life_first[numpy.searchsorted(links.life_first, row, side="right") - 1])
    changes = numpy.searchsorted(trace.mark_row, row) - numpy.searchsorted(trace.mark_row, begin)
    return first < begin and row - begin == int(changes)


def _chains(first: Int64s) -> Iterator[list[int]]:
    """The cuts in series that can be judged in one pass: colour changes on the same nodes, and none back."""
    chains: dict[tuple[bool, ...], list[list[int]]] = {}
    for cut, row in enumerate(first):
        marked = row >= 0
        of_these = chains.setdefault(tuple(marked.tolist()), [])
        for chain in of_these:
            # Labels are the index of the first cut that has a row inside: that means something only if cuts grow.
            if (first[chain[-1]][marked] <= row[marked]).all():
                chain.append(cut)
                break
        else:
            of_these.append([cut])
    for several in chains.values():
        yield from several


def _judge_chain(links: Links, first: Int64s, chain: Int64s, judged: Messages) -> None:
    marked = judged.marked[chain[0]]
    if not marked.any():
        judged.frontiers[chain] = numpy.diff(links.life_first)
        return
    labels = numpy.empty(len(links.trace), numpy.int32)
    frontiers = numpy.ascontiguousarray(first[chain])
    links.kernels.label(links.node_first, frontiers, marked, labels)
    is_open = ~marked[links.node_of_life]
    if is_open.any() and len(links.order) == len(links.trace):
        links.kernels.spread(
            links.order, links.sender_row, links.life_of, links.life_first[:-1], is_open, labels
        )
    difference = numpy.zeros(len(chain) + 1, numpy.int64)
    rows = numpy.empty(min(WITNESS_ROWS_MAX, len(links.trace)), numpy.int64)
    count = links.kernels.crossing(links.sender_row, labels, difference, rows)
    if count > len(rows):
        rows = numpy.empty(count, numpy.int64)
        links.kernels.crossing(links.sender_row, labels, numpy.zeros_like(difference), rows)
    judged.counts[chain] = numpy.cumsum(difference)[:-1]
    if count:
        receives = rows[:count]
        sends = links.sender_row[receives]
        violated = numpy.column_stack((labels[receives], labels[sends], sends)).astype(numpy.int64)
        judged.chains.update((cut, (violated, place)) for place, cut in enumerate(chain.tolist()))
    judged.frontiers[chain] = _sizes(links, labels, len(chain))
    for place, row in _earliest(links, labels, rows[:count], len(chain)):
        judged.crossings[chain[place]] = _crossing(links, labels, marked, place, row)


def _sizes(links: Links, labels: Int32s, cuts: int) -> Int64s:
    """By cut and life the number of rows inside: labels only grow within a life."""
    lives = [
        numpy.searchsorted(labels[life.first : life.end], numpy.arange(cuts), side="right")
        for life in links.trace.lives
    ]
    return numpy.array(lives, numpy.int64).reshape(len(links.trace.lives), cuts).T


def _earliest(links: Links, labels: Int32s, rows: Int64s, cuts: int) -> Iterator[tuple[int, int]]:
    """For each cut that some of these receives violate, the first of them in time."""
    if not len(rows):
        return
    times = links.trace.time_ns
    order = numpy.argsort(times[rows], kind="stable") if len(times) else numpy.arange(len(rows))
    begins = labels[rows].astype(numpy.int64)
    ends = labels[links.sender_row[rows]].astype(numpy.int64)
    painter = numpy.empty(cuts, numpy.int64)
    links.kernels.paint(begins, ends, order, numpy.empty(cuts + 1, numpy.int64), painter)
    for place in numpy.flatnonzero(painter >= 0).tolist():
        yield place, int(rows[painter[place]])


def _crossing(links: Links, labels: Int32s, marked: Any, cut: int, receive: int) -> Crossing:
    """The message, and how what is outside on a node with a colour change reached its sender."""
    path = [receive]
    while True:
        send = int(links.sender_row[path[-1]])
        path.append(send)
        life = links.trace.life_of(send)
        if marked[links.node_of_life[life]]:
            break
        behind = links.life_first[life] + numpy.searchsorted(
            labels[links.life_first[life] : send + 1], cut, side="right"
        )
        path.append(int(behind))
    return Crossing(send=path[1], receive=receive, path=tuple(reversed(path)))


def _cross_check(links: Links, first: Int64s, judged: Messages) -> None:
    """Compare with vector clocks, and say so if they disagree."""
    if len(links.order) < len(links.trace):
        where = links.trace.lives[int(links.life_of[_not_placed(links)])].name
        judged.broken = (
            f"an event of {where} happened before itself: a message was received before it was sent"
        )
        return
    nodes = len(links.node_first) - 1
    if len(links.sends) * nodes * 4 > CLOCK_BYTES_MAX:
        return
    judged.is_cross_checked = True
    clocks, changes = _clocks(links, first), numpy.unique(first[first >= 0])
    for cut in range(len(first)):
        marked = judged.marked[cut]
        of_cut = first[cut][marked]
        done = of_cut - links.node_first[:-1][marked]
        # Rows of `clocks` stand in the order of all colour changes, each once, as `_clocks` asked for them.
        knew = clocks[numpy.searchsorted(changes, of_cut)][:, marked]
        is_consistent = bool((knew <= done).all())
        if is_consistent != (judged.counts[cut] == 0):
            judged.broken = "vector clocks disagree with the colours of messages"
            return


def _not_placed(links: Links) -> int:
    placed = numpy.zeros(len(links.trace), bool)
    placed[links.order] = True
    return int(numpy.flatnonzero(~placed & (links.trace.kind == RECEIVE))[0])


def _clocks(links: Links, first: Int64s) -> Int32s:
    """The clock of its node before each colour change, in the order of rows: int32[changes, nodes]."""
    nodes, lives = len(links.node_first) - 1, len(links.trace.lives)
    asked = numpy.unique(first[first >= 0])
    send_place = numpy.cumsum(links.trace.kind == SEND, dtype=numpy.int32) - numpy.int32(1)
    send_place[links.trace.kind != SEND] = -1
    clocks = numpy.zeros((len(asked), nodes), numpy.int32)
    links.kernels.clocks(
        links.order,
        links.sender_row,
        send_place,
        links.life_of,
        links.node_of_life,
        links.node_first,
        asked,
        numpy.searchsorted(asked, links.node_first),
        numpy.zeros((lives, nodes), numpy.int32),
        numpy.zeros((nodes, nodes), numpy.int32),
        numpy.empty((len(links.sends), nodes), numpy.int32),
        clocks,
    )
    return clocks
