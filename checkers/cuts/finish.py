"""How cuts end, and what clients may expect of a finished one.

A cut counts as finished if every baseline server has its START and its FINISH, because a restore needs no more. Without
logs it counts as finished if a node reports so. Then

- no node reports another end than the others, and a cut that a node reports as finished has both records everywhere;
- a cut that did not finish has a cause in the harness's own record;
- a finished cut has every transaction that was acknowledged before it was asked for, and none that was invoked after
  its end. (Level "transactions" reports torn ones.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from checkers.cuts.logs import FINISH, START, Cut, Logs, Operation
from checkers.cuts.membership import to_ranges, toggled
from checkers.cuts.trace import Int64s, name_of
from checkers.cuts.transactions import Members, first_of

_NEVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a cut ended; `is_finished` None: unknown. `breaches`: the rule and the sentence of each.

    `missing`: why its records cannot be judged.
    """

    is_finished: bool | None
    breaches: tuple[tuple[str, str], ...] = ()
    missing: str = ""


def ended(cut: Cut, logs: Logs | None, baseline: Sequence[str], *, is_whole: bool) -> Ended:
    """How this cut ended. `is_whole`: every baseline server has its START and FINISH."""
    outcomes = set(cut.outcomes.values())
    is_finished = None if not outcomes else "finished" in outcomes
    breaches: list[tuple[str, str]] = []
    missing = ""
    if logs is not None and baseline:
        server = "" if is_whole else _lacking(cut, logs, baseline)
        has_start = server in logs.of_cut(START, cut.id)
        is_late = server in logs.cut_off and not has_start
        is_open = server not in logs.nodes or server in logs.damage or is_late
        if server and is_open and outcomes != {"failed"}:
            is_finished, missing = None, f"the log of {server} is missing or not whole"
        else:
            is_finished = is_whole
            if "finished" in outcomes and not is_whole:
                why = f"{cut.id} is reported as finished, and {server} has not both START and FINISH"
                breaches.append(("finished-without-record", why))
    if len(outcomes) > 1:
        one = next(node for node, outcome in cut.outcomes.items() if outcome == "finished")
        other = next(node for node, outcome in cut.outcomes.items() if outcome == "failed")
        breaches.append(("finished-on-some", f"{one} reports {cut.id} as finished and {other} as failed"))
    elif is_finished is False and not breaches and not cut.causes:
        breaches.append(("no-cause", f"{cut.id} did not finish, and nothing is known that kept it"))
    return Ended(is_finished=is_finished, breaches=tuple(breaches), missing=missing)


def _lacking(cut: Cut, logs: Logs, baseline: Sequence[str]) -> str:
    """The first baseline server without both records."""
    has = [logs.of_cut(kind, cut.id) for kind in (START, FINISH)]
    return next((node for node in baseline if any(node not in records for records in has)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """A transaction on the side of a cut where its client's times do not allow it."""

    rule: str
    operation: Operation


def out_of_bounds(
    members: Members, cuts: Sequence[Cut], operations: Sequence[Operation]
) -> tuple[list[Misplaced | None], list[str]]:
    """By cut (those of `members`) one misplaced transaction; and why a cut cannot be judged, "" if it can."""
    logs = members.logs
    codes = {name: code for code, name in enumerate(logs.xids)}
    asked = _no_later([cut.asked_ns for cut in cuts])
    over = _no_sooner([cut.ended_ns for cut in cuts])
    known: list[tuple[int, Operation]] = []
    lost: list[Operation] = []
    for operation in operations:
        code = codes.get(name_of(operation.xid), -1)
        if code >= 0 and members.needed[code]:
            known.append((code, operation))
        elif operation.ok and operation.wrote:
            lost.append(operation)
    early: list[Misplaced | None] = [None] * len(cuts)
    late: list[Misplaced | None] = [None] * len(cuts)
    _acknowledged_before(members, known, asked, early)
    _invoked_later(members, known, over, late)
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


def _no_sooner(times: Sequence[int]) -> Int64s:
    """Ascending times, each no sooner than the given one."""
    return numpy.maximum.accumulate(numpy.array(times, numpy.int64))


def _acknowledged_before(
    members: Members, known: Sequence[tuple[int, Operation]], asked: Int64s, wrong: list[Misplaced | None]
) -> None:
    done = [(xid, operation) for xid, operation in known if operation.ok and operation.completed_ns >= 0]
    xids = numpy.array([xid for xid, _ in done], numpy.int64)
    first = numpy.searchsorted(asked, [operation.completed_ns for _, operation in done], side="right")
    _both(
        members.outside,
        xids,
        first,
        numpy.full(len(done), len(asked)),
        "acknowledged-not-included",
        done,
        wrong,
    )


def _invoked_later(
    members: Members, known: Sequence[tuple[int, Operation]], over: Int64s, wrong: list[Misplaced | None]
) -> None:
    xids = numpy.array([xid for xid, _ in known], numpy.int64)
    end = numpy.searchsorted(over, [operation.invoked_ns for _, operation in known], side="left")
    _both(
        members.inside,
        xids,
        numpy.zeros(len(known), numpy.int64),
        end,
        "invoked-later-included",
        known,
        wrong,
    )


def _both(
    members: Int64s,
    xids: Int64s,
    first: Int64s,
    end: Int64s,
    rule: str,
    known: Sequence[tuple[int, Operation]],
    wrong: list[Misplaced | None],
) -> None:
    """Fill `wrong` where an operation's cuts first … end-1 meet the ranges of its transaction in `members`."""
    if not len(xids):
        return
    cuts = len(wrong)
    order = numpy.argsort(members[:, 0], kind="stable")
    rows = members[order]
    low = numpy.searchsorted(rows[:, 0], xids)
    counts = numpy.searchsorted(rows[:, 0], xids, side="right") - low
    item = numpy.repeat(numpy.arange(len(xids)), counts)
    place = numpy.repeat(low - numpy.cumsum(counts) + counts, counts) + numpy.arange(len(item))
    of_members = numpy.column_stack((item, rows[place, 1], rows[place, 2])).astype(numpy.int64)
    of_operations = numpy.column_stack((numpy.arange(len(xids)), first, end)).astype(numpy.int64)
    of_operations = of_operations[of_operations[:, 1] < of_operations[:, 2]]
    both = to_ranges(numpy.concatenate((toggled(of_members), toggled(of_operations, 2))), cuts, wanted=3)
    for cut, row in enumerate(first_of(both, cuts).tolist()):
        if row >= 0:
            wrong[cut] = Misplaced(rule=rule, operation=known[int(both[row, 0])][1])
