"""Which faults when: drawn from the seed, one after the other (or in several lanes), with quiet times between.

"All" means: first one fault of every group in random order, then every fault in ever new order. The first partition is
the one that forces a decision about pending transactions (`isolate-owner`), and the first power loss the owner's, so
that even a short run meets them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from harness.errors import WrongUse
from harness.faults.directed import draw_directed
from harness.faults.fault import Fault
from harness.faults.lanes import impossible
from harness.faults.table import FAILOVER, FAULTS, HOLDS
from harness.plan import SECOND_NS, Plan

FIRST_NS = 1 * SECOND_NS
QUIET_NS = (SECOND_NS * 7 // 10, SECOND_NS * 13 // 10)
LASTS_NS = (SECOND_NS * 13 // 10, SECOND_NS * 23 // 10)
LAST_SCENE_NS = 4 * SECOND_NS
"""How long before the end of the load the last scene of holds may begin."""
LAST_HEALED_NS = SECOND_NS * 7 // 10
"""How long before the end of the load the last fault must have been healed."""


def names_for(plan: Plan) -> tuple[str, ...]:
    """The faults that a plan asks for, "all" resolved; WrongUse if the cluster cannot do one."""
    possible = [
        name
        for name, kind in FAULTS.items()
        if name != HOLDS
        and plan.cluster in kind.clusters
        and plan.nodes >= kind.nodes_min
        and (name != FAILOVER or _can_fail_over(plan))
    ]
    names: list[str] = []
    for name in plan.faults:
        if name == "none":
            continue
        if name == "all":
            names.extend(other for other in possible if other not in names)
        elif name not in FAULTS:
            raise WrongUse(f"unknown fault {name!r}; try one of: all, none, {', '.join(FAULTS)}")
        elif plan.cluster not in FAULTS[name].clusters:
            where = " or ".join(FAULTS[name].clusters)
            raise WrongUse(f"--cluster {plan.cluster} cannot do the fault {name!r}; try: --cluster {where}")
        elif name == FAILOVER and not _can_fail_over(plan):
            raise WrongUse(
                f"the fault {name!r} needs a second node that may lead and a configuration whose owner may change, "
                f"got {plan.configuration!r} with {plan.nodes} nodes; try: --configuration H or D"
            )
        elif plan.nodes < FAULTS[name].nodes_min:
            raise WrongUse(
                f"the fault {name!r} needs at least {FAULTS[name].nodes_min} nodes, got {plan.nodes}"
            )
        elif name not in names:
            names.append(name)
    return tuple(names)


def _can_fail_over(plan: Plan) -> bool:
    return plan.fails_over and sum(mode != "voter" for mode in plan.election_modes) > 1


def draw_faults(plan: Plan, owner: str) -> tuple[Fault, ...]:
    """The whole schedule of a plan."""
    asked = names_for(plan)
    names = [name for name in asked if name != HOLDS]
    chance = plan.streams()["faults"]
    faults: list[Fault] = []
    free_ns = [FIRST_NS] * plan.overlap
    for name in _order(names, chance):
        lane = free_ns.index(min(free_ns))
        at_ns = free_ns[lane]
        until_ns = at_ns + chance.randrange(*LASTS_NS)
        if until_ns > plan.time_limit_ns - LAST_HEALED_NS:
            break
        fault = _fault(len(faults), name, at_ns, until_ns, plan, owner)
        free_ns[lane] = until_ns + int(chance.randrange(*QUIET_NS) * plan.calm_s)
        if impossible(fault, faults, plan.overlap):
            free_ns[lane] = at_ns + QUIET_NS[0]
        else:
            faults.append(fault)
    if HOLDS in asked:
        last_ns = plan.time_limit_ns - LAST_SCENE_NS
        chance = plan.streams()["holds"]
        scenes = draw_directed(
            plan.node_names,
            chance,
            FIRST_NS,
            last_ns,
            len(faults),
            fails_over=_can_fail_over(plan),
            calm=plan.calm_s,
        )
        faults.extend(scenes)
    return tuple(faults)


def _order(names: Sequence[str], chance: random.Random) -> Iterator[str]:
    """Names for ever: first one of every group, in random order; then all names, in ever new order."""
    first_of_group: dict[str, str] = {}
    for name in names:
        first_of_group.setdefault(FAULTS[name].group, name)
    yield from chance.sample(list(first_of_group.values()), len(first_of_group))
    while names:
        yield from chance.sample(list(names), len(names))


def _fault(number: int, name: str, at_ns: int, until_ns: int, plan: Plan, owner: str) -> Fault:
    kind = FAULTS[name]
    chance = plan.streams()[f"fault {number}"]
    modes = zip(plan.node_names, plan.election_modes, strict=True)
    nodes = [node for node, mode in modes if mode != "voter" or name != FAILOVER]
    drawn = kind.draw(nodes, owner, chance)
    fields = {"id": number, "name": name, "does": kind.does, "at_ns": at_ns, "until_ns": until_ns}
    return msgspec.convert({**fields, "seed": chance.getrandbits(32), **drawn}, Fault)
