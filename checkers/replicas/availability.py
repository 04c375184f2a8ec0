"""Availability: for how long, where and under which faults the cluster did not serve. Never invalid by itself.

A *gap* of a node is a time in which clients asked it and no operation ended ok: from the first invocation (or the last
ok, if an operation was open then) to the next ok, or to the end of the last operation. Gaps shorter than a heartbeat
are not reported. An operation that waits for a quorum makes a gap although the node is up: what counts is what a
client observes.

All times are seconds or milliseconds since the run began, as their names say. Faults count where they surely were
in effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy

from checkers.history.columns import TYPES
from checkers.history.faults import Span
from checkers.history.history import History
from checkers.history.line_kernels import FAIL, INFO, OK
from checkers.history.operation import SUBMITTED
from checkers.history.spans import are_within, united
from checkers.history.values import many
from checkers.verdict import Verdict

Array = Any  # numpy's
NAME = "availability"
SECOND_NS = 1_000_000_000
HEARTBEAT_NS = 300_000_000
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
WINDOWS_MAX = 1_000_000  # seconds: 11 days
AT_ONCE = 1 << 18  # questions that are put in order with the answers at a time
_ASKED, _UNSERVED, _SERVED = range(3)
"""Events at a moment. At equal times, invocations come first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Operations as arrays of one length: when they were asked and when they were over (-1: never), OK, FAIL or INFO,
    whether the store did its work, and the words of node and f as places in `words`."""

    begun_ns: Array
    ended_ns: Array
    type: Array
    is_served: Array
    node: Array
    f: Array
    words: Sequence[str | None]

    @classmethod
    def of_load(cls, history: History) -> Asked:
        """The operations of the load."""
        columns = history.columns
        count = int((~columns.is_final).sum())
        is_first = not columns.is_final[:count].any()  # as a rule: nothing needs to be copied then
        at: Any = slice(count) if is_first else numpy.flatnonzero(~columns.is_final)
        type_ = columns.type[at]
        is_submitted = (type_ == INFO) & (columns.error[at] == columns.code(SUBMITTED))
        return cls(
            columns.invoke_ns[at],
            columns.complete_ns[at],
            type_,
            (type_ == OK) | is_submitted,
            columns.node[at],
            columns.f[at],
            columns.words,
        )

    def __len__(self) -> int:
        return len(self.begun_ns)

    def count(self, how: int) -> int:
        """How many operations ended so."""
        return int((self.type == how).sum())

    def under(self, spans: Sequence[Span]) -> Array:
        """By operation, whether it ended within one of the spans, which are as `united` gives them."""
        return are_within(self.ended_ns, spans)

    def of_node(self, code: int) -> Asked:
        at = numpy.flatnonzero(self.node == code)
        columns = ("begun_ns", "ended_ns", "type", "is_served", "node", "f")
        return replace(self, **{name: getattr(self, name)[at] for name in columns})

    def codes(self, column: Array) -> list[int]:
        """The codes of the words that a column has, in the order of the words."""
        present = numpy.flatnonzero(numpy.bincount(column)).tolist()
        return sorted((code for code in present if self.words[code] is not None), key=self.words.__getitem__)  # type: ignore[arg-type]  # None is left out


def check(history: History) -> Verdict:
    """The gaps, rates and latencies of the answers to clients. `details`:

    - gaps: node → [{"from_s", "to_s"}], longest_gap: {"node", "from_s", "to_s", "ms"} or None
    - cluster_gaps: the same for all nodes together (somewhere a question ended ok)
    - per_second: {"ok": [...], "fail": [...], "info": [...]}, windows of 1 s from the run's beginning; empty if there
      are more than WINDOWS_MAX, as in a record of another tool with the time of day
    - latency_ms: f → {"no fault" | "fault": {"p50", "p95", "p99", "max", "count"}} of what ended ok
    - ok, fail, info, ok_under_fault: counts (phase load); ok_under_fault: ended while a fault that took effect was on
    - unserved_ms: node → sum of its gaps
    """
    asked = Asked.of_load(history)
    if not len(asked):
        return Verdict(checker=NAME, result="unknown", summary="no client asked anything", model="")
    least_ns = history.header.heartbeat_ns or HEARTBEAT_NS
    faults = united(span for fault in history.faults if (span := fault.sure) is not None)
    gaps = {
        str(asked.words[code]): gaps_of(asked.of_node(code), least_ns) for code in asked.codes(asked.node)
    }
    together = gaps_of(asked, least_ns)
    is_ok, is_under_fault = asked.type == OK, asked.under(faults)
    details: dict[str, Any] = {
        **{TYPES[how]: asked.count(how) for how in (OK, FAIL, INFO)},
        "ok_under_fault": int((is_ok & is_under_fault).sum()),
        "gaps": {node: [_seconds(gap) for gap in node_gaps] for node, node_gaps in gaps.items()},
        "unserved_ms": {
            node: sum(end - start for start, end in node_gaps) / 1e6 for node, node_gaps in gaps.items()
        },
        "cluster_gaps": [_seconds(gap) for gap in together],
        "longest_gap": _longest(gaps),
        "longest_cluster_gap_ms": max((end - start for start, end in together), default=0) / 1e6,
        "per_second": _per_second(asked),
        "latency_ms": _latencies(asked, is_ok, is_under_fault),
    }
    return Verdict(checker=NAME, result="valid", summary=_summary(details), model="", details=details)


def gaps_of(asked: Asked, least_ns: int) -> list[Span]:
    """The spans of at least `least_ns` with open operations of which none ended ok. `asked`: in order of invocation."""
    if not len(asked):
        return []
    begun_ns = asked.begun_ns
    end_ns = int(max(asked.ended_ns.max(), begun_ns[asked.ended_ns < 0].max(initial=0)))
    gaps = _Gaps(least_ns, end_ns)
    open_ns, are_served = numpy.empty(0, dtype=numpy.int64), numpy.empty(0, dtype=bool)
    first = 0
    while first < len(begun_ns):
        last, until_ns = len(begun_ns), end_ns
        if first + AT_ONCE < last:  # all that happens at one time stays together
            last = int(numpy.searchsorted(begun_ns, begun_ns[first + AT_ONCE], "right"))
            until_ns = int(begun_ns[last - 1]) if last < len(begun_ns) else end_ns
        asked_here = slice(first, last)
        ended_ns = asked.ended_ns[asked_here]
        open_ns = numpy.concatenate((open_ns, numpy.where(ended_ns < 0, end_ns, ended_ns)))
        are_served = numpy.concatenate((are_served, asked.is_served[asked_here]))
        are_over = open_ns <= until_ns
        gaps.take(begun_ns[asked_here], open_ns[are_over], are_served[are_over])
        open_ns, are_served = open_ns[~are_over], are_served[~are_over]
        first = last
    return gaps.spans


class _Gaps:
    """The gaps, from invocations and answers that come in order, a batch at a time."""

    def __init__(self, least_ns: int, end_ns: int) -> None:
        self.spans: list[Span] = []
        self._least_ns = least_ns
        self._end_ns = end_ns
        self._waiting = 0
        """Clients that wait for an answer."""
        self._since_ns: int | None = None
        """Since when no client was served; None: since the next invocation."""

    def take(self, begun_ns: Array, ended_ns: Array, is_served: Array) -> None:
        """The next invocations and answers. All of one moment come together."""
        times_ns = numpy.concatenate((begun_ns, ended_ns))
        moments = numpy.concatenate(
            (numpy.full(len(begun_ns), _ASKED), numpy.where(is_served, _SERVED, _UNSERVED))
        )
        order = numpy.lexsort((moments, times_ns))
        times_ns, moments = times_ns[order], moments[order]
        waiting = self._waiting + numpy.cumsum(numpy.where(moments == _ASKED, 1, -1))
        is_over = moments == _SERVED
        is_over[-1] |= bool(times_ns[-1] == self._end_ns)  # no client waits any more
        since_ns = int(times_ns[0]) if self._since_ns is None else self._since_ns
        over = numpy.flatnonzero(is_over)
        if len(over):
            # After an answer another client still waits, or no client waits until the next invocation.
            since = numpy.where(waiting[over] > 0, over, over + 1)
            starts_ns = numpy.concatenate(([since_ns], times_ns[since[:-1]]))
            gaps = numpy.flatnonzero(times_ns[over] - starts_ns >= self._least_ns)
            self.spans += zip(starts_ns[gaps].tolist(), times_ns[over][gaps].tolist(), strict=True)
            last = int(since[-1])
            self._since_ns = int(times_ns[last]) if last < len(times_ns) else None
        else:
            self._since_ns = since_ns
        self._waiting = int(waiting[-1])


def _seconds(gap: Span) -> dict[str, float]:
    return {"from_s": gap[0] / SECOND_NS, "to_s": gap[1] / SECOND_NS}


def _longest(gaps: dict[str, list[Span]]) -> dict[str, Any] | None:
    every = [
        (end - start, node, (start, end)) for node, node_gaps in gaps.items() for start, end in node_gaps
    ]
    if not every:
        return None
    length_ns, node, gap = max(every)
    return {"node": node, **_seconds(gap), "ms": length_ns / 1e6}


def _per_second(asked: Asked) -> dict[str, list[int]]:
    """How many operations ended in each second; one that never ended counts where it was invoked."""
    times_ns: Array = numpy.where(asked.ended_ns < 0, asked.begun_ns, asked.ended_ns)
    seconds = times_ns // SECOND_NS
    windows = 1 + int(seconds.max())
    known, windows = (seconds, windows) if windows <= WINDOWS_MAX else (seconds[:0], 0)
    return {
        TYPES[how]: numpy.bincount(known[asked.type[: len(known)] == how], minlength=windows).tolist()
        for how in (OK, FAIL, INFO)
    }


def _latencies(asked: Asked, is_ok: Array, is_under_fault: Array) -> dict[str, dict[str, Any]]:
    """The latencies of operations that ended ok, by f, and by whether a fault was on when they ended."""
    took_ns = asked.ended_ns - asked.begun_ns
    by_f: dict[str, dict[str, Any]] = {}
    for code in asked.codes(asked.f):
        these = is_ok & (asked.f == code)
        groups = {"fault": took_ns[these & is_under_fault], "no fault": took_ns[these & ~is_under_fault]}
        quantiles = {when: quantiles_ms(group) for when, group in groups.items() if len(group)}
        if quantiles:
            by_f[str(asked.words[code])] = quantiles
    return by_f


def quantiles_ms(latencies_ns: Array) -> dict[str, float]:
    """By quantile the value that this share of all did not exceed (nearest rank); and the count."""
    ordered = numpy.sort(latencies_ns)
    quantiles = {
        name: int(ordered[ceil(share * len(ordered)) - 1]) / 1e6 for name, share in QUANTILES.items()
    }
    return {**quantiles, "count": len(ordered)}


def _summary(details: dict[str, Any]) -> str:
    longest = details["longest_gap"]
    asked = details["ok"] + details["fail"] + details["info"]
    ok, under_fault = details["ok"], details["ok_under_fault"]
    served = f"{many(ok, 'operation')} of {asked} ended ok, {under_fault} of them under a fault"
    if longest is None:
        return served
    return f"{served}; the longest gap was {longest['ms']:.0f} ms at {longest['node']}"
