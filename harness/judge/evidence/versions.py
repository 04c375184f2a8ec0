"""The versions in a run: which node ran which when, and whether an upgrade could be done at all.

A version that does not start on the other version's files has refused: that is a finding. The upgrade did not
happen, so the run is inconclusive about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checkers.history.faults import FaultSpan
from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.history.versions import version_spans
from harness.faults.rollout import UPGRADE
from harness.plan.plan import Plan

NAME = "upgrade"
UNTOLD = "(it tells none)"
STEPS = ("upgrade", "downgrade")
SHORT_OF_TIME = "a longer --time-limit has room for more steps"


def versions_json(history: History) -> list[dict[str, Any]]:
    """A row for each span in which a node reported one version; none if all nodes always reported the same."""
    spans = version_spans(history)
    if len({span.version for span in spans}) < 2:
        return []
    return [
        {
            "node": span.node,
            "version": span.version or UNTOLD,
            "from_ns": span.start_ns,
            "until_ns": span.end_ns,
        }
        for span in spans
    ]


def incompatible(history: History) -> tuple[str, ...]:
    """A sentence for each step in which a node did not start."""
    return tuple(
        f"incompatible: {fault.evidence.get('detail')}" for fault in history.faults if was_refused(fault)
    )


def was_refused(fault: FaultSpan) -> bool:
    """The node did not start in the version that the step would have brought it to."""
    return fault.does in STEPS and bool(fault.counters.get("refused_to_start"))


def missing_steps(plan: Plan, history: History) -> Iterator[str]:
    """The reasons why the run is inconclusive about an upgrade."""
    refused = [fault for fault in history.faults if was_refused(fault)]
    for fault in refused:
        yield f"the {fault.does} could not be done: {fault.evidence.get('detail')}"
    is_asked = UPGRADE in plan.faults or ("rolling" in plan.faults and plan.node_from is not None)
    if refused or plan.drawn is not None or not is_asked:
        return
    upgraded = {
        node
        for fault in history.faults
        if fault.does == "upgrade" and fault.took_effect
        for node in fault.nodes
    }
    waiting = [node for node in at_the_end(history) if node not in upgraded]
    if waiting:
        yield f"the rolling upgrade did not come to {', '.join(waiting)}; {SHORT_OF_TIME}"
