"""Whether enough of the load of a run was answered. The expected numbers follow from the run itself.

| answers | expected at least |
|---|---|
| all | `ENOUGH`, or a share of the operations that the plan asks for where that is less; and what the plan says |
| without a fault | in each third of the load, a share of what the best quiet time of the run comes to |
| to operations without a fault | a share |
| under faults | a share of what the quiet times come to on average, while faults leave nodes that can serve |
| of each kind (reads, writes, …) | a share of what clients asked |
| at any time | some: no third of the load passes without one, of all kinds or of a single one |

The plan's rate is not a measure: on a busy machine a correct store serves a fifth of it. A standstill shows against the
pace of the store before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy

from checkers.history.columns import TYPES
from checkers.history.faults import CUTS, FaultSpan, Span
from checkers.history.history import History
from checkers.history.line_kernels import FAIL, INFO, OK, OTHER
from checkers.history.operation import NOTHING_THERE, SUBMITTED, Operation
from checkers.history.spans import are_within, united
from checkers.replicas.availability import Asked
from harness.faults.held import SCENIC
from harness.faults.node_options import Decisive
from harness.faults.overlap import FAILS_WRITES, STOPS_PROCESSES
from harness.judge.case import Case
from harness.judge.evidence.faults import was_directed
from harness.plan.plan import SECOND_NS, SUBMITTING, Plan
from harness.workloads.failing import AS_IT_HAD_TO
from harness.workloads.workload import Workload

Array = Any  # numpy's
ENOUGH = 250
"""Operations that suffice for a verdict, in a plan that asks for many more."""
LEAST_SHARE = 1 / 20
"""The share of the operations asked for that must succeed, however long the run is."""
USEFUL_SHARE = 1 / 3
"""The share of the operations asked for that must succeed, in a plan that asks for few; and of those that clients asked
while nothing was wrong."""
USEFUL_SHARE_OF_PILED_UP = 1 / 8
"""The same if most quiet time is recovery: if faults overlap, nodes die at the worst moment, or the store needs every
node."""
SHARE_OF_PACE = 1 / 8
"""The share of its best pace that a store must keep without faults, in each third of the load; the rest is recovery. A
store that answers one operation in ten does not keep it."""
SHARE_OF_PACE_OF_PILED_UP = 1 / 20
"""The same where most quiet time is recovery."""
SHARE_OF_PACE_UNDER_FAULT = 1 / 20
"""The share of its mean quiet pace that a store must keep under faults."""
ENOUGH_UNDER_FAULT = 10
"""The least number of operations under faults, however slow the pace."""
SHARE_OF_A_KIND = 1 / 10
"""The share of each kind of operation that must be answered; one at least where clients asked for `SOME` or more."""
SOME = 5
THIRD = 1 / 3
"""A standstill of this share of the load is too long."""
ASKED_IN_VAIN = 20
"""So many unanswered operations of a kind show that the store does not answer, and not that no client asked."""
PACE_NS = SECOND_NS // 2
"""A shorter quiet time shows no pace."""
ANSWERS = ("mismatch", "empty", NOTHING_THERE, SUBMITTED, AS_IT_HAD_TO)
"""Errors that are answers: the store refused the operation, and said so."""


@dataclass(frozen=True, slots=True)
class Load:
    """`missing`: a sentence for each part of the load with too few answers; `missing_under_faults`: under faults."""

    facts: Mapping[str, Any]
    missing: Sequence[str]
    missing_under_faults: Sequence[str]


def load_of(case: Case) -> Load:
    """The operations of clients, and their outcomes."""
    plan, history = case.plan, case.history
    load = Asked.of_load(history)
    # Under faults: while they surely were in effect. Quiet (`Quiet`): outside of all. The rest counts for neither.
    in_effect = united(sure for fault in history.faults if (sure := fault.sure) is not None)
    asked = int(plan.rate * plan.time_limit_s) if plan.drawn is None else len(plan.drawn.operations)
    counts = {TYPES[how]: load.count(how) for how in (OK, FAIL, INFO)}
    counts["ok_under_fault"] = int((load.under(in_effect) & (load.type == OK)).sum())
    if plan.submits:  # answered, but not acknowledged: load all the same
        submitted = load.is_served & (load.type == INFO)
        counts["submitted"] = int(submitted.sum())
        counts["submitted_under_fault"] = int((submitted & load.under(in_effect)).sum())
    answers = answers_of(case.workload, history, plan)
    quiet = Quiet.of(answers, history.faults)
    missing = list(_missing(plan, history, answers, quiet, counts, asked))
    if counts.get("submitted") == 0:
        missing.append("no write was answered as submitted, although some were to be")
    return Load(
        {"asked": asked, **counts, "skipped": _skipped(history), "quiet": quiet.to_json()},
        missing,
        list(_missing_under_faults(plan, history, quiet, counts, asked)),
    )


def _skipped(history: History) -> int:
    """The number of operations that were skipped because their worker was late; 0 for old records, which do not say."""
    values = (event.value for event in history.told("harness", "skipped"))
    counts = (value.get("count") for value in values if isinstance(value, dict))
    return sum(count for count in counts if isinstance(count, int))


@dataclass(frozen=True, slots=True)
class Answers:
    """The operations of the load as arrays of one length: when each began and ended (-1: never), whether the store
    answered (`is_told`), and its kind as a place in `kinds`. `operations` gives those at some places as values."""

    begun_ns: Array
    ended_ns: Array
    is_told: Array
    kind: Array
    kinds: Sequence[str]
    operations: Callable[[Array], Sequence[Operation]]

    def asked_in(self, spans: Sequence[Span]) -> int:
        return int(are_within(self.begun_ns, spans).sum())

    def told_in(self, spans: Sequence[Span]) -> int:
        return int((are_within(self.ended_ns, spans) & self.is_told).sum())

    @property
    def span(self) -> Span:
        """From the first invocation to the last invocation or completion."""
        if not len(self.begun_ns):
            return 0, 0
        return int(self.begun_ns.min()), int(max(self.begun_ns.max(), self.ended_ns.max()))


def answers_of(workload: Workload, history: History, plan: Plan) -> Answers:
    """The load in columns. Operations that are alike share a kind; those answered at once are kinds of their own."""
    columns = history.columns
    of_load = numpy.flatnonzero(~columns.is_final)
    is_alone = numpy.full(len(columns), plan.submits) | (columns.kind == OTHER)
    alone = of_load[is_alone[of_load]]
    number, firsts = columns.alike(~columns.is_final & ~is_alone)
    number[alone] = len(firsts) + numpy.arange(len(alone))
    places = numpy.concatenate((numpy.array(firsts, dtype=numpy.int64), alone))
    examples = history.at(places)
    names = [
        workload.kind(operation) + (", answered at once" if operation.wait in SUBMITTING else "")
        for operation in examples
    ]
    in_order = dict.fromkeys(names[at] for at in numpy.argsort(places).tolist())
    kinds = {name: place for place, name in enumerate(in_order)}
    kind_of = numpy.array([kinds[name] for name in names], dtype=numpy.int64)
    codes = [columns.code(word) for word in ANSWERS if word in columns.words]
    is_told = (columns.type[of_load] == OK) | numpy.isin(columns.error[of_load], codes)
    return Answers(
        columns.invoke_ns[of_load],
        columns.complete_ns[of_load],
        is_told,
        kind_of[number[of_load]] if names else numpy.zeros(0, dtype=numpy.int64),
        tuple(kinds),
        lambda places: history.at(of_load[places]),
    )


@dataclass(frozen=True, slots=True)
class Quiet:
    """The times of the load without a fault: their length, the operations that began in them (`asked`), the answers in
    them (`told`), and the best answers per second."""

    spans: Sequence[Span]
    seconds: float
    asked: int
    told: int
    pace_per_s: float

    @classmethod
    def of(cls, answers: Answers, faults: Sequence[FaultSpan]) -> Quiet:
        begin_ns, end_ns = answers.span
        noisy = united((fault.start_ns, end_ns if fault.end_ns is None else fault.end_ns) for fault in faults)
        spans = _without((begin_ns, end_ns), noisy)
        # A run that is all faults has its pace, too, or nothing could be asked of it.
        long = [span for span in spans if span[1] - span[0] >= PACE_NS] or [(begin_ns, end_ns)]
        told_ns = numpy.sort(answers.ended_ns[answers.is_told])
        pace = max(
            (_count(told_ns, span) * SECOND_NS / (span[1] - span[0]) for span in long if span[1] > span[0]),
            default=0.0,
        )
        return cls(spans, _seconds(spans), answers.asked_in(spans), answers.told_in(spans), pace)

    @property
    def mean_per_s(self) -> float:
        return self.told / self.seconds if self.seconds else self.pace_per_s

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 3),
            "asked": self.asked,
            "told": self.told,
            "pace_per_s": round(self.pace_per_s, 1),
        }


def _missing(
    plan: Plan, history: History, answers: Answers, quiet: Quiet, counts: Mapping[str, int], asked: int
) -> Iterator[str]:
    ok, submitted = counts["ok"], counts.get("submitted", 0)
    is_piled_up = _is_piled_up(plan, history)
    share = USEFUL_SHARE_OF_PILED_UP if is_piled_up else USEFUL_SHARE
    wanted = max(_share(asked, LEAST_SHARE), min(_share(asked, share), ENOUGH), plan.least_ok)
    if ok == 0:
        yield "no operation succeeded"
    elif ok + submitted < wanted:
        too = f" and {submitted} were submitted" if plan.submits else ""
        yield f"too little load: {ok} operations succeeded{too}, expected at least {wanted}"
    if slow := _slowest_third(answers, quiet, SHARE_OF_PACE_OF_PILED_UP if is_piled_up else SHARE_OF_PACE):
        span, answered, wanted = slow
        yield (
            f"too little load without faults {_from_to(span)}: {answered} answers, expected at least {wanted}; "
            f"at its best the store gave {quiet.pace_per_s:.0f} a second"
        )
    wanted = int(share * quiet.asked)
    if ok and quiet.told < wanted:
        few = f"{quiet.told} answers to {quiet.asked} operations, expected at least {wanted}"
        yield f"too little load without faults: {few}"
    yield from _missing_kinds(answers)
    if ok:
        yield from _standstills(plan, history, answers)


def _missing_under_faults(
    plan: Plan, history: History, quiet: Quiet, counts: Mapping[str, int], asked: int
) -> Iterator[str]:
    if not history.faults:
        return
    least = 1 if plan.drawn is None else 0  # a plan that was cut down to a few operations may have none
    are_directed = all(map(was_directed, history.faults))
    wanted = least if are_directed else _wanted_under_faults(plan, history, quiet, asked, least)
    if counts["ok_under_fault"] + counts.get("submitted_under_fault", 0) < wanted:
        yield (
            f"too little load under faults: {counts['ok_under_fault']} operations succeeded while one was active, "
            f"expected at least {wanted}"
        )


def _wanted_under_faults(plan: Plan, history: History, quiet: Quiet, asked: int, least: int) -> int:
    """The number of operations that must succeed under faults; at least `least` if some fault leaves a node."""
    nodes, decisive = history.header.nodes, plan.expectations.decisive
    if not any(leaves_a_node(fault, nodes, decisive) for fault in history.faults):
        return 0
    sure = united(span for fault in history.faults if (span := fault.sure) is not None)
    idle = united(_idle(plan, history))
    seconds = sum(_seconds(_without(span, idle)) for span in sure)
    by_pace = int(SHARE_OF_PACE_UNDER_FAULT * quiet.mean_per_s * seconds)
    serves_little = takes_nodes_down(history) or plan.expectations.needs_every_node or seconds < 1
    enough = 0 if serves_little else min(_share(asked, LEAST_SHARE), ENOUGH_UNDER_FAULT)
    return max(least, by_pace, enough)


def leaves_a_node(fault: FaultSpan, nodes: Sequence[str], decisive: Decisive) -> bool:
    """Whether a node can serve during the fault."""
    if decisive.who_leads(fault.asked.get("options", {})):
        return False  # elections begin anew
    stops = fault.does in STOPS_PROCESSES | {"oom"}
    return not (stops and nodes and {*nodes} <= {*fault.nodes})


def takes_nodes_down(history: History) -> bool:
    """Whether faults leave little time for load: whole nodes recover from all of them, or the only node stops."""
    does = {fault.does for fault in history.faults}
    alone = len(history.header.nodes) == 1 and bool(does & (STOPS_PROCESSES | {"oom"}))
    return bool(does) and (alone or does <= {"power", "damage"})


def _is_piled_up(plan: Plan, history: History) -> bool:
    """Whether nearly all time is under faults or recovery from them."""
    comes_together = bool({*SCENIC} & {*plan.faults}) or plan.overlap > 1
    return comes_together or takes_nodes_down(history) or plan.expectations.needs_every_node


def _idle(plan: Plan, history: History) -> Iterator[Span]:
    """The spans in which a fault left no node that could serve."""
    nodes, expected = history.header.nodes, plan.expectations
    takes_one_away = (
        STOPS_PROCESSES | FAILS_WRITES | CUTS | {"oom"} if expected.needs_every_node else frozenset()
    )
    for fault in history.faults:
        if fault.end_ns is not None and (
            fault.does in takes_one_away or not leaves_a_node(fault, nodes, expected.decisive)
        ):
            yield fault.start_ns, fault.end_ns


def _slowest_third(answers: Answers, quiet: Quiet, share: float) -> tuple[Span, int, int] | None:
    """(span, answers, answers wanted) of the slowest third of the load; None if each third keeps that share."""
    begin_ns, end_ns = answers.span
    length_ns = int(THIRD * (end_ns - begin_ns))
    told_ns = numpy.sort(answers.ended_ns[answers.is_told])
    begins = [begin for begin, _ in quiet.spans if begin + length_ns < end_ns] + [end_ns - length_ns]
    slow: list[tuple[float, Span, int, int]] = []
    for third in ((begin, begin + length_ns) for begin in begins):
        parts = _within(third, quiet.spans)
        if (seconds := _seconds(parts)) * SECOND_NS >= PACE_NS:
            answered = sum(_count(told_ns, part) for part in parts)
            if answered < (wanted := int(share * quiet.pace_per_s * seconds)):
                slow.append((answered / wanted, third, answered, wanted))
    return min(slow)[1:] if slow else None


def _missing_kinds(answers: Answers) -> Iterator[str]:
    """A sentence for each kind with too few answers: a store that refuses all writes would pass by its reads alone."""
    for name, number in sorted(zip(answers.kinds, range(len(answers.kinds)), strict=True)):
        is_one = answers.kind == number
        count, answered = int(is_one.sum()), int((is_one & answers.is_told).sum())
        wanted = max(int(count * SHARE_OF_A_KIND), int(count >= SOME))
        if answered < wanted:
            few = f"too few answers to {name}: {answered} of {count} operations, {wanted} are needed"
            yield few + _most_frequent_error(answers.operations(numpy.flatnonzero(is_one)))


def _most_frequent_error(asked: Sequence[Operation]) -> str:
    """The most frequent error in words, which is often a defect of the client; "" if there is none."""
    errors = Counter(
        operation.error
        for operation in asked
        if operation.type != "ok" and operation.error not in (None, *ANSWERS)
    )
    return "".join(
        f"; most frequent error: {shorten(str(error), 90)} ({many} of {len(asked)})"
        for error, many in errors.most_common(1)
    )


def _standstills(plan: Plan, history: History, answers: Answers) -> Iterator[str]:
    """A sentence for a standstill of the whole load, else one for each kind that stands still."""
    idle = united(_idle(plan, history))
    every = numpy.ones(len(answers.begun_ns), dtype=bool)
    if span := _standstill(answers, every, idle):
        yield f"too little load: no operation was answered {_from_to(span)}"
        return
    for number, name in enumerate(answers.kinds):
        if span := _standstill(answers, answers.kind == number, idle):
            yield f"too few answers to {name}: there was none {_from_to(span)}"


def _standstill(answers: Answers, chosen: Array, idle: Sequence[Span]) -> Span | None:
    begin_ns, end_ns = answers.span
    told_ns = numpy.sort(answers.ended_ns[chosen & answers.is_told])
    edges = numpy.concatenate(([begin_ns], told_ns, [end_ns]))
    long = numpy.flatnonzero(numpy.diff(edges) > THIRD * (end_ns - begin_ns))
    for place in long.tolist():
        span = int(edges[place]), int(edges[place + 1])
        left = _seconds(_without(span, idle)) * SECOND_NS
        asked = int((chosen & (answers.begun_ns > span[0]) & (answers.begun_ns < span[1])).sum())
        if left > THIRD * (end_ns - begin_ns) and asked >= ASKED_IN_VAIN:
            return span
    return None


def _from_to(span: Span) -> str:
    return f"from {span[0] / 1e9:.1f} s to {span[1] / 1e9:.1f} s"


def _without(span: Span, others: Sequence[Span]) -> list[Span]:
    """The parts of a span outside of others, which are as `united` gives them."""
    parts, since = [], span[0]
    for start, end in others:
        if start > since and since < span[1]:
            parts.append((since, min(start, span[1])))
        since = max(since, end)
    if since < span[1]:
        parts.append((since, span[1]))
    return parts


def _within(span: Span, others: Sequence[Span]) -> list[Span]:
    """The parts of a span inside of others, which are disjoint and in order."""
    first = bisect_right(others, span[0], key=lambda other: other[1])
    last = bisect_left(others, span[1], key=lambda other: other[0])
    return [(max(start, span[0]), min(end, span[1])) for start, end in others[first:last]]


def _seconds(spans: Sequence[Span]) -> float:
    return sum(end - start for start, end in spans) / SECOND_NS


def _count(sorted_ns: Array, span: Span) -> int:
    first, last = numpy.searchsorted(sorted_ns, span, side="left")
    return int(last - first)


def _share(asked: int, share: float) -> int:
    """The share of the operations, at least 1."""
    return max(1, int(asked * share))
