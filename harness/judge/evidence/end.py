"""How a run ended: broken off, interrupted, with a torn record; with nodes that were at rest, or had stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History
from checkers.history.members import is_settled_at_the_end
from checkers.history.rest import Rest, at_rest
from harness.judge.case import Case

STALLED_MS_MAX = 1_000.0


@dataclass(frozen=True, slots=True)
class End:
    """`missing`: why the record is not whole; `missing_rest`: why its end is inconclusive; a sentence each.

    `waited_in_vain`: a sentence for nodes that never become equal; `orphans`: one for each process left behind.
    """

    facts: Mapping[str, Any]
    missing: Sequence[str]
    missing_rest: Sequence[str]
    waited_in_vain: Sequence[str]
    orphans: Sequence[str]


def end_of(case: Case, *, may_differ: bool) -> End:
    """`may_differ`: nodes stopped for good, which the promise allows, so they may differ at the end."""
    history = case.history
    not_here = [event.value for event in history.told("harness", "not-here") if isinstance(event.value, dict)]
    orphans = [
        {"node": event.node, "what": event.value.get("what")}
        for event in history.told("harness", "orphans")
        if isinstance(event.value, dict)
    ]
    rest = at_rest(history)
    return End(
        {"not_here": not_here, "orphans": orphans, "stalls": len(history.stalls), "torn": history.torn},
        list(_missing(case)),
        [*_missing_rest(case), *(_unrest(case, rest) if not may_differ else ())],
        list(_waited_in_vain(history, rest)),
        [
            f"processes of {orphan['node']} outlived the one that was started, and were killed: {orphan['what']}"
            for orphan in orphans
        ],
    )


def _missing(case: Case) -> Iterator[str]:
    if case.why_broken_off is not None:
        yield case.why_broken_off
    if case.was_interrupted:
        at_violation = any(event.value for event in case.history.told("harness", "interrupted"))
        yield "the run was ended at its first violation" if at_violation else "the run was interrupted"
    if case.history.torn is not None:
        yield f"the record is torn: {case.history.torn}"


def _missing_rest(case: Case) -> Iterator[str]:
    if not is_settled_at_the_end(case.history):
        yield "not all nodes were seen to agree on the members in the end"
    worst_ms = max((stall.stalled_ms for stall in case.history.stalls), default=0.0)
    if worst_ms > STALLED_MS_MAX:
        yield f"the harness itself stood still for {worst_ms:.0f} ms"
    if case.is_whole:
        yield from case.workload.missing(case.history)


def _unrest(case: Case, rest: Rest) -> Iterator[str]:
    if not case.is_whole or case.history.settled or rest.is_quiet:
        return
    reasons = [
        *rest.awaited,
        *([f"{', '.join(rest.untold)}: no position is known"] if rest.untold else []),
    ]
    why = f": {'; '.join(reasons)}" if reasons else ""
    yield f"the nodes were not quiet and equal in time for the final reads (--settle-timeout waits longer){why}"


def _waited_in_vain(history: History, rest: Rest) -> Iterator[str]:
    if rest.is_quiet and rest.still_ns is not None:
        positions = {state.node: state.status.get("vclock") for state in history.states}
        where = ", ".join(
            f"{node} {positions[node]}" for node in sorted(positions) if positions[node] is not None
        )
        yield f"nothing moved for {rest.still_ns / 1e9:.0f} s, and the nodes had not settled: positions {where}"


def stopped_for_good(case: Case) -> tuple[str, ...]:
    """A sentence for each node that no longer follows a peer at the end, because their histories contradict."""
    reports = case.system.reports
    newest = {state.node: state.status for state in case.history.states}
    return tuple(
        f"{node} stopped following {peer}: {why}"
        for node, status in sorted(newest.items())
        for peer, why in sorted(reports.stopped(status).items())
    )
