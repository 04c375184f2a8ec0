"""The promise that a run is judged against: what its system promises for its plan, as far as the plan came about.

A fault for which a store promises less (a loss of power, where it does not wait for its disk; an option that changes)
excuses nothing in a run in which it never began. One that began excuses even if it had no observable effect, because it
is unknown what was lost, or which node took the option. A run in which an option changed is judged by the weakest of
all promises that were in force (decision 29).
"""

from __future__ import annotations

import msgspec

from checkers.history.history import History
from harness.faults.fault import Fault
from harness.plan.plan import POWER_FAULTS, Drawn, Plan
from harness.systems import system_of
from harness.systems.promise import Promise


def promise_of(plan: Plan, history: History) -> Promise:
    """Raises WrongUse if the plan's system is unknown."""
    if plan.loses_power and all(fault.does != "power" for fault in history.faults):
        plan = _without_power_faults(plan)
    if plan.changes_options:
        plan = _with_options_as_changed(plan, history)
    return system_of(plan.system).promise(plan)


def _without_power_faults(plan: Plan) -> Plan:
    drawn = plan.drawn
    if drawn is not None:
        left = tuple(fault for fault in drawn.faults if fault.does != "power")
        drawn = msgspec.structs.replace(drawn, faults=left)
    names = tuple(name for name in plan.faults if name not in POWER_FAULTS)
    return msgspec.structs.replace(plan, faults=names, drawn=drawn)


def _with_options_as_changed(plan: Plan, history: History) -> Plan:
    """Its faults are those that began. Its operations, and its names of other faults, stay."""
    begun = tuple(msgspec.convert(fault.asked, Fault) for fault in history.faults)
    operations = () if plan.drawn is None else plan.drawn.operations
    return msgspec.structs.replace(plan, drawn=Drawn(faults=begun, operations=operations))
