"""Availability: for how long, where and under which faults the cluster did not serve. Never invalid by itself.

A *gap* of a node is a time in which it was asked and nothing it was asked ended ok: from the first question (or
the last ok, if a question was open then) to the next ok, or to the end of the last question. Gaps shorter than a
heartbeat are not reported. A question that waits for a quorum makes a gap although the node is up: what counts is
what a client saw.

All times are seconds or milliseconds since the run began, as their names say. Faults count where they surely were
in effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from checkers.history.faults import Span
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.spans import united, within
from checkers.verdict import Verdict

NAME = "availability"
SECOND_NS = 1_000_000_000
HEARTBEAT_NS = 300_000_000
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}


def check(history: History) -> Verdict:
    """The gaps, rates and latencies of the answers to clients. `details`:

    - gaps: node → [{"from_s", "to_s"}], longest_gap: {"node", "from_s", "to_s", "ms"} or None
    - cluster_gaps: the same for all nodes together (somewhere a question ended ok)
    - per_second: {"ok": [...], "fail": [...], "info": [...]}, windows of 1 s from the run's beginning
    - latency_ms: f → {"no fault" | "fault": {"p50", "p95", "p99", "max", "count"}} of what ended ok
    - ok, fail, info, ok_under_fault: counts (phase load); ok_under_fault: ended while a fault that took effect was on
    - unserved_ms: node → sum of its gaps
    """
    asked = [operation for operation in history.operations if operation.phase == "load"]
    if not asked:
        return Verdict(checker=NAME, result="unknown", summary="no client asked anything", model="")
    least_ns = history.header.heartbeat_ns or HEARTBEAT_NS
    faults = united(span for fault in history.faults if (span := fault.sure) is not None)
    gaps = {node: gaps_of(group, least_ns) for node, group in _by_node(asked).items()}
    together = gaps_of(asked, least_ns)
    counts = {
        outcome: sum(operation.type == outcome for operation in asked) for outcome in ("ok", "fail", "info")
    }
    details: dict[str, Any] = {
        **counts,
        "ok_under_fault": sum(
            operation.type == "ok" and within(operation.complete_ns or 0, faults) for operation in asked
        ),
        "gaps": {node: [_seconds(gap) for gap in found] for node, found in gaps.items()},
        "unserved_ms": {node: sum(end - start for start, end in found) / 1e6 for node, found in gaps.items()},
        "cluster_gaps": [_seconds(gap) for gap in together],
        "longest_gap": _longest(gaps),
        "longest_cluster_gap_ms": max((end - start for start, end in together), default=0) / 1e6,
        "per_second": _per_second(asked),
        "latency_ms": _latencies(asked, faults),
    }
    return Verdict(checker=NAME, result="valid", summary=_summary(details), model="", details=details)


def gaps_of(operations: Sequence[Operation], least_ns: int) -> list[Span]:
    """When these were asked and none ended ok, for at least so long."""
    end_ns = max((operation.complete_ns or operation.invoke_ns for operation in operations), default=0)
    moments: list[tuple[int, int]] = []
    for operation in operations:
        moments.append((operation.invoke_ns, 0))
        moments.append((operation.complete_ns or end_ns, 2 if _was_served(operation) else 1))
    gaps: list[Span] = []
    open_count, since = 0, None
    for time_ns, what in sorted(moments):
        open_count += 1 if what == 0 else -1
        if since is None:
            since = time_ns if open_count else None
        elif what == 2 or (open_count == 0 and time_ns == end_ns):
            if time_ns - since >= least_ns:
                gaps.append((since, time_ns))
            since = time_ns if open_count else None
    return gaps


def _was_served(operation: Operation) -> bool:
    """Answered by a store that does its work; the answer to a submitted write is not an acknowledgement, but counts."""
    return operation.type == "ok" or operation.is_submitted


def _by_node(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {}
    for operation in operations:
        if operation.node is not None:
            groups.setdefault(operation.node, []).append(operation)
    return dict(sorted(groups.items()))


def _seconds(gap: Span) -> dict[str, float]:
    return {"from_s": gap[0] / SECOND_NS, "to_s": gap[1] / SECOND_NS}


def _longest(gaps: dict[str, list[Span]]) -> dict[str, Any] | None:
    every = [(end - start, node, (start, end)) for node, found in gaps.items() for start, end in found]
    if not every:
        return None
    length_ns, node, gap = max(every)
    return {"node": node, **_seconds(gap), "ms": length_ns / 1e6}


def _per_second(operations: Sequence[Operation]) -> dict[str, list[int]]:
    """How many ended in each second; what never ended counts where it was asked."""
    ends = [
        (operation.type, (operation.complete_ns or operation.invoke_ns) // SECOND_NS)
        for operation in operations
    ]
    windows = 1 + max(second for _, second in ends)
    series = {outcome: [0] * windows for outcome in ("ok", "fail", "info")}
    for outcome, second in ends:
        series[outcome][second] += 1
    return series


def _latencies(operations: Sequence[Operation], faults: Sequence[Span]) -> dict[str, dict[str, Any]]:
    """Of what ended ok, by f, and by whether a fault was on when it ended."""
    latencies: dict[str, dict[str, list[int]]] = {}
    for operation in operations:
        if operation.type == "ok" and operation.complete_ns is not None:
            when = "fault" if within(operation.complete_ns, faults) else "no fault"
            group = latencies.setdefault(operation.f, {}).setdefault(when, [])
            group.append(operation.complete_ns - operation.invoke_ns)
    return {
        f: {when: quantiles_ms(group) for when, group in sorted(by_when.items())}
        for f, by_when in sorted(latencies.items())
    }


def quantiles_ms(latencies_ns: Sequence[int]) -> dict[str, float]:
    """The value that this share of all did not exceed (nearest rank), and how many there were."""
    ordered = sorted(latencies_ns)
    found = {name: ordered[ceil(share * len(ordered)) - 1] / 1e6 for name, share in QUANTILES.items()}
    return {**found, "count": len(ordered)}


def _summary(details: dict[str, Any]) -> str:
    longest = details["longest_gap"]
    asked = details["ok"] + details["fail"] + details["info"]
    served = (
        f"{details['ok']} of {asked} operations ended ok, {details['ok_under_fault']} of them under a fault"
    )
    if longest is None:
        return served
    return f"{served}; the longest gap was {longest['ms']:.0f} ms at {longest['node']}"
