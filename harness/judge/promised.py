"""A run is judged by the promise of its system, the checks, and the rules for the logs of its nodes.

The promise is that for the plan of the run, as far as the plan came about. A fault for which a store promises less (a
loss of power, where it does not wait for its disk; an option that changes) excuses nothing in a run in which it never
began. One that began excuses even if it had no observable effect, because it is unknown what was lost, or which node
took the option. A run in which an option changed is judged by the weakest of all promises that were in force
(decision 29).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from checkers.check import Check
from checkers.history.faults import FaultSpan
from checkers.history.history import History
from checkers.history.members import have_changed, left, quorums
from checkers.logs.wal import LogRules, NodeLog
from harness.errors import StoreError
from harness.faults.fault import Fault
from harness.plan.plan import POWER_FAULTS, Drawn, Plan
from harness.plan.promise import Promise
from harness.systems import system_of
from harness.workloads import workload_of
from harness.workloads.checks import of_submitted
from harness.workloads.workload import Workload
from harness.wrong_values import in_words


def promise_of(plan: Plan, history: History) -> Promise:
    """Raises WrongUse if the plan's system is unknown, StoreError if a fault of the record cannot be read."""
    if plan.loses_power and all(fault.does != "power" for fault in history.faults):
        plan = _without_power_faults(plan)
    if plan.changes_options:
        plan = _with_options_as_changed(plan, history)
    return system_of(plan.system).promise(plan)


def _without_power_faults(plan: Plan) -> Plan:
    drawn = plan.drawn
    if drawn is not None:
        remaining = tuple(fault for fault in drawn.faults if fault.does != "power")
        drawn = msgspec.structs.replace(drawn, faults=remaining)
    names = tuple(name for name in plan.faults if name not in POWER_FAULTS)
    return msgspec.structs.replace(plan, faults=names, drawn=drawn)


def _with_options_as_changed(plan: Plan, history: History) -> Plan:
    """The plan with the faults that began in place of the drawn ones; its operations and names of faults stay."""
    begun = tuple(map(_begun, history.faults))
    operations = () if plan.drawn is None else plan.drawn.operations
    return msgspec.structs.replace(plan, drawn=Drawn(faults=begun, operations=operations))


def _begun(span: FaultSpan) -> Fault:
    try:
        return msgspec.convert(span.asked, Fault)
    except msgspec.ValidationError as error:
        raise StoreError(
            f"fault {span.id} ({span.name}) is not recorded as this version writes it: "
            f"{in_words(error, span.asked, Fault)}; try: the version that made the run"
        ) from error


def checks_of(plan: Plan, promise: Promise) -> tuple[Check, ...]:
    """All checks of a run of this plan: of its workload, its commit wait mode and its system."""
    submitted = (of_submitted(promise, plan.promise),) if plan.submits else ()
    workload = workload_of(plan.workload)
    of_system = (_of_cells(check, workload) for check in system_of(plan.system).checks(plan))
    of_workload = (_as_asked(check, plan.promise) for check in workload.checks(promise, plan.promise))
    return (*of_workload, *submitted, *of_system)


def _as_asked(check: Check, stricter: str | None) -> Check:
    """The check, with its name as the model if the plan promises it and the store promises nothing."""
    return replace(check, model=stricter) if stricter == check.name and not check.model else check


def _of_cells(check: Check, workload: Workload) -> Check:
    """A system's own check, over a history whose dumps are translated to the names of the workload's operations."""
    return replace(check, run=lambda history: check.run(workload.as_written(history)))


def rules_of(rules: LogRules | None, history: History) -> LogRules | None:
    """The rules with the numbers of members and of a quorum; without them if nodes left or joined.

    If only the quorum changed, the smallest one counts, because every decision had at least that many.
    """
    if rules is None or not history.told_members:
        return rules
    if have_changed(history):
        return replace(rules, members=None, quorum=None)
    if rules.quorum is None:
        return rules
    counts = [quorum for quorum in quorums(history) if quorum is not None]
    return replace(rules, quorum=min(counts, default=None))


def logs_of_members(logs: Sequence[NodeLog], history: History) -> tuple[NodeLog, ...]:
    """The logs of nodes that were members at the end. A node that left does not learn the outcome of its
    pending transactions, so its log is no evidence about the members."""
    gone = left(history)
    return tuple(log for log in logs if log.node not in gone)
