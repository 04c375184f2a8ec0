"""Whether rounds add only what masters made, and nothing is lost: I4 and I5.

| rule | a run breaks it if |
|---|---|
| unrecorded | a client got an answer about a transaction that no master has made |
| lost | all is quiet, and a transaction that a master accepted is not in every synchronised queue |
| dropped-at-recovery | a master finishes a recovery without what a master brought to it, or its own |
| never-made | a round adds a transaction that its origin has not made, or with another timestamp |
| not-acquired | a round adds a transaction, and the master has not its updates |
| poster-elsewhere | a round counts a poster that never had the base of the round in this epoch |
| poster-lacked | a round adds a transaction, and a poster had not its updates as long as it posted for that base |

With the strategy `none`, a part of a split cluster keeps its transactions to itself: that is documented. A master sends
a POST only after it has written the records on which the POST rests, so its log has all that it sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import Columns, LogColumns
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.order import UNREPAIRED
from checkers.logs.txlog.queues import Queues
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's


def judge(given: Given) -> Report:
    report = Report()
    _recoveries(given, report)
    report.breaches += _lost(given)
    report.breaches += _unrecorded(given)
    report.count("kept", transactions=given.made.count, masters=len(given.by_master))
    if not given.made.count:
        report.nothing["kept"] = "no transaction was accepted"
    elif given.history.settled is not True:
        report.lacks["kept"] = (
            "the masters were not seen to be quiet and equal in the end: much may still wait"
        )
    report.proofs["kept"] = {"rule": "all kept", "transactions": given.made.count}
    _rounds(given, report)
    return report


# ---- kept


def _recoveries(given: Given, report: Report) -> None:
    """All masters, from one recovery to the next.

    `going`: the queues of each master, at the record where they stand; a master leaves it at the end of its log.
    `brought`: the masters and records that begin this recovery, each with what its master had then. `by`: for each id
    the last of these that had it, as an index of `brought`; -1: none had it. `gone`: by id, it was brought to a master
    or made by it, and the master finishes the recovery without it.
    """
    if not any(log.recoveries for log in given.by_master.values()):
        return
    going = {master: Queues(given.columns, log) for master, log in given.by_master.items()}
    while going:
        brought: list[tuple[str, int]] = []
        by = numpy.full(len(given.columns.names), -1, dtype=numpy.int32)
        for master, queues in going.items():
            end = queues.next_of(kernels.RECOVERED)
            while (row := queues.next_of(kernels.RECOVERING)) < end:
                queues.go_on(row + 1)
                by[queues.has] = len(brought)
                brought.append((master, row))
            queues.go_on(end)
        going = {master: queues for master, queues in going.items() if queues.next < queues.end}
        for master, queues in going.items():
            row, own = queues.next, queues.has & given.made.by(master)
            queues.go_on(row + 1)
            report.count("kept", recoveries=1)
            gone = ((by >= 0) | own) & ~queues.has
            report.breaches += _dropped(given, master, row, gone, by, brought)
        going = {master: queues for master, queues in going.items() if queues.next < queues.end}


def _dropped(
    given: Given, master: str, row: int, gone: Array, by: Array, brought: list[tuple[str, int]]
) -> Iterator[Breach]:
    """The breaches of a master that finishes a recovery; arguments as in `_recoveries`. What none had brought is a
    transaction of this master, made since."""
    for name in _as_brought(given, gone, [*brought, (master, row)]) if gone.any() else ():
        text = given.columns.names[name]
        bringer, words = master, "which it had made"
        if by[name] >= 0:
            bringer = brought[by[name]][0]
            words = f"which {bringer} brought to it"
        yield Breach(
            rule="dropped-at-recovery",
            summary=f"{master} finishes a recovery without {text}, {words}",
            records=[(master, row + 1)],
            facts={"id": text, "by": bringer},
        )


def _as_brought(given: Given, gone: Array, brought: list[tuple[str, int]]) -> list[int]:
    """The ids in the order of the queues that they came with."""
    names: dict[int, None] = {}
    for master, row in brought:
        queues = Queues(given.columns, given.by_master[master])
        queues.go_on(row)
        names |= dict.fromkeys(queues.names(gone))
    return [*names]


def _lost(given: Given) -> Iterator[Breach]:
    if given.history.settled is not True or not given.lacks:
        return
    lost = numpy.any([*given.lacks.values()], axis=0) & (given.made.ref >= 0)
    price = UNREPAIRED if given.strategy == "none" and given.has_split else ""
    for name in given.made.in_order(lost) if lost.any() else ():
        lacking = [master for master, lacks in given.lacks.items() if lacks[name]]
        operation, text = int(given.operation_of[name]), given.columns.names[name]
        origin, place = given.made.place(name)
        yield Breach(
            rule="lost",
            summary=f"{origin} accepted {text}, and in the end {', '.join(lacking)} has not got it",
            records=[(origin, place)],
            events=given.asked.events(operation) if operation >= 0 else (),
            facts={"id": text, "lacking": lacking},
            price=price,
        )


def _unrecorded(given: Given) -> Iterator[Breach]:
    if given.missing:
        return
    asked = given.asked
    first = asked.first
    for operation in first[given.made.ref[asked.transaction[first]] < 0].tolist():
        name = int(asked.transaction[operation])
        # In the order of the first operations; the events are those of the last one, as in other witnesses.
        yield Breach(
            rule="unrecorded",
            summary=f"a client got an answer about {given.columns.names[name]}, and no log has it",
            events=asked.events(int(given.operation_of[name])),
            facts={"id": given.columns.names[name]},
        )


# ---- acquired


def _rounds(given: Given, report: Report) -> None:
    columns, logs = given.columns, given.columns.logs
    has = numpy.full((len(columns.peers), len(columns.names)), kernels.NO_RECORD, dtype=numpy.int32)
    for master, log in logs.items():
        given.kernels.updates(log.rows, columns.id, has[columns.peer[master]])
    stamped = cache(partial(_stamped, columns))
    made = given.made.ref
    made_ts = numpy.where(made >= 0, columns.ts[made], -1) if len(columns.ts) else made.astype(numpy.int64)
    is_whole = numpy.array(
        [name in logs and not logs[name].damage for name in columns.peers], dtype=numpy.bool_
    )
    for master, log in logs.items():
        rows = log.rows.of_kind(kernels.ADDED)
        if len(rows):
            posters = (columns.posters[log.rows.name[rows]] >= 0).sum()
            entries = (log.rows.first[rows + 1] - log.rows.first[rows]).sum()
            report.count("acquired", rounds=len(rows), entries=int(entries), posters=int(posters))
        out = numpy.empty((0, kernels.FIELDS), dtype=numpy.int64)
        out, count = given.kernels.acquired(
            log.rows, columns.id, columns.ts, made_ts, columns.peer[master], has, columns.posters, is_whole,
            given.bases.ends[master], out,
        )  # fmt: skip
        out = out[:count]
        report.breaches += (
            _breach(given, log, *fields) for fields in out[~_may_be(given, out, is_whole, stamped)].tolist()
        )
    if not report.compared.get("acquired"):
        report.nothing["acquired"] = "no round added anything"
    report.proofs["acquired"] = {"rule": "all acquired", **report.compared.get("acquired", {})}


def _may_be(given: Given, out: Array, is_whole: Array, stamped: Callable[[], Array]) -> Array:
    """The NEVER_MADE breaches that are none: a recovery stamped the transaction, or its origin left no whole log."""
    columns = given.columns
    strange = out[:, 0] == kernels.NEVER_MADE
    if strange.any():
        refs = out[strange, 2]
        again = (given.made.ref[columns.id[refs]] >= 0) & stamped()[columns.order[refs]]
        strange[strange] = again | ~is_whole[columns.origin[refs]]
    return strange


def _stamped(columns: Columns) -> Array:
    """By place in the order of references: a recovery of some master stamped it."""
    stamped = numpy.zeros(len(columns.ts), dtype=bool)
    for log in columns.logs.values():
        rows = log.rows
        for row in rows.of_kind(kernels.RECOVERED).tolist():
            refs = rows.listed[rows.first[row] + rows.other[row] : rows.first[row + 1]]
            stamped[columns.order[refs]] = True
    return stamped


def _breach(given: Given, log: LogColumns, rule: int, row: int, one: int, two: int, _: int) -> Breach:
    name, says, facts = _finding(given, log, rule, row, one, two)
    return Breach(rule=name, summary=f"{log.master} {says}", records=[(log.master, row + 1)], facts=facts)


def _finding(
    given: Given, log: LogColumns, rule: int, row: int, one: int, two: int
) -> tuple[str, str, Mapping[str, str]]:
    """The rule, what the master did, and the facts."""
    columns = given.columns
    if rule == kernels.NEVER_MADE:
        ref = columns.ref(one)
        return "never-made", f"synchronised {ref.text}, and {ref.origin} never made it", {"id": ref.id}
    if rule == kernels.NOT_ACQUIRED:
        name = columns.ref(one).id
        return "not-acquired", f"added {name} without its updates", {"id": name}
    poster = columns.peers[one]
    if rule == kernels.POSTER_ELSEWHERE:
        index = int(log.rows.number[row])
        says = f"counts {poster} in a round behind entry {index}, where {poster} never was"
        return "poster-elsewhere", says, {"poster": poster}
    name = columns.ref(two).id
    says = f"added {name} with a POST of {poster}, which had not its updates then"
    return "poster-lacked", says, {"id": name, "poster": poster}
