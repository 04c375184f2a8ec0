"""Drawing a plan out: from seed and workload to every single fault and operation.

Operations are drawn worker by worker from the plan alone: one worker's operations depend neither on other workers nor
on the course of the run. A worker that is still busy when its next operation is due skips that operation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

import msgspec

from harness.errors import WrongUse
from harness.faults.abilities import LACKS, Ability
from harness.faults.changing_cut import all_links
from harness.faults.directed import PLACEHOLDERS, SEVERAL
from harness.faults.fault import DISK_ERRORS, LOSSES, Fault
from harness.faults.overlap import impossible
from harness.faults.rollout import Rollout
from harness.faults.table import action_of, can_do, why_not_to
from harness.plan.expectations import COMPLETE
from harness.plan.plan import CONNECTION_NAME, Drawn, Operation, Plan
from harness.plan.schedule import draw_faults
from harness.systems.system import System
from harness.workloads import Workload
from harness.workloads.completed import asked_of
from harness.workloads.generators import Context, Draft, Generator

STROBE_NS_MIN = 1_000_000
MIXED_WAITS: tuple[Literal["complete", "submit", "none"], ...] = ("complete", "submit", "none")
MIXED_SHARES = (0.5, 0.3, 0.2)


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
    faults = draw_faults(plan, system.owner(plan), system)
    return msgspec.structs.replace(plan, drawn=Drawn(faults=faults, operations=tuple(operations)))


def refuse_impossible(plan: Plan, system: System, workload: Workload) -> None:
    """WrongUse if a drawn-out plan, which people edit, has a line that cannot be carried out."""
    if plan.drawn is None:
        return
    for number, operation in enumerate(plan.drawn.operations):
        here = f"operation {number}"
        _refuse_unknown(here, [operation.node], plan.node_names)
        _refuse_late(here, operation.at_ns, plan)
        if operation.worker >= plan.workers:
            raise WrongUse(f"{here}: worker {operation.worker} is none of the {plan.workers} from 0 on")
        try:
            asked_of(workload, operation, operation.value)
        except WrongUse as error:
            raise WrongUse(f"{here}: {error.message}") from error
    before: list[Fault] = []
    members = plan.members_at_first
    rollout = Rollout(plan.node_names)
    ids: dict[int, None] = {}
    for fault in sorted(plan.drawn.faults, key=lambda fault: fault.at_ns):
        refuse_impossible_fault(plan, system.abilities, fault, [] if fault.is_directed else before)
        if fault.options and (why := _no_node_can_have(plan, system, workload, fault)):
            raise WrongUse(f"fault {fault.id} ({fault.name}): no node can have {fault.options}: {why}")
        if fault.id in ids:
            raise WrongUse(f"two faults have the id {fault.id}; give each its own")
        ids[fault.id] = None
        why = members.why_not(fault.does, fault.nodes) or rollout.why_not(fault.does, fault.nodes)
        if not fault.is_directed and why:
            raise WrongUse(f"fault {fault.id} ({fault.name}) {why}")
        members, rollout = members.after(fault), rollout.after(fault)
        before += [] if fault.is_directed else [fault]


def refuse_impossible_fault(
    plan: Plan, able: frozenset[Ability], fault: Fault, before: Sequence[Fault]
) -> None:
    here, action = f"fault {fault.id} ({fault.name})", action_of(fault)
    if fault.until_ns < fault.at_ns:
        raise WrongUse(f"{here}: until_ns {fault.until_ns} comes before at_ns {fault.at_ns}")
    _refuse_late(here, fault.at_ns if fault.is_directed else fault.until_ns, plan)
    if why := impossible(
        fault, before, plan.overlap, plan.expectations.decisive, is_real=plan.cluster != "sim"
    ):
        raise WrongUse(f"{here} {why}")
    if fault.does not in can_do(plan.cluster):
        reasons = {kind.where.why_not.get(plan.cluster, "") for kind in action.kinds}
        why = f": {reasons.pop()}" if len(reasons) == 1 else ""
        raise WrongUse(f"{here}: --cluster {plan.cluster} cannot do {fault.does!r}{why.removesuffix(': ')}")
    if why := why_not_to(fault.does, plan.cluster, able, plan.system):
        raise WrongUse(f"{here}: {why}")
    if fault.does in ("upgrade", "downgrade") and plan.node_from is None:
        raise WrongUse(f"{here}: {fault.does!r} needs the version that nodes start in: node_from")
    for needed in action.fields:
        if not getattr(fault, needed):
            raise WrongUse(f"{here}: {fault.does!r} needs {needed}")
    if action.is_of_one and (len(fault.nodes) > 1 or {*fault.nodes} & {*SEVERAL}):
        raise WrongUse(f"{here}: {fault.does!r} is done to one node, got {', '.join(fault.nodes)}")
    if fault.shapes and "shapes" not in action.fields:
        raise WrongUse(f"{here}: {fault.does!r} has no shapes")
    if fault.does == "clock" and (why := _no_clock_is_wrong(plan, able, fault)):
        raise WrongUse(f"{here}: {why}")
    if fault.does == "loss" and fault.percent not in LOSSES:
        raise WrongUse(f"{here}: {fault.percent} % cannot be lost; try one of: {LOSSES}")
    if fault.error and fault.error not in DISK_ERRORS:
        raise WrongUse(f"{here}: no disk fails with {fault.error!r}; try one of: {', '.join(DISK_ERRORS)}")
    if fault.on is not None and plan.cluster != "sim":
        raise WrongUse(f"{here}: only --cluster sim knows when a node {fault.on.does} what")
    known = (*plan.node_names, *(PLACEHOLDERS if fault.is_directed else ()))
    _refuse_unknown(here, fault.nodes, known)
    _refuse_unknown(here, chain(*fault.links), (*known, CONNECTION_NAME))
    _refuse_unknown(here, chain(*all_links(fault.shapes)), (*plan.node_names, CONNECTION_NAME))


def _no_node_can_have(plan: Plan, system: System, workload: Workload, fault: Fault) -> str:
    """Why the options of the fault are none of nodes; "" if all nodes can have them."""
    try:
        options = plan.expectations.decisive.as_set(fault.options)
        for configuration in system.configurations(plan, workload.spaces).values():
            system.settings.configured(configuration, options)
    except KeyError as error:
        return f"there is no option {error}"
    except (ValueError, TypeError, ArithmeticError) as error:
        return str(error)
    return ""


def _no_clock_is_wrong(plan: Plan, able: frozenset[Ability], fault: Fault) -> str:
    """Why the fault would change no clock; "" if it does."""
    if fault.delay_ns and not (fault.jump_ns and fault.delay_ns >= STROBE_NS_MIN):
        return f"'clock' that strobes needs jump_ns, and a delay_ns of at least {STROBE_NS_MIN}"
    if fault.drift_ppm and plan.cluster != "sim" and "drift" not in able:
        return f"{plan.system} {LACKS['drift']}; leave drift_ppm out"
    return "" if fault.jump_ns or fault.drift_ppm else "'clock' needs jump_ns or drift_ppm"


def _refuse_unknown(here: str, names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise WrongUse(f"{here}: no node is called {name!r}; try one of: {', '.join(known)}")


def _refuse_late(here: str, time_ns: int, plan: Plan) -> None:
    """The run would wait for it, behind its load."""
    if time_ns > plan.time_limit_ns:
        raise WrongUse(f"{here}: {time_ns} ns is behind the end of the load; try a greater time_limit_s")


def faults_of(plan: Plan, system: System) -> tuple[Fault, ...]:
    """One after the other, in order of time."""
    if plan.drawn is not None:
        return tuple(sorted(plan.drawn.faults, key=lambda fault: fault.at_ns))
    return draw_faults(plan, system.owner(plan), system)


def operations_of(plan: Plan, system: System, workload: Workload, worker: int) -> Iterator[Operation]:
    """The operations of one worker, in order of time."""
    if plan.drawn is not None:
        own = [operation for operation in plan.drawn.operations if operation.worker == worker]
        yield from sorted(own, key=lambda operation: operation.at_ns)
        return
    streams = plan.streams()
    chance = streams[f"worker {worker}"]
    owner = system.owner(plan)
    replicas = [node for node in plan.node_names if node != owner] or [owner]
    # A stream of its own: another commit wait mode changes no operation.
    waits = None if plan.commit_wait == COMPLETE else streams[f"waits of worker {worker}"]
    generator: Generator = workload.generator(plan, worker)
    time_ns = 0
    context = Context(worker, time_ns, chance)
    while True:
        answer, generator = generator.next(context)
        if isinstance(answer, Draft):
            where, replica = answer.node, chance.choice(replicas)  # drawn for every operation, used or not
            if where == "@owner":
                where = owner
            elif where == "@replica":
                where = replica
            if not where:  # none leads: all are asked alike
                where = chance.choice(plan.node_names)
            drawn = Operation(
                at_ns=time_ns,
                worker=worker,
                f=answer.f,
                key=answer.key,
                value=answer.value,
                node=where,
                mode=answer.mode,
            )
            yield drawn if waits is None else _waiting(drawn, plan, workload, waits)
        elif answer is None:
            return
        else:
            time_ns = answer.time_ns
            context = Context(worker, time_ns, chance)


def _waiting(operation: Operation, plan: Plan, workload: Workload, chance: random.Random) -> Operation:
    """The operation with the commit wait mode that the plan asks for, if it writes."""
    if not workload.may_submit(operation):
        return operation
    is_mixed = plan.commit_wait == "mixed"
    wait = chance.choices(MIXED_WAITS, MIXED_SHARES)[0] if is_mixed else plan.commit_wait
    return msgspec.structs.replace(operation, wait=wait)
