"""Simultaneous faults: which may be active at once, and in which slot each runs.

With `overlap` 1 faults come one after the other. With more, that many *slots* each have their own sequence, so that a
kill happens inside a partition. These exclude each other:

- Two faults that stop processes or limit them, on one node: a dead process cannot be paused, and a stopped one uses no
  core and no memory that could be limited.
- A fault of the disk that fails writes, and a fault by which the process may end: a node cannot start on such a disk.
- Two disk faults on one node, and two that set its clock: they would overwrite each other's settings. (Virtual clocks
  add their jumps up; of two drifts there the one that began last counts, until the first of the two ends.)
- Two promotions: they would only outrun each other. A promotion, and a change of what elects, or of its node's
  membership.
- Operator actions on the whole cluster (members, options, restarts in turn).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harness.faults.fault import Fault
from harness.faults.node_options import Decisive
from harness.faults.table import which

MEMBERSHIP = which(lambda action: action.changes_members)
"""These change the members: one at a time."""
STEPS = which(lambda action: action.is_step)
"""These bring one node to another version."""
ADMINISTERED = which(lambda action: action.is_administered)
"""Operator actions on a working cluster: one at a time."""
STOPS_PROCESSES = which(lambda action: action.stops_processes)
FAILS_WRITES = which(lambda action: action.fails_writes)
LIMITS = which(lambda action: action.limits_nodes)
"""Limits on what a node may use of its machine: one at a time, while it runs."""
ORDERS_DISKS = which(lambda action: action.orders_disks)
EXCLUSIVE = (
    STOPS_PROCESSES | FAILS_WRITES,
    ORDERS_DISKS,
    STOPS_PROCESSES | LIMITS,
    FAILS_WRITES | which(lambda action: action.takes_memory),
)
"""A node has at most one of each set at a time."""
SETS_CLOCKS = which(lambda action: action.sets_clocks)
"""A node has at most one of these at a time, too, where a file sets its clock."""
HINDER_NO_OWNER = which(lambda action: not action.hinders_owner)


def hinders_no_owner(does: str, options: Collection[str], decisive: Decisive) -> bool:
    """The cluster keeps its owner under such a fault, or can elect another. `decisive`: the system's."""
    return does in HINDER_NO_OWNER and not decisive.who_leads(options)


def meet(one: Fault, other: Fault) -> bool:
    """The two faults are at work at the same time."""
    # One may begin at the instant at which the other ends: `slots_of` puts such two into one slot.
    return one.at_ns < other.until_ns and other.at_ns < one.until_ns


def exclude(one: Fault, other: Fault, decisive: Decisive, *, is_real: bool = False) -> bool:
    """The two faults cannot be at work at the same time. `is_real`: on nodes that are not virtual."""
    if one.does == other.does == "failover":
        return True
    if one.does in ADMINISTERED and other.does in ADMINISTERED:
        return True
    if "failover" in (one.does, other.does) and decisive.about_elections((*one.options, *other.options)):
        return True  # without elections a PROMOTE by hand takes effect at once, even if another node has the queue
    if "failover" in (one.does, other.does) and (one.does in MEMBERSHIP or other.does in MEMBERSHIP):
        return bool({*one.nodes} & {*other.nodes})  # a node that leaves is not promoted
    exclusive = (*EXCLUSIVE, SETS_CLOCKS) if is_real else EXCLUSIVE
    are_at_odds = any(one.does in kinds and other.does in kinds for kinds in exclusive)
    return are_at_odds and bool({*one.nodes} & {*other.nodes})


def slots_of(faults: Iterable[Fault]) -> list[list[Fault]]:
    """Each fault in the first slot that is free at its time; without overlap there is one slot."""
    slots: list[list[Fault]] = []
    for fault in sorted(faults, key=lambda fault: fault.at_ns):
        free = next((slot for slot in slots if slot[-1].until_ns <= fault.at_ns), None)
        if free is None:
            slots.append([fault])
        else:
            free.append(fault)
    return slots


def impossible(
    fault: Fault, others: Sequence[Fault], overlap: int, decisive: Decisive, *, is_real: bool = False
) -> str:
    """Why the fault cannot be at work beside those that began before; "" if it can."""
    beside = [other for other in others if meet(fault, other)]
    for other in beside:
        if overlap == 1:
            return (
                f"begins before fault {other.id} has ended; faults come one after the other without --overlap"
            )
        if exclude(fault, other, decisive, is_real=is_real):
            return f"cannot be at work beside fault {other.id} ({other.name})"
    if len(beside) >= overlap:
        return f"would be one of {len(beside) + 1} faults at once, the plan allows {overlap}"
    return ""
