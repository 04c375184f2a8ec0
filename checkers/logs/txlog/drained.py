"""Whether masters agree in time: I10, by the clients and the end of the run.

| rule | a run breaks it if |
|---|---|
| never-drained | faults and load have been over for long, and a transaction is not synchronised on all masters |
| stalled | a client waited so long for an executed transaction while nothing hindered the masters (see below) |

Links that are down hinder nothing while all masters reach each other over the others (`disturbances`). Beyond the time
to agree, a client may wait for as long as masters need to execute all that is under way, one after the other.

With the strategy `none` branches that differ are never drained, which is documented. Rates of idle and busy rounds are
not judged: no record shows a POST that says nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from checkers.history.faults import Span
from checkers.history.history import History
from checkers.logs.txlog import kernels
from checkers.logs.txlog.asked import OK, Asked
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.order import UNREPAIRED
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's

STALL_NS = 1_000_000_000
"""A longer time without any answer is reported with its cause."""


def judge(given: Given) -> Report:
    report = Report()
    asked = given.asked
    submitted = asked.last
    calm = submitted[(asked.type[submitted] == OK) & ~_disturbed(asked, submitted, given.disturbances.spans)]
    report.count("drained", transactions=given.made.count, answers=len(submitted), in_calm=len(calm))
    waits = numpy.maximum(asked.complete_ns[calm], 0) - asked.invoke_ns[calm]
    if len(waits):
        middle = int(numpy.partition(waits, len(waits) // 2)[len(waits) // 2])
        report.count("drained", median_ms=_ms(middle), longest_ms=_ms(int(waits.max())))
    if not given.made.count:
        report.nothing["drained"] = "no transaction was accepted"
    if given.agrees_within_ns:
        report.breaches += _stalled(given)
        report.breaches += _left(given, report)
    else:
        report.lacks["drained"] = "it is not known in what time masters should agree"
    report.breaches += _pauses(given, submitted)
    report.proofs["drained"] = {"rule": "all drained", "transactions": given.made.count}
    return report


def _ms(time_ns: int) -> int:
    return time_ns // 1_000_000


def _disturbed(asked: Asked, operations: Array, spans: Sequence[Span]) -> Array:
    """By operation whether a span overlaps it. Spans are in order, and have gaps between them."""
    begin_ns, end_ns = asked.invoke_ns[operations], asked.complete_ns[operations]
    end_ns = numpy.where(end_ns < 0, begin_ns, end_ns)
    begins, ends = (numpy.array([span[side] for span in spans], dtype=numpy.int64) for side in (0, 1))
    return numpy.searchsorted(ends, begin_ns, "left") < numpy.searchsorted(begins, end_ns, "right")


def _stalled(given: Given) -> Iterator[Breach]:
    """Operations that waited too long between two hindrances."""
    asked, spans, submitted = given.asked, given.disturbances.hindrances, given.asked.with_one
    over_ns = numpy.where(asked.type == OK, asked.complete_ns, kernels.NEVER)
    ended = submitted[asked.complete_ns[submitted] >= 0]
    long = ended[asked.complete_ns[ended] - asked.invoke_ns[ended] > given.agrees_within_ns]
    for operation in long.tolist():
        begin_ns, end_ns = int(asked.invoke_ns[operation]), int(asked.complete_ns[operation])
        waited_ns = max(_calm(spans, begin_ns, end_ns), default=0)
        before = (asked.invoke_ns[submitted] < end_ns) & (over_ns[submitted] > begin_ns)
        if waited_ns > given.agrees_within_ns + int(before.sum()) * given.executes_within_ns:
            name = given.columns.names[int(asked.transaction[operation])]
            yield Breach(
                rule="stalled",
                summary=f"{name} took {_ms(waited_ns)} ms to be executed while nothing hindered the masters",
                events=asked.events(operation),
            )


def _calm(spans: Sequence[Span], begin_ns: int, end_ns: int) -> Iterator[int]:
    """The length of each part of this time outside of the spans."""
    for begin, end in spans:
        if end < begin_ns:
            continue
        if begin > end_ns:
            break
        yield max(0, begin - begin_ns)
        begin_ns = end
    yield max(0, end_ns - begin_ns)


def _left(given: Given, report: Report) -> Iterator[Breach]:
    history = given.history
    if history.settled is True or given.missing:
        return
    gave_up_ns = _gave_up_ns(history)
    fault_ns = max((end for _, end in given.disturbances.spans), default=0)
    request_ns = _last_request_ns(given, gave_up_ns)
    quiet_ns, last = gave_up_ns - max(fault_ns, request_ns), "fault" if fault_ns > request_ns else "request"
    if quiet_ns < given.agrees_within_ns:
        report.lacks["drained"] = (
            "the masters were not seen to be quiet and equal, and had not long to come to it"
        )
        return
    waiting = _waiting(given)
    if not waiting:
        report.lacks["drained"] = (
            "the masters were not seen to be quiet and equal, although nothing waits in a log"
        )
    price = UNREPAIRED if given.strategy == "none" and given.has_split else ""
    has_added = any((log.rows.kind == kernels.ADDED).any() for log in given.by_master.values())
    for number, master in waiting:
        name = given.columns.names[number]
        yield Breach(
            rule="never-drained",
            summary=f"transaction {name} is not synchronised on {master}, {_ms(quiet_ns)} ms after the last {last}",
            records=[given.made.place(number)],
            facts={"id": name, "master": master},
            price=price,
            end_ns=gave_up_ns,
            how="rounds had added others" if has_added else "no round ever added anything",
        )


def _waiting(given: Given) -> list[tuple[int, str]]:
    """Ids that were made, and the masters that have not synchronised them."""
    lacks = given.lacks
    of_any = numpy.any([*lacks.values()], axis=0) if lacks else given.made.ref < 0
    return [
        (name, master)
        for name in given.made.in_order(of_any)
        for master, lacking in lacks.items()
        if lacking[name]
    ]


def _last_request_ns(given: Given, until_ns: int) -> int:
    """When the last operation before this moment was asked, whatever became of it; 0: none was."""
    asked_ns = numpy.concatenate((given.history.columns.invoke_ns, given.asked.invoke_ns))
    return int(asked_ns[asked_ns < until_ns].max(initial=0))


def _gave_up_ns(history: History) -> int:
    """When the harness stopped waiting for masters to be quiet and equal; 0 if it never did."""
    return max((event.time_ns for event in history.told("harness", "settled")), default=0)


def _pauses(given: Given, submitted: Array) -> Iterator[Breach]:
    """Times without an answer that a fault explains: a finding, not a violation."""
    ends = given.asked.complete_ns[submitted]
    ends = numpy.sort(ends[ends >= 0])
    for at in numpy.flatnonzero(ends[1:] - ends[:-1] > STALL_NS).tolist():
        begin, end = int(ends[at]), int(ends[at + 1])
        cause = given.disturbances.cause(begin, end)
        if cause:
            yield Breach(
                rule="stalled",
                summary=f"nothing was executed for {_ms(end - begin)} ms from {_ms(begin)} ms on, because of {cause}",
                price="documented: rounds wait for masters that are away",
            )
