"""Variety: the options of `qsync simulate` that the seed draws, if the user did not set them.

| drawn | from |
|---|---|
| cluster | how many nodes |
| load | workload, rate, clients that roam |
| faults | which and how dense, how many at once, members that come and go, scenes of directed faults |
| system | its own options, and what clients ask of it alone (`harness.systems.parts.Variety`) |

One draw a seed, from one stream. If a draw has no room for a fault or a workload that was asked for by name, it is
drawn again. For a seeded bug the system may say instead where the bug shows (`Variety.bug_plan`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from harness.clients.operations import Delete
from harness.errors import WrongUse
from harness.faults.held import HOLDS, MOMENTS, SCENIC
from harness.faults.members import LOST_DISK
from harness.faults.options import QUORUM
from harness.faults.table import FAULTS, MEMBERSHIP, TOGETHER, why_not
from harness.plan.dice import Dice, Weighted
from harness.plan.plan import Plan
from harness.plan.schedule import names_for
from harness.run.assemble import parts_of
from harness.systems import System, system_of
from harness.workloads import WORKLOADS, workload_of
from harness.workloads.failing import MADE_OF

LIGHT: Mapping[str, Any] = {"time_limit_s": 30.0, "rate": 40.0, "replica_reads": 0.4}
"""The load of a drawn seed: long in virtual time, sparse in operations."""

NEVER_FATAL = ("clock", "slow")
"""Faults under which every cluster stays in service."""
SURVIVED_BY_A_QUORUM = (*NEVER_FATAL, "isolate-one", "kill")
"""Faults under which a cluster mostly stays in service if its quorum can spare a node and its owner can change."""


ALL_NEEDED = 2
"""In a cluster of this size every node is needed: while one is away no operation has an outcome, and the search for
an order among all of them (`Workload.is_searched`) finds no end."""
SHARES = (
    ("stray_writes", 0.4, (0.03, 0.1, 0.25)),
    ("roaming", 0.4, (0.2, 0.5)),
    ("failing", 0.5, (0.05, 0.15)),
    ("write_once", 0.5, (0.1, 0.3)),
)
"""Field, how often it is not 0, what it is then."""
DELETES = ("deletes", 0.4, (0.05, 0.1, 0.2))
"""The share of deletions, as in `SHARES`; it is drawn late, for workloads and clients that delete."""
OF_ANY_SYSTEM = ("roaming",)
"""Shares for every system; the remaining ones are for systems that draw options of their own (`has_all_loads`)."""
BESIDE = (
    ("rolling-restart", 0.1),
    ("timeouts", 0.08),
    (QUORUM, 0.1),
    ("reconfigure", 0.15),
    ("reconfigure-at-a-moment", 0.15),
    ("restart-otherwise", 0.15),
)
"""The operator's actions during the run, beside the drawn faults, with the frequency of each."""
LOST_DISKS = 0.15
"""How often nodes lose their disks for good, and new ones join at their addresses."""
MEMBERS_CHANGE = 0.2
"""How often nodes leave and new ones join as well."""
RESTARTED_BESIDE = 0.4
"""How often all nodes restart in turn as well where members change."""
SCENES: Weighted = (((HOLDS, MOMENTS), 3), ((MOMENTS,), 5), ((HOLDS,), 1), ((), 1))
CALM_BESIDE = 0.25
"""How much longer intervals get for each additional slot, and for scenes."""
TRIES = 200
"""How often a seed is drawn again until it has room for the faults and the workload that were named."""


def hunted(plan: Plan, given: frozenset[str]) -> Plan:
    """One seed's plan: the `given` fields stay, the others come from the bug that is hunted, or from the seed.

    Raises WrongUse if no draw fits the given fields.
    """
    chance = plan.streams()["variety"]
    refused = ""
    for _ in range(TRIES):
        try:
            varied = _varied(Dice(chance), plan, given)
            parts_of(varied)
            return _late(varied, given)
        except (WrongUse, ValueError) as error:  # not with so few nodes, say
            refused = str(error)
    raise WrongUse(refused)


def _varied(dice: Dice, plan: Plan, given: frozenset[str]) -> Plan:
    system = system_of(plan.system)
    own = system.variety
    if plan.bugs:
        fields = {**LIGHT, **own.bug_plan(plan.bugs)}
    else:
        drawn = own.drawn(dice, plan, given)
        fields = {**LIGHT, **drawn, **_load(dice, plan, given, drawn, system)}
    fields = {name: value for name, value in fields.items() if name not in given}
    varied = plan.changed(**fields)
    varied = own.fitted(varied, given)
    if plan.bugs:
        return varied
    if "faults" not in given:
        varied = varied.changed(faults=_faults(dice, varied, system))
    return varied.changed(calm_s=varied.calm_s * _crowd(varied)) if "calm_s" in fields else varied


def _late(plan: Plan, given: frozenset[str]) -> Plan:
    """The plan with deletions and the system's late additions. They have random streams of their own, so the rest of a
    seed is as it was before they could be drawn.
    """
    system = system_of(plan.system)
    if plan.bugs:
        return plan
    field, often, values = DELETES
    chance = plan.streams()[f"variety: {field}"]
    is_able = field in workload_of(plan.workload).shares and Delete in system.client.speaks
    if is_able and field not in given and chance.random() < often:
        plan = plan.changed(**{field: chance.choice(values)})
    plan = system.variety.varied_late(plan, given)
    parts_of(plan)
    return plan


def _crowd(plan: Plan) -> float:
    """The factor by which intervals between overlapping faults are longer, so that the cluster still serves."""
    beside = {*SCENIC, *(name for name, _ in BESIDE)}
    return 1 + CALM_BESIDE * (plan.overlap - 1 + sum(name in beside for name in plan.faults))


def _load(
    dice: Dice, plan: Plan, given: frozenset[str], drawn: Mapping[str, Any], system: System
) -> dict[str, Any]:
    """The drawn fields of the load: the workload, the operations of its clients, and when nodes answer them."""
    own = system.variety
    workload = plan.workload
    if "workload" not in given:
        weights = own.workloads(plan, drawn, _workloads(system))
        if drawn.get("nodes", plan.nodes) == ALL_NEEDED:
            weights = {name: weight for name, weight in weights.items() if not workload_of(name).is_searched}
        workload = dice.weighted(tuple(weights.items())) if weights else workload
    load: dict[str, Any] = {"workload": workload}
    for field, often, values in SHARES:
        if (own.has_all_loads or field in OF_ANY_SYSTEM) and dice.chance.random() < often:
            load[field] = dice.chance.choice(values)
    if workload_of(workload).can_submit:
        load.update(own.submitting(dice))
    return load


def _workloads(system: System) -> dict[str, float]:
    """The workloads that the client of the system speaks, also with transactions that must fail; and their weights."""
    spoken = [
        name
        for name, workload in WORKLOADS.items()
        if workload.uses | (MADE_OF if "failing" in workload.shares else set()) <= system.client.speaks
    ]
    usual = {name: workload_of(name).weight for name in spoken if workload_of(name).weight}
    return usual or dict.fromkeys(spoken, 1.0)


def _faults(dice: Dice, plan: Plan, system: System) -> tuple[str, ...]:
    """The names of drawn faults: all, or a few; mostly with scenes of directed faults beside them.

    Among a few is one that leaves the cluster in service: else no operation is acknowledged under faults.
    """
    chance, plan = dice.chance, plan.changed(leader=system.completed(plan).leader)
    possible = names_for(plan.changed(faults=("all",)), system.abilities)
    names: tuple[str, ...] = ("all",)
    if chance.random() < 0.4:
        names = tuple(chance.sample(possible, chance.randrange(1, 1 + min(4, len(possible)))))
        survived = survived_by(plan)
        if survived == NEVER_FATAL:  # else it serves under hardly any: both of these, and at most two more
            names = tuple(dict.fromkeys((*names[:2], *(name for name in possible if name in survived))))
        elif not set(names) & set(survived):
            names = (*names, chance.choice([name for name in possible if name in survived]))
    scenes = dice.weighted(SCENES)
    members = _members(chance)
    operated = tuple(name for name, often in BESIDE if chance.random() < often)
    if members and chance.random() < RESTARTED_BESIDE:
        operated = tuple(dict.fromkeys((*operated, "rolling-restart")))
    beside = (*members, *operated, *scenes)
    unfit = system.variety.unfit(plan)
    return (*names, *(name for name in beside if name not in unfit and _has_room(name, plan, system)))


def _has_room(name: str, plan: Plan, system: System) -> bool:
    """Whether the plan has the nodes, and the system the abilities, that the fault needs."""
    if name == QUORUM and (plan.quorum_size >= plan.nodes or not plan.has_elections):
        return False
    faults = TOGETHER.get(name, (name,))
    is_able = not any(why_not(fault, plan.cluster, system.abilities) for fault in faults)
    return is_able and plan.nodes >= max(FAULTS[fault].nodes_min for fault in faults)


def _members(chance: random.Random) -> tuple[str, ...]:
    """The drawn change of members, as names of faults; empty for none."""
    draw = chance.random()
    if draw < LOST_DISKS:
        return (LOST_DISK,)
    return (MEMBERSHIP,) if draw < LOST_DISKS + MEMBERS_CHANGE else ()


def survived_by(plan: Plan) -> tuple[str, ...]:
    """The faults under which the plan's cluster stays in service."""
    leaders = plan.nodes - len(plan.voters) if plan.has_elections or plan.leader in ("elected", "none") else 0
    return SURVIVED_BY_A_QUORUM if plan.nodes >= 3 and leaders > 1 else NEVER_FATAL
