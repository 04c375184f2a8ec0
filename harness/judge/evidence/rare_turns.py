"""The rare turns of a run, for the table *sometimes*: a hunt or a night without them has tested little.

Three sources: nodes count some (the record's last line has them), the system tells some by plan and history, and the
history tells the rest, which are those of any system.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy

from checkers.history.faults import FaultSpan
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT
from checkers.history.operation import Operation
from harness.cluster.protocol import RARE_TURNS
from harness.faults.overlap import MEMBERSHIP
from harness.plan.plan import Plan
from harness.systems import System, system_of
from harness.workloads.failing import AS_IT_HAD_TO
from harness.workloads.mixed_spaces import ASYNCHRONOUS as ASYNCHRONOUS_SPACE
from harness.workloads.register import ONCE

POWER_LOST_BYTES = "power loss lost or spoilt bytes"
MESSAGE_HELD = "message held by a directed fault"
DIED_AT_A_MOMENT = "node died at a moment"
STOPPED_AT_A_MOMENT = "node stopped, or its disk filled, at a moment"
MEMBER_CAME = "member left, came or lost its disk"
RESTARTED_IN_TURN = "all nodes restarted in turn"
FAILED = "transaction failed by a statement in its middle"
ASYNCHRONOUS = "asynchronous transaction acknowledged"
WRITTEN_ONCE = "row written once acknowledged"
DELETED = "deletion of a tuple acknowledged"
FOUND_NOTHING = "deletion of nothing refused"
OF_ANY_SYSTEM = (
    POWER_LOST_BYTES,
    MESSAGE_HELD,
    DIED_AT_A_MOMENT,
    STOPPED_AT_A_MOMENT,
    MEMBER_CAME,
    RESTARTED_IN_TURN,
    FAILED,
    ASYNCHRONOUS,
    WRITTEN_ONCE,
    DELETED,
    FOUND_NOTHING,
)


def rows_of(system: System) -> tuple[str, ...]:
    """All rows of the table for a system, in its order."""
    return (*system.variety.rare_turns, *OF_ANY_SYSTEM)


def rare_turns_of(plan: Plan, history: History) -> dict[str, int]:
    """Row → how often, in the order of the table. Rows that the nodes of this run did not count are missing."""
    system = system_of(plan.system)
    counts = _by_history(history)
    counts |= system.variety.rare_turns_of(plan, history)
    counted = _by_nodes(history)
    if counted is not None:
        counts |= {row: counted.get(row, 0) for row in system.variety.rare_turns if row not in counts}
    return {row: counts[row] for row in rows_of(system) if row in counts}


def _by_nodes(history: History) -> dict[str, int] | None:
    """The counts of the nodes; None if the record has no such line, because it is older or the run broke."""
    values = (event.value for event in history.told("harness", RARE_TURNS))
    return next((value for value in values if isinstance(value, dict)), None)


def _by_history(history: History) -> dict[str, int]:
    """The rare turns of any system, counted in the history."""
    counts = Counter(row for fault in history.faults for row in _of_fault(fault))
    for operation in _relevant(history):
        if operation.phase == "load" and (
            operation.f in ("write", "insert") or operation.error == AS_IT_HAD_TO
        ):
            for row in _of_operation(operation):
                counts[row] += 1
    return {row: counts[row] for row in OF_ANY_SYSTEM}


def _relevant(history: History) -> Sequence[Operation]:
    """The operations that may be rare turns: without most writes of numbers to shared keys."""
    columns = history.columns
    is_once = numpy.array([ONCE in (word or "") for word in columns.words])
    is_relevant = (columns.f == columns.code("insert")) | (columns.error == columns.code(AS_IT_HAD_TO))
    is_relevant |= (columns.f == columns.code("write")) & (is_once[columns.key] | (columns.new == ABSENT))
    return history.at(numpy.flatnonzero(is_relevant))


def _of_fault(fault: FaultSpan) -> Iterator[str]:
    if fault.counters.get("bytes_lost", 0) > 0:
        yield POWER_LOST_BYTES
    if not fault.took_effect:
        return
    is_at_a_moment = fault.asked.get("on") is not None
    if fault.does == "hold":
        yield MESSAGE_HELD
    if is_at_a_moment and fault.does in ("kill", "power"):
        yield DIED_AT_A_MOMENT
    if is_at_a_moment and fault.does in ("pause", "disk-error"):
        yield STOPPED_AT_A_MOMENT
    if fault.does in MEMBERSHIP:
        yield MEMBER_CAME
    if fault.does == "restart":
        yield RESTARTED_IN_TURN


def _of_operation(operation: Operation) -> Iterator[str]:
    is_ok = operation.type == "ok"
    if operation.error == AS_IT_HAD_TO:
        yield FAILED
    if operation.f == "insert" and is_ok:
        yield WRITTEN_ONCE
        if _spaces(operation.value) == {ASYNCHRONOUS_SPACE}:
            yield ASYNCHRONOUS
    if operation.f == "write":
        if is_ok and ONCE in (operation.key or ""):
            yield WRITTEN_ONCE
        if is_ok and operation.is_deletion:
            yield DELETED
        if operation.found_nothing:
            yield FOUND_NOTHING


def _spaces(inserted: object) -> set[str]:
    """The spaces of an insert of the workload `mixed-spaces`; none of the insert of a different workload."""
    spaces = inserted.get("spaces") if isinstance(inserted, Mapping) else None
    return {str(space) for space in spaces} if isinstance(spaces, Mapping | Sequence) else set()
