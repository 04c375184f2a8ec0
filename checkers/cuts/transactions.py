"""L2, transactions: every participant with a log has a transaction on the same side of a cut.

A transaction is torn by the cuts for which some of its participants have it in BEFORE and others have not. Where cuts
only grow, these are the cuts from the first BEFORE that has it anywhere up to, but without, the first that has it
everywhere. A participant that never committed it has it in no BEFORE. Sets are compared as sets, never as sums.

A node that got its data as a copy shows no record of what others committed before the next base snapshot; it has that
from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from checkers.compiled import load
from checkers.cuts import kernels
from checkers.cuts.logs import BASE, KINDS, PREPARED, ROLLED_BACK, START, Logs
from checkers.cuts.membership import Ranges, copied, ranges, running, toggled
from checkers.cuts.trace import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Whether one participant has a transaction in a cut, and the record that shows it (-1: none)."""

    node: str
    is_before: bool
    record: int
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Which transactions are in BEFORE on how many of their participants.

    rows     int64[r, 4]     (log, xid, first, end): the ranges of the logs, and what nodes have by copies
    needed   int64[xids]     how many participants with a log a transaction has; 0: no log has committed it
    sums     int64[s, 4]     (xid, first, end, participants that have it), over all cuts for every committed one
    """

    logs: Logs
    cuts: tuple[str, ...]
    of_logs: Ranges
    rows: Int64s
    pairs: Int64s
    needed: Int64s
    sums: Int64s

    @property
    def inside(self) -> Int64s:
        """(xid, first, end): all participants have it in BEFORE."""
        return self._where(self.sums[:, 3] == self.needed[self.sums[:, 0]])

    @property
    def outside(self) -> Int64s:
        """(xid, first, end): none has."""
        return self._where(self.sums[:, 3] == 0)

    @property
    def torn(self) -> Int64s:
        """(xid, first, end): some have and others have not."""
        return self._where((self.sums[:, 3] > 0) & (self.sums[:, 3] < self.needed[self.sums[:, 0]]))

    def _where(self, chosen: NDArray[numpy.bool_]) -> Int64s:
        rows: Int64s = self.sums[chosen][:, :3]
        return rows


def members(logs: Logs, cuts: Sequence[str], baseline: Sequence[str]) -> Members:
    """The members of cuts that every baseline server's log has whole. `cuts`: in order. No other log counts."""
    counts = numpy.isin(logs.nodes, baseline)
    everywhere = ranges(logs, cuts)
    of_logs = Ranges(
        rows=everywhere.rows[counts[everywhere.rows[:, 0]]],
        commits=everywhere.commits[counts[everywhere.commits[:, 0]]],
    )
    committed = of_logs.commits[:, :2]
    taking = numpy.column_stack((logs.taking[:, 1], logs.xid[logs.taking[:, 0]])).astype(numpy.int64)
    width = max(1, len(logs.xids))
    both = numpy.concatenate((taking[counts[taking[:, 0]]], committed))
    pairs = numpy.column_stack(numpy.divmod(numpy.unique(both[:, 0] * width + both[:, 1]), width))
    pairs = pairs[numpy.isin(pairs[:, 1], committed[:, 1])]
    needed = numpy.bincount(pairs[:, 1], minlength=len(logs.xids)).astype(numpy.int64)
    rows = numpy.concatenate((of_logs.rows, _by_copies(logs, cuts, of_logs, pairs)))
    known = numpy.unique(committed[:, 1])
    zeros = numpy.column_stack((known, numpy.zeros_like(known), numpy.zeros_like(known)))
    sums = running(numpy.concatenate((zeros, toggled(rows[:, 1:]))), len(cuts))
    return Members(
        logs=logs, cuts=tuple(cuts), of_logs=of_logs, rows=rows, pairs=pairs, needed=needed, sums=sums
    )


def counted(rows: Int64s, cuts: int) -> Int64s:
    """(item, first, end) → by cut how many of these ranges have it."""
    difference = numpy.zeros(cuts + 1, numpy.int64)
    numpy.add.at(difference, rows[:, 1], 1)
    numpy.add.at(difference, rows[:, 2], -1)
    return numpy.cumsum(difference)[:-1]


def torn_by(members: Members, cut: int) -> list[int]:
    """The codes of the transactions that a cut tears."""
    rows = members.torn
    chosen = (rows[:, 1] <= cut) & (cut < rows[:, 2])
    return [int(xid) for xid in numpy.unique(rows[chosen, 0])]


def first_of(rows: Int64s, cuts: int, order: Int64s | None = None) -> Int64s:
    """(item, first, end) → by cut the place in `rows` of the first range that has it, -1 if none; in a given order."""
    painter = numpy.empty(cuts, numpy.int64)
    load(kernels).paint(
        numpy.ascontiguousarray(rows[:, 1]),
        numpy.ascontiguousarray(rows[:, 2]),
        numpy.arange(len(rows)) if order is None else order.astype(numpy.int64),
        numpy.empty(cuts + 1, numpy.int64),
        painter,
    )
    return painter


def sides(members: Members, xid: int, cut: int) -> list[Side]:
    """Whether each participant with a log has a transaction in a cut."""
    logs = members.logs
    rows = members.rows
    rows = rows[(rows[:, 1] == xid) & (rows[:, 2] <= cut) & (cut < rows[:, 3])]
    of_nodes = []
    for node in members.pairs[members.pairs[:, 1] == xid, 0].tolist():
        low, high = int(logs.first[node]), int(logs.first[node + 1])
        records = low + numpy.flatnonzero(logs.xid[low:high] == xid)
        commits = members.of_logs.commits
        commit = commits[(commits[:, 0] == node) & (commits[:, 1] == xid), 2]
        is_before = node in rows[:, 0]
        if len(commit):
            record, word = int(commit[0]), "before" if is_before else "after"
        elif len(records) and not is_before:
            kinds = logs.kind[records]
            record = int(records[-1])
            word = "rolled back" if ROLLED_BACK in kinds else "prepared and never committed"
            word = word if ROLLED_BACK in kinds or PREPARED in kinds else KINDS[kinds[-1]]
        else:
            record, word = -1, "there by a copy" if is_before else "in no record"
        of_nodes.append(Side(node=logs.nodes[node], is_before=bool(is_before), record=record, word=word))
    return of_nodes


def _by_copies(logs: Logs, cuts: Sequence[str], of_logs: Ranges, pairs: Int64s) -> Int64s:
    """Ranges of what a node has by a copy: committed elsewhere before the base that its log does not lead up to."""
    parts = [numpy.zeros((0, 4), numpy.int64)]
    known = {(node, xid) for node, xid, _ in of_logs.commits.tolist()} if (bases := copied(logs)) else set()
    for node, record, base in bases:
        if node not in pairs[:, 0]:
            continue
        others = numpy.flatnonzero((logs.kind == BASE) & (logs.cut == base))
        at = {logs.node_of(other): other for other in others.tolist()}
        given = {
            xid
            for other, xid, commit in of_logs.commits.tolist()
            if other != node and other in at and commit < at[other]
        }
        starts = numpy.array([logs.of_cut(START, cut)[logs.nodes[node]][0] for cut in cuts], numpy.int64)
        is_behind = numpy.concatenate(([False], starts > record, [False]))
        edges = numpy.flatnonzero(numpy.diff(is_behind)).reshape(-1, 2).tolist()
        rows = [
            (node, xid, first, end)
            for other, xid in pairs.tolist()
            if other == node and xid in given and (node, xid) not in known
            for first, end in edges
        ]
        parts.append(numpy.array(rows, numpy.int64).reshape(-1, 4))
        known |= {(node, xid) for _, xid, _, _ in rows}
    return numpy.concatenate(parts)
