"""Whether masters come to an agreement in time: I10, by the clients and the end of the run.

| rule | a run breaks it if |
|---|---|
| never-drained | faults and load have been over for long, and a transaction is not synchronised on all masters |
| stalled | a client waited so long for an executed transaction while nothing hindered the masters |

With the strategy `none` branches that differ are never drained, which is documented. Rates of idle and busy rounds are
not judged: no record shows a POST that says nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from checkers.history.faults import Span
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.order import UNREPAIRED
from tests.checkers.logs.txlog.plain.records import Added

STALL_NS = 1_000_000_000
"""A longer time without any answer is reported with its cause."""


def judge(given: Given) -> Report:
    found = Report()
    submitted = list(given.operations.values())
    calm = [each for each in submitted if each.type == "ok" and not _disturbed(given, each)]
    found.count("drained", transactions=len(given.made), answers=len(submitted), in_calm=len(calm))
    waits = sorted((each.complete_ns or 0) - each.invoke_ns for each in calm)
    if waits:
        found.count("drained", median_ms=_ms(waits[len(waits) // 2]), longest_ms=_ms(waits[-1]))
    if not given.made:
        found.nothing["drained"] = "no transaction was accepted"
    if given.agrees_within_ns:
        found.breaches += _stalled(given)
        found.breaches += _left(given, found)
    else:
        found.lacks["drained"] = "it is not known in what time masters should agree"
    found.breaches += _pauses(given, submitted)
    found.proofs["drained"] = {"rule": "all drained", "transactions": len(given.made)}
    return found


def _ms(time_ns: int) -> int:
    return time_ns // 1_000_000


def _disturbed(given: Given, operation: Operation) -> bool:
    end_ns = operation.invoke_ns if operation.complete_ns is None else operation.complete_ns
    return any(begin <= end_ns and operation.invoke_ns <= end for begin, end in given.disturbances.spans)


def _stalled(given: Given) -> Iterator[Breach]:
    """By the longest time between two hindrances in which an operation waited."""
    for operation in given.history.operations:
        if operation.transaction is None or operation.complete_ns is None:
            continue
        waited_ns = max(
            _calm(given.disturbances.hindrances, operation.invoke_ns, operation.complete_ns), default=0
        )
        under_way = [
            each
            for each in given.history.operations
            if each.transaction is not None and each.invoke_ns < operation.complete_ns
            if each.type != "ok" or (each.complete_ns or 0) > operation.invoke_ns
        ]
        if waited_ns > given.agrees_within_ns + len(under_way) * given.executes_within_ns:
            yield Breach(
                rule="stalled",
                summary=f"{operation.transaction} took {_ms(waited_ns)} ms to be executed "
                "while nothing hindered the masters",
                events=operation.events,
            )


def _calm(spans: Sequence[Span], begin_ns: int, end_ns: int) -> Iterator[int]:
    """How long each part of this time is outside of the spans."""
    for begin, end in spans:
        if end < begin_ns:
            continue
        if begin > end_ns:
            break
        yield max(0, begin - begin_ns)
        begin_ns = end
    yield max(0, end_ns - begin_ns)


def _left(given: Given, found: Report) -> Iterator[Breach]:
    history = given.history
    if history.settled is True or given.missing:
        return
    told_ns = _gave_up_ns(history)
    fault_ns = max((end for _, end in given.disturbances.spans), default=0)
    asked_ns = max((each.invoke_ns for each in history.operations if each.invoke_ns < told_ns), default=0)
    quiet_ns, last = told_ns - max(fault_ns, asked_ns), "fault" if fault_ns > asked_ns else "request"
    if quiet_ns < given.agrees_within_ns:
        found.lacks["drained"] = (
            "the masters were not seen to be quiet and equal, and had not long to come to it"
        )
        return
    ends = given.walks()
    for walk in ends.values():
        while walk.next is not None:
            walk.step()
    waiting = [
        (name, master)
        for name in given.made
        for master, walk in ends.items()
        if name not in walk.replay.place
    ]
    if not waiting:
        found.lacks["drained"] = (
            "the masters were not seen to be quiet and equal, although nothing waits in a log"
        )
    has_added = any(isinstance(event, Added) for log in given.logs.values() for event in log.events)
    for name, master in waiting:
        yield Breach(
            rule="never-drained",
            summary=f"transaction {name} is not synchronised on {master}, {_ms(quiet_ns)} ms after the last {last}",
            records=[(given.made[name].ref.origin, given.made[name].place)],
            facts={"id": name, "master": master},
            price=UNREPAIRED if given.strategy == "none" and given.has_split else "",
            end_ns=told_ns,
            how="rounds had added others" if has_added else "no round ever added anything",
        )


def _gave_up_ns(history: History) -> int:
    """When the harness no longer waited for masters that are quiet and equal; 0 if it never did."""
    told = (event for event in history.events if event.process == "harness" and event.f == "settled")
    return max((event.time_ns for event in told), default=0)


def _pauses(given: Given, submitted: Sequence[Operation]) -> Iterator[Breach]:
    """Times without an answer that a fault explains: no violation, and worth to be known."""
    ends = sorted(each.complete_ns for each in submitted if each.complete_ns is not None)
    for begin, end in pairwise(ends):
        cause = given.disturbances.cause(begin, end) if end - begin > STALL_NS else ""
        if cause:
            yield Breach(
                rule="stalled",
                summary=f"nothing was executed for {_ms(end - begin)} ms from {_ms(begin)} ms on, because of {cause}",
                price="documented: rounds wait for masters that are away",
            )
