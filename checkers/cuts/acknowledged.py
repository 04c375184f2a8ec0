"""What clients may expect of a finished cut.

It has every transaction that was acknowledged before it was asked for, and none that was invoked after its end. (Level
"transactions" reports torn ones.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from checkers.cuts.logs import COMMITTED, Cut, Operation
from checkers.cuts.membership import joined, to_ranges, toggled
from checkers.cuts.trace import Int64s, name_of
from checkers.cuts.transactions import Members, first_of

_NEVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """A transaction on the side of a cut where its client's times do not allow it."""

    rule: str
    operation: Operation


def out_of_bounds(
    members: Members, cuts: Sequence[Cut], operations: Sequence[Operation]
) -> tuple[list[Misplaced | None], list[str]]:
    """By cut (those of `members`) one misplaced transaction; and why a cut cannot be judged, "" if it can.

    Both are empty if no operation is of a transaction in the logs, or changed something and was acknowledged.
    """
    logs = members.logs
    codes = {name: code for code, name in enumerate(logs.xids)}
    committed = {*logs.xid[logs.kind == COMMITTED].tolist()}
    asked = _no_later([cut.asked_ns for cut in cuts])
    over = numpy.maximum.accumulate(numpy.array([cut.ended_ns for cut in cuts], numpy.int64))
    known: list[tuple[int, Operation]] = []
    lost: list[Operation] = []
    for operation in operations:
        code = codes.get(name_of(operation.xid), -1)
        if code >= 0 and members.needed[code]:
            known.append((code, operation))
        elif code in committed:
            pass  # on servers that no cut needs
        elif operation.ok and operation.wrote and operation.completed_ns >= 0:
            lost.append(operation)
    if not known and not lost:
        return [], []
    early = _acknowledged_before(members, known, asked)
    late = _invoked_later(members, known, over)
    first_lost = min(lost, key=lambda operation: operation.completed_ns, default=None)
    wrong: list[Misplaced | None] = []
    missing: list[str] = []
    for place, cut in enumerate(cuts):
        why = "" if cut.asked_ns >= 0 else "it is not known when the cut was asked for"
        why = why or ("" if cut.ended_ns >= 0 else "it is not known when the cut was over")
        of_cut = early[place] if cut.asked_ns >= 0 else None
        of_cut = of_cut or (late[place] if cut.ended_ns >= 0 else None)
        if of_cut is None and first_lost is not None and first_lost.completed_ns < cut.asked_ns:
            if logs.cut_off or logs.damage:
                why = f"no log has {name_of(first_lost.xid)}, and a log is not whole"
            else:
                of_cut = Misplaced(rule="acknowledged-in-no-log", operation=first_lost)
        wrong.append(of_cut)
        missing.append(why)
    return wrong, missing


def _no_later(times: Sequence[int]) -> Int64s:
    """Ascending times, each no later than the given one: a claim that holds for them holds for the given ones."""
    known = numpy.array([time if time >= 0 else _NEVER for time in times], numpy.int64)
    return numpy.minimum.accumulate(known[::-1])[::-1]


def _acknowledged_before(
    members: Members, known: Sequence[tuple[int, Operation]], asked: Int64s
) -> list[Misplaced | None]:
    """By cut, a transaction outside of it that had been acknowledged when it was `asked` for."""
    done = [(xid, operation) for xid, operation in known if operation.ok and operation.completed_ns >= 0]
    # Before, not at the same time: equal times prove nothing. `left` below for the same reason.
    first = numpy.searchsorted(asked, [operation.completed_ns for _, operation in done], side="right")
    spans = numpy.column_stack((first, numpy.full(len(done), len(asked))))
    return _misplaced("acknowledged-not-included", members.outside, done, spans, len(asked))


def _invoked_later(
    members: Members, known: Sequence[tuple[int, Operation]], over: Int64s
) -> list[Misplaced | None]:
    """By cut, a transaction in it that was invoked when it was `over`."""
    end = numpy.searchsorted(over, [operation.invoked_ns for _, operation in known], side="left")
    spans = numpy.column_stack((numpy.zeros(len(known), numpy.int64), end))
    return _misplaced("invoked-later-included", members.inside, known, spans, len(over))


def _misplaced(
    rule: str, members: Int64s, known: Sequence[tuple[int, Operation]], spans: Int64s, cuts: int
) -> list[Misplaced | None]:
    """By cut, one operation whose transaction `members` have there (rows of transaction, first cut, end).

    `spans` int64[operations, 2]: the cuts, from the first to the end, at which the rule forbids that.
    """
    wrong: list[Misplaced | None] = [None] * cuts
    if not known:
        return wrong
    of_members = joined(members, numpy.array([xid for xid, _ in known], numpy.int64))
    of_operations = numpy.column_stack((numpy.arange(len(known)), spans)).astype(numpy.int64)
    of_operations = of_operations[of_operations[:, 1] < of_operations[:, 2]]
    # 3: the rule forbids it (2), and the members have it (1).
    both = to_ranges(numpy.concatenate((toggled(of_members), toggled(of_operations, 2))), cuts, wanted=3)
    for cut, row in enumerate(first_of(both, cuts).tolist()):
        if row >= 0:
            wrong[cut] = Misplaced(rule=rule, operation=known[int(both[row, 0])][1])
    return wrong
