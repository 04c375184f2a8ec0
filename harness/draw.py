"""Drawing a plan out: from seed and workload to every single fault and operation.

Operations are drawn worker by worker from the plan alone: what one worker does depends neither on the others nor on
what happens. A worker that is still busy when its next operation is due leaves that operation out.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.faults.fault import Fault
from harness.faults.schedule import draw_faults
from harness.generators import Context, Draft, Generator, Later
from harness.plan import Drawn, Operation, Plan
from harness.systems.system import System
from harness.workloads import Workload


def draw(plan: Plan, system: System, workload: Workload) -> Plan:
    """The same plan with nothing left to draw."""
    if plan.drawn is not None:
        return plan
    operations = [
        operation
        for worker in range(plan.workers)
        for operation in operations_of(plan, system, workload, worker)
    ]
    operations.sort(key=lambda operation: (operation.at_ns, operation.worker))
    faults = draw_faults(plan, system.owner(plan))
    return msgspec.structs.replace(plan, drawn=Drawn(faults=faults, operations=tuple(operations)))


def faults_of(plan: Plan, system: System) -> tuple[Fault, ...]:
    return plan.drawn.faults if plan.drawn is not None else draw_faults(plan, system.owner(plan))


def operations_of(plan: Plan, system: System, workload: Workload, worker: int) -> Iterator[Operation]:
    """What one worker does, in order of time."""
    if plan.drawn is not None:
        yield from (operation for operation in plan.drawn.operations if operation.worker == worker)
        return
    chance = plan.streams()[f"worker {worker}"]
    owner = system.owner(plan)
    replicas = [node for node in plan.node_names if node != owner] or [owner]
    generator: Generator = workload.generator(plan, worker)
    time_ns = 0
    while True:
        answer, generator = generator.next(Context(worker, time_ns, chance))
        match answer:
            case None:
                return
            case Later(later_ns):
                time_ns = later_ns
            case Draft(f, key, value, node, mode):
                where = {"@owner": owner, "@replica": chance.choice(replicas)}.get(node, node)
                yield Operation(
                    at_ns=time_ns, worker=worker, f=f, key=key, value=value, node=where, mode=mode
                )
