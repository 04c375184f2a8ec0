"""A store's reports of damage that it need not survive.

A fault that destroys safely written data (`must` "detect" in the table of faults) may leave a node that
refuses to start, or to follow. That is right; only wrong data are an anomaly. So after such a fault nodes need not be
equal at the end, provided that a node reported why not. The report is a finding. So is the refusal to start after a
power loss of a store that promises to survive none. A node that refused to start got its files back undamaged: nothing
was lost then, and nothing is excused.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.history.faults import FaultSpan
from checkers.history.history import History
from harness.faults.table import FAULTS
from harness.systems.system import CANNOT_JOIN


def may_only_be_detected(history: History) -> bool:
    """Whether a node went on with files that were damaged beyond what a store must survive."""
    return any(not _was_refused(fault) for fault in _damages(history))


def refusals(history: History) -> tuple[str, ...]:
    """A sentence for each damage on which a node refused to start."""
    return tuple(
        f"after {fault.name}: {fault.evidence.get('detail') or 'a node refused to start'}"
        for fault in history.faults
        if fault.took_effect and _was_refused(fault)
    )


def could_not_join(history: History) -> tuple[str, ...]:
    """A sentence for each node that ended because it could not join as a member, and why."""
    reasons: dict[str, list[str]] = {}
    for event in history.told("monitor", CANNOT_JOIN):
        if isinstance(event.value, dict):
            reasons.setdefault(str(event.node), []).append(str(event.value.get("why")))
    return tuple(
        f"{node} could not join {len(lines)} {'times' if len(lines) > 1 else 'time'}, and ended: {lines[-1]}"
        for node, lines in sorted(reasons.items())
    )


def _was_refused(fault: FaultSpan) -> bool:
    return bool(fault.counters.get("refused_to_start"))


def _damages(history: History) -> Iterator[FaultSpan]:
    for fault in history.faults:
        if fault.took_effect and fault.name in FAULTS and FAULTS[fault.name].must == "detect":
            yield fault
