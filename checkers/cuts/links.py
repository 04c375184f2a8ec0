"""Which send belongs to which receive, and in which order events can have happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy

from checkers.compiled import load
from checkers.cuts import kernels
from checkers.cuts.trace import SEND, Int32s, Int64s, Trace


@dataclass(slots=True, kw_only=True)
class Links:
    """A trace with the row of each message's send, and what every pass over it needs.

    sender_row    int32[m]      of a receive the row of its send, -1 if that is not recorded; else -1
    sends         int64[·]      the rows of all sends
    life_first    int64[lives + 1], node_first int64[nodes + 1]: their first rows, and the number of rows
    node_of_life  int64[lives]
    `broken`: a sentence if the numbers of a life contradict themselves, else "".
    """

    trace: Trace
    kernels: Any
    sender_row: Int32s
    sends: Int64s
    node_first: Int64s
    node_of_life: Int64s
    life_first: Int64s
    broken: str = ""
    _order: Int32s | None = field(default=None)
    _rank: Int32s | None = field(default=None)
    _life_of: Int32s | None = field(default=None)

    @classmethod
    def of(cls, trace: Trace) -> Links:
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
            before = numpy.full(lives, -1)
            last: dict[str, int] = {}  # by node its last life that has rows
            for place, life in enumerate(self.trace.lives):
                before[place] = last.get(life.node, -1)
                if life.end > life.first:
                    last[life.node] = place
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

    @property
    def rank(self) -> Int32s:
        """By row its place in the order; -1 if it has none."""
        if self._rank is None:
            self._rank = numpy.full(len(self.trace), -1, numpy.int32)
            self._rank[self.order] = numpy.arange(len(self.order), dtype=numpy.int32)
        return self._rank
