"""In which BEFORE of which cuts each server has each transaction, as ranges of cuts.

For a transaction that no cut names, a server's BEFOREs are those of all cuts whose START comes later. The sets of
FINISH records add and take away single cuts. All of it is kept as toggles (item, cut, change) that sum up to ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from checkers.cuts.logs import BASE, COMMITTED, FINISH, REBALANCED, START, Logs
from checkers.cuts.trace import Int64s

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """int64[r, 4]: (log, xid, first, end): the log has the transaction in BEFORE of the cuts first … end-1.

    Sorted by log, xid and first; ranges of one log and transaction neither overlap nor touch.
    """

    rows: Int64s
    commits: Int64s
    """int64[c, 3]: (log, xid, record) of every transaction's first commit in a log, in that order."""


def whole_cuts(logs: Logs, cuts: Sequence[str], baseline: Sequence[str]) -> list[bool]:
    """Which cuts have a START and a FINISH in the log of every baseline server."""
    return [
        all(set(baseline) <= logs.of_cut(kind, cut).keys() for kind in (START, FINISH)) and bool(baseline)
        for cut in cuts
    ]


def ranges(logs: Logs, cuts: Sequence[str]) -> Ranges:
    """The ranges over these cuts, which every log has whole; they stand in the order of their series."""
    commits = _commits(logs)
    codes = {logs.cuts.index(cut): place for place, cut in enumerate(cuts)}
    parts = [numpy.zeros((0, 4), numpy.int64)]
    for node in range(len(logs.nodes)):
        of_node = commits[commits[:, 0] == node]
        starts = _firsts(logs, node, START, codes)
        toggles = [_by_position(of_node[:, 2], starts), *_by_sets(logs, node, codes, of_node, starts)]
        summed = to_ranges(numpy.concatenate(toggles), len(cuts))
        part = numpy.column_stack(
            (numpy.full(len(summed), node), of_node[summed[:, 0], 1], summed[:, 1], summed[:, 2])
        )
        parts.append(part.astype(numpy.int64))
    return Ranges(rows=numpy.concatenate(parts), commits=commits)


def to_ranges(toggles: Int64s, cuts: int, wanted: int = 1) -> Int64s:
    """(item, cut, change) → (item, first, end): where the sum of an item's changes up to a cut is `wanted`."""
    sums = running(toggles, cuts)
    rows: Int64s = sums[sums[:, 3] == wanted][:, :3]
    if len(rows) < 2:
        return rows
    joins = (rows[1:, 0] == rows[:-1, 0]) & (rows[1:, 1] == rows[:-1, 2])
    firsts = numpy.flatnonzero(numpy.concatenate(([True], ~joins)))
    lasts = numpy.concatenate((firsts[1:] - 1, [len(rows) - 1]))
    return numpy.column_stack((rows[firsts, 0], rows[firsts, 1], rows[lasts, 2]))


def running(toggles: Int64s, cuts: int) -> Int64s:
    """(item, cut, change) → (item, first, end, sum): from each change of an item to its next one, or the last cut."""
    # Toggles behind the last cut would end ranges that the last cut ends anyway.
    toggles = toggles[toggles[:, 1] < cuts]
    if not len(toggles):
        return numpy.zeros((0, 4), numpy.int64)
    toggles = toggles[numpy.lexsort((toggles[:, 1], toggles[:, 0]))]
    sums = numpy.cumsum(toggles[:, 2])
    item = toggles[:, 0]
    begins = numpy.flatnonzero(numpy.concatenate(([True], item[1:] != item[:-1])))
    before = numpy.concatenate(([0], sums[begins[1:] - 1]))
    sums = sums - numpy.repeat(before, numpy.diff(numpy.concatenate((begins, [len(item)]))))
    ends = numpy.concatenate((toggles[1:, 1], [cuts]))
    ends[numpy.concatenate((begins[1:] - 1, [len(item) - 1]))] = cuts
    rows = numpy.column_stack((item, toggles[:, 1], ends, sums))
    return rows[rows[:, 1] < rows[:, 2]]


def toggled(rows: Int64s, weight: int = 1) -> Int64s:
    """(item, first, end) → (item, cut, change)."""
    up = numpy.column_stack((rows[:, 0], rows[:, 1], numpy.full(len(rows), weight)))
    down = numpy.column_stack((rows[:, 0], rows[:, 2], numpy.full(len(rows), -weight)))
    return numpy.concatenate((up, down)).astype(numpy.int64)


def joined(rows: Int64s, xid: Int64s) -> Int64s:
    """(xid, first, end) → (operation, first, end) for every operation of that transaction."""
    rows = rows[numpy.lexsort((rows[:, 1], rows[:, 0]))]
    low = numpy.searchsorted(rows[:, 0], xid)
    counts = numpy.searchsorted(rows[:, 0], xid, side="right") - low
    item = numpy.repeat(numpy.arange(len(xid)), counts)
    place = numpy.repeat(low, counts) + numpy.arange(len(item))
    place -= numpy.repeat(numpy.cumsum(counts) - counts, counts)
    return numpy.column_stack((item, rows[place, 1], rows[place, 2])).astype(numpy.int64)


def copied(logs: Logs) -> list[tuple[int, int, int]]:
    """(log, record, code of the base): bases behind which a log does not show all that its node has.

    The node got data as a copy since the base before, or the log begins late and the base is its first.
    """
    copies = []
    marks = numpy.flatnonzero((logs.kind == BASE) | (logs.kind == REBALANCED)).tolist()
    lacks = [name in logs.cut_off for name in logs.nodes]
    for record in marks:
        node = logs.node_of(record)
        if logs.kind[record] == REBALANCED:
            lacks[node] = True
        elif lacks[node]:
            copies.append((node, record, int(logs.cut[record])))
            lacks[node] = False
    return copies


def _commits(logs: Logs) -> Int64s:
    records = numpy.flatnonzero((logs.kind == COMMITTED) & (logs.xid >= 0))
    node = numpy.searchsorted(logs.first[1:], records, side="right")
    table = numpy.column_stack((node, logs.xid[records], records)).astype(numpy.int64)
    table = table[numpy.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
    again = numpy.zeros(len(table), bool)
    again[1:] = (table[1:, :2] == table[:-1, :2]).all(axis=1)
    return table[~again]


def _firsts(logs: Logs, node: int, kind: int, codes: dict[int, int]) -> Int64s:
    """By cut its first record of this kind in a log."""
    firsts = numpy.full(len(codes), -1, numpy.int64)
    low, high = int(logs.first[node]), int(logs.first[node + 1])
    for record in (low + numpy.flatnonzero(logs.kind[low:high] == kind)).tolist():
        place = codes.get(int(logs.cut[record]), -1)
        if place >= 0 and firsts[place] < 0:
            firsts[place] = record
    return firsts


def _by_position(records: Int64s, starts: Int64s) -> Int64s:
    """Toggles of the cuts whose START is behind each of these records."""
    items = numpy.arange(len(records))
    if (numpy.diff(starts) >= 0).all():
        # Only for STARTs that ascend; below is the slow way for a log in which they do not.
        later = numpy.searchsorted(starts, records, side="right")
        return numpy.column_stack((items, later, numpy.ones(len(records), numpy.int64)))
    parts = [numpy.zeros((0, 3), numpy.int64)]
    step = max(1, _CHUNK // max(1, len(starts)))
    for low in range(0, len(records), step):
        is_in = records[low : low + step, None] < starts[None, :]
        change = numpy.diff(is_in.astype(numpy.int64), axis=1, prepend=0)
        item, cut = numpy.nonzero(change)
        parts.append(numpy.column_stack((item + low, cut, change[item, cut])))
    return numpy.concatenate(parts)


def _by_sets(logs: Logs, node: int, codes: dict[int, int], commits: Int64s, starts: Int64s) -> list[Int64s]:
    """Toggles of the single cuts that FINISH records add and take away."""
    toggles = []
    finishes = set(_firsts(logs, node, FINISH, codes).tolist())
    for pairs, sign in ((logs.included, 1), (logs.excluded, -1)):
        seen = set()
        of_node = (pairs[:, 0] >= logs.first[node]) & (pairs[:, 0] < logs.first[node + 1])
        for record, xid in pairs[of_node].tolist():
            if record not in finishes:
                continue
            cut = codes[int(logs.cut[record])]
            item = int(numpy.searchsorted(commits[:, 1], xid))
            if item == len(commits) or commits[item, 1] != xid or (cut, xid) in seen:
                continue
            is_behind = commits[item, 2] > starts[cut]
            # A name that is right by its position adds and takes nothing: counted, it would be there twice.
            if is_behind == (sign > 0):
                seen.add((cut, xid))
                toggles += [(item, cut, sign), (item, cut + 1, -sign)]
    return [numpy.array(toggles, numpy.int64).reshape(-1, 3)]
