"""L3 and L4: what a BEFORE must have because of what it has.

L3, by key: the writers of a key that are in BEFORE are a prefix of its versions, on every server by itself. It is
enough to look at neighbours: a BEFORE that is no prefix has some version without the one just before it. Level
"transactions" reports what follows from a torn transaction.

L4, external causality: a transaction of which any client knew before another was invoked is in BEFORE if the other
is. A client knows of a transaction by the answer to it, or by a read that shows what it wrote. Clients can carry
causes from one node to another where no message of the store can show it, so a protocol that colours its own messages
does not promise this. It is a class of its own: a finding, and no torn transaction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.cuts.logs import Logs, Operation
from checkers.cuts.membership import Ranges, joined, running, to_ranges
from checkers.cuts.trace import Int64s, name_of
from checkers.cuts.transactions import Members, counted, first_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """On log `node` BEFORE has the writer `later` of a version, and not the writer `earlier` of the one before it."""

    node: int
    key: int
    earlier: int
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gaps: by cut their number, and one of them. `doubled`: a sentence if a version of a key has two writers."""

    counts: Int64s
    first: list[Gap | None]
    doubled: str = ""


def by_key(members: Members) -> Gaps:
    """L3 for the cuts of these members."""
    logs, of_logs, cuts = members.logs, members.of_logs, len(members.cuts)
    written = _written(logs, of_logs)
    neighbours = (written[1:, :2] == written[:-1, :2]).all(axis=1)
    differ = (written[1:, 2:] != written[:-1, 2:]).all(axis=1)  # in version and in writer
    later = numpy.flatnonzero(neighbours & differ) + 1
    node, key = written[later, 0], written[later, 1]
    torn = numpy.column_stack((numpy.zeros(len(members.torn), numpy.int64), members.torn))
    anywhere = numpy.zeros_like(node)
    toggles = (
        _expanded(of_logs.rows, node, written[later, 3], 2),
        _expanded(of_logs.rows, node, written[later - 1, 3], 1),
        _expanded(torn, anywhere, written[later, 3], 4),
        _expanded(torn, anywhere, written[later - 1, 3], 4),
    )
    # 2 alone: BEFORE has the later one, not the earlier one (1), and neither is torn (4), which L2 reports.
    wrong = to_ranges(numpy.concatenate(toggles), cuts, wanted=2)
    first: list[Gap | None] = [None] * cuts
    for cut, place in enumerate(first_of(wrong, cuts).tolist()):
        if place >= 0:
            pair = int(wrong[place, 0])
            first[cut] = Gap(
                node=int(node[pair]),
                key=int(key[pair]),
                earlier=int(written[later[pair] - 1, 3]),
                later=int(written[later[pair], 3]),
            )
    return Gaps(counts=counted(wrong, cuts), first=first, doubled=_doubled(logs, written))


def _written(logs: Logs, of_logs: Ranges) -> Int64s:
    """(log, key, version, xid) of committed transactions, sorted."""
    record, key, version = logs.writes.T
    counts = numpy.isin(record, of_logs.commits[:, 2])
    record, key, version = record[counts], key[counts], version[counts]
    node = numpy.searchsorted(logs.first[1:], record, side="right")
    table = numpy.column_stack((node, key, version, logs.xid[record])).astype(numpy.int64)
    return table[numpy.lexsort((table[:, 3], table[:, 2], table[:, 1], table[:, 0]))]


def _doubled(logs: Logs, written: Int64s) -> str:
    table = written[numpy.lexsort((written[:, 3], written[:, 2], written[:, 1]))][:, 1:]
    is_same = (table[1:, :2] == table[:-1, :2]).all(axis=1) & (table[1:, 2] != table[:-1, 2])
    same = numpy.flatnonzero(is_same)
    if not len(same):
        return ""
    one, other = table[same[0]], table[same[0] + 1]
    return (
        f"a version of key {logs.keys[one[0]]} has two writers, {logs.xids[one[2]]} and {logs.xids[other[2]]}"
    )


def _expanded(rows: Int64s, node: Int64s, xid: Int64s, weight: int) -> Int64s:
    """Toggles of the rows (log, xid, first, end) of each (log, xid): item i is the i-th pair."""
    width = int(rows[:, 1].max(initial=0)) + int(xid.max(initial=0)) + 1
    have, wanted = rows[:, 0] * width + rows[:, 1], node * width + xid
    low, high = numpy.searchsorted(have, wanted), numpy.searchsorted(have, wanted, side="right")
    counts = high - low
    item = numpy.repeat(numpy.arange(len(wanted)), counts)
    offset = numpy.arange(len(item)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    place = numpy.repeat(low, counts) + offset
    up = numpy.column_stack((item, rows[place, 2], numpy.full(len(item), weight)))
    down = numpy.column_stack((item, rows[place, 3], numpy.full(len(item), -weight)))
    return numpy.concatenate((up, down)).astype(numpy.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A client knew of a transaction: by the answer to it, or because it read what the transaction wrote."""

    xid: Any
    process: int
    at_ns: int
    is_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """A client knew of `earlier` before `later` was invoked; BEFORE has `later` and lacks `earlier`."""

    earlier: Known
    later: Operation

    @property
    def rule(self) -> str:
        """Whether one client's own order is broken, or only that of real time."""
        return "session-order" if self.earlier.process == self.later.process else "real-time-order"


def known_by(operations: Sequence[Operation]) -> list[Known]:
    """The transactions that clients learned of, and when."""
    answered = [operation for operation in operations if operation.completed_ns >= 0]
    return [
        *(
            Known(xid=operation.xid, process=operation.process, at_ns=operation.completed_ns)
            for operation in answered
            if operation.ok
        ),
        *(
            Known(xid=xid, process=operation.process, at_ns=operation.completed_ns, is_read=True)
            for operation in answered
            for xid in operation.saw
        ),
    ]


def external(members: Members, operations: Sequence[Operation]) -> list[Inversion | None]:
    """L4: one inversion for each cut that has any, of one client's transactions if there is such a one; [] if the
    operations tell of no transactions in the logs."""
    # Those of which a cut can have all or nothing.
    codes = {name: code for code, name in enumerate(members.logs.xids) if members.needed[code]}
    later = [each for each in operations if name_of(each.xid) in codes]
    earlier = [each for each in known_by(operations) if name_of(each.xid) in codes]
    cuts = len(members.cuts)
    if not later or not earlier:
        return []
    has_xid = numpy.array([codes[name_of(each.xid)] for each in later], numpy.int64)
    lacks_xid = numpy.array([codes[name_of(each.xid)] for each in earlier], numpy.int64)
    invoked = numpy.array([each.invoked_ns for each in later], numpy.int64)
    known = numpy.array([each.at_ns for each in earlier], numpy.int64)
    inside, outside = joined(members.inside, has_xid), joined(members.outside, lacks_xid)
    following = _following(earlier, later)
    in_sessions = _in_sessions(members, outside, following, has_xid, cuts)
    latest = first_of(inside, cuts, numpy.argsort(-invoked[inside[:, 0]], kind="stable"))
    soonest = first_of(outside, cuts, numpy.argsort(known[outside[:, 0]], kind="stable"))
    inversions: list[Inversion | None] = []
    for cut in range(cuts):
        inversion = None
        if (cause := int(in_sessions[cut])) >= 0:
            inversion = Inversion(earlier=earlier[cause], later=later[following[cause]])
        elif latest[cut] >= 0 and soonest[cut] >= 0:
            cause, effect = int(outside[soonest[cut], 0]), int(inside[latest[cut], 0])
            # < because equal times have no order. The last invoked one inside against the first known one outside: if
            # these two are in order, all are.
            if earlier[cause].at_ns < later[effect].invoked_ns:
                inversion = Inversion(earlier=earlier[cause], later=later[effect])
        inversions.append(inversion)
    return inversions


def _following(earlier: Sequence[Known], later: Sequence[Operation]) -> Int64s:
    """For each known transaction the next operation that its client invoked; -1: none."""
    of_client: dict[int, list[int]] = {}
    for place in sorted(range(len(later)), key=lambda place: later[place].invoked_ns):
        of_client.setdefault(later[place].process, []).append(place)
    following = numpy.full(len(earlier), -1, numpy.int64)
    for item, known in enumerate(earlier):
        places = of_client.get(known.process, [])
        # Invoked after the answer, not with it: of equal times the client may have known nothing.
        next_one = bisect_right(places, known.at_ns, key=lambda place: later[place].invoked_ns)
        if next_one < len(places):
            following[item] = places[next_one]
    return following


def _in_sessions(members: Members, outside: Int64s, following: Int64s, has_xid: Int64s, cuts: int) -> Int64s:
    """By cut a known transaction that BEFORE lacks, although BEFORE has its client's next operation; -1: none."""
    followed = numpy.flatnonzero(following >= 0)
    lacks = outside[following[outside[:, 0]] >= 0]
    has = joined(members.inside, has_xid[following[followed]])
    has[:, 0] = followed[has[:, 0]]
    parts = []
    for rows in (lacks, has):
        for column, change in ((1, 1), (2, -1)):
            parts.append(numpy.column_stack((rows[:, 0], rows[:, column], numpy.full(len(rows), change))))
    sums = running(numpy.concatenate(parts).astype(numpy.int64), cuts)
    wrong = sums[sums[:, 3] == 2][:, :3]
    first = first_of(wrong, cuts)
    return numpy.array([-1 if place < 0 else wrong[place, 0] for place in first.tolist()], numpy.int64)
