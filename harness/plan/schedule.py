"""Which faults when: drawn from the seed, one after the other (or in several slots), with quiet times between.

"All" means: first one fault of every group in random order, then every fault in ever new order. The first partition is
the one that forces a decision about pending transactions (`isolate-owner`), and the first power loss the owner's, so
that even a short run meets them. "default" means the same, with the groups of `COMES_FIRST` in front of the others.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from harness.errors import WrongUse
from harness.faults.abilities import ALL_ABILITIES, Ability
from harness.faults.action import RECOVERY_NS, Fields, Situation
from harness.faults.directed import draw_directed
from harness.faults.failover import FAILOVER
from harness.faults.fault import Fault
from harness.faults.held import SCENIC
from harness.faults.members import ADD, REMOVE
from harness.faults.membership import Membership
from harness.faults.options import QUORUM
from harness.faults.overlap import impossible
from harness.faults.rollout import DOWNGRADE, UPGRADE, Rollout
from harness.faults.table import ACTIONS, FAULTS, TOGETHER, why_not
from harness.plan.capabilities import HasAbilities
from harness.plan.plan import ALL, LEAVES_OUT, SECOND_NS, USUAL, USUAL_LASTING_S, Plan

COMES_FIRST = ("partition", "kill", "clock")
"""The groups that every run of 20 s shows: its time is enough for five or six faults."""
FIRST_NS = 1 * SECOND_NS
QUIET_NS = (SECOND_NS * 7 // 10, SECOND_NS * 13 // 10)
LASTS_NS = (SECOND_NS * 13 // 10, SECOND_NS * 23 // 10)
"""Of a plan with `USUAL_LASTING_S`; in others in proportion."""
LAST_SCENE_NS = 4 * SECOND_NS
"""How long before the end of the load the last scene of holds may begin."""
LAST_HEALED_NS = SECOND_NS * 7 // 10
"""How long before the end of the load the last fault must have been healed."""


def names_for(plan: Plan, able: frozenset[Ability] = ALL_ABILITIES) -> tuple[str, ...]:
    """The faults that a plan asks for, "all" and "default" resolved; WrongUse if one could not take effect in the run.

    `able`: what the plan's system is able to do; everything, if its nodes are ours. A word "-NAME" leaves one out of
    "all" and "default".
    """
    left_out = _left_out(plan)
    possible = [
        name
        for name, kind in FAULTS.items()
        if name not in SCENIC
        and name not in left_out
        and not (kind.needs_leader and plan.leader == "none")
        and kind.is_among_all(plan.cluster, able)
        and plan.nodes >= kind.nodes_min
        and (name != FAILOVER or _can_fail_over(plan))
        and (name != ADD or "members" in able or plan.expectations.late)
    ]
    names: list[str] = []
    for name in plan.faults:
        if name == "none" or name.startswith(LEAVES_OUT):
            continue
        if name in (USUAL, ALL):
            names.extend(other for other in possible if other not in names)
            continue
        together = TOGETHER.get(name, ())
        # A name that stands for several means what can be done here, unless nothing can.
        for each in [one for one in together if not _is_missing(one, plan, able)] or together or (name,):
            _refuse(each, plan, able)
            if each not in names:
                names.append(each)
    if ADD in names and REMOVE not in names and not plan.expectations.late:
        attempt = f"--faults {REMOVE},{ADD}" if "members" in able else "--late 1"
        raise WrongUse(f"the fault {ADD!r} needs a node that is no member; try: {attempt}")
    if DOWNGRADE in names and UPGRADE not in names:
        raise WrongUse(
            f"the fault {DOWNGRADE!r} comes after an upgrade; try: --faults {UPGRADE},{DOWNGRADE}, or --node-from the "
            "newer version and --node-to the older one"
        )
    if QUORUM in names and plan.quorum_size >= plan.nodes:
        raise WrongUse(
            f"the fault {QUORUM!r} raises the quorum, and {plan.quorum_size} of {plan.nodes} is the highest already"
        )
    return tuple(names)


def named_by(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each word of the plan for faults in particular, and the faults that it stands for."""
    for word in dict.fromkeys(plan.faults):
        if word not in (USUAL, ALL, "none") and not word.startswith(LEAVES_OUT):
            yield word, TOGETHER.get(word, (word,))


def without_room(plan: Plan, faults: Iterable[Fault]) -> tuple[str, ...]:
    """The words of which the schedule that was drawn has no fault, so that the run cannot be valid."""
    drawn = {UPGRADE, *SCENIC, *(fault.name for fault in faults)}
    return () if plan.drawn else tuple(word for word, names in named_by(plan) if drawn.isdisjoint(names))


def _left_out(plan: Plan) -> frozenset[str]:
    """The faults that the plan leaves out of "all"; WrongUse for a word that leaves nothing out."""
    found: set[str] = set()
    for word in plan.faults:
        if not word.startswith(LEAVES_OUT):
            continue
        name = word.removeprefix(LEAVES_OUT)
        each = TOGETHER.get(name, (name,))
        if unknown := [one for one in each if one not in FAULTS]:
            raise WrongUse(f"unknown fault {unknown[0]!r}; try one of: {', '.join((*FAULTS, *TOGETHER))}")
        if not plan.asks_for_all:
            raise WrongUse(f"{word!r} leaves a fault out of all, got no all; try: --faults all,{word}")
        if name in plan.faults:
            raise WrongUse(f"the fault {name!r} is both asked for and left out; leave out {name} or {word}")
        found.update(each)
    return frozenset(found)


def _refuse(name: str, plan: Plan, able: frozenset[Ability]) -> None:
    """WrongUse if the fault cannot be done in this run."""
    if name not in FAULTS:
        known = ", ".join((*FAULTS, *TOGETHER))
        raise WrongUse(f"unknown fault {name!r}; try one of: all, none, {known}")
    kind = FAULTS[name]
    if why := why_not(name, plan.cluster, able, plan.system):
        elsewhere = " or ".join(other for other in kind.where.clusters if not why_not(name, other, able))
        attempt = f"--cluster {elsewhere}" if elsewhere else "./qsync list faults"
        raise WrongUse(f"--cluster {plan.cluster} cannot do the fault {name!r}: {why}; try: {attempt}")
    if name in (UPGRADE, DOWNGRADE) and plan.node_from is None:
        raise WrongUse(
            f"the fault {name!r} needs the version that nodes start in; try: --node-from with a wheel, a checkout, a "
            "commit of this one, or for --system tarantool a binary"
        )
    if name == FAILOVER and not _can_fail_over(plan):
        raise WrongUse(
            f"the fault {name!r} needs a second node that may lead and a configuration whose owner may change, "
            f"got {plan.expectations.configuration!r} with {plan.nodes} nodes; try: --configuration H or D"
        )
    if kind.needs_leader and plan.leader == "none":
        raise WrongUse(
            f"the fault {name!r} needs a leader, and --system {plan.system} has none; try: isolate-one"
        )
    if plan.nodes < kind.nodes_min:
        like = [
            other
            for other, another in FAULTS.items()
            if (another.does, another.needs_leader) == (kind.does, False) and another.nodes_min <= plan.nodes
        ]
        attempts = " or ".join((f"--nodes {kind.nodes_min}", *(f"--faults {other}" for other in like[-1:])))
        raise WrongUse(
            f"the fault {name!r} needs at least {kind.nodes_min} nodes, got {plan.nodes}; try: {attempts}"
        )


def _is_missing(name: str, plan: Plan, able: frozenset[Ability]) -> bool:
    """Whether the plan has too few nodes or versions for a fault."""
    has_one_version = plan.node_from is None or bool(why_not(UPGRADE, plan.cluster, able))
    return plan.nodes < FAULTS[name].nodes_min or (name == UPGRADE and has_one_version)


def _can_fail_over(plan: Plan) -> bool:
    return plan.fails_over and plan.nodes - len(plan.voters) > 1


def draw_faults(plan: Plan, owner: str, system: HasAbilities) -> tuple[Fault, ...]:
    """The whole schedule of a plan."""
    able = system.abilities
    asked = names_for(plan, able)
    names = [name for name in asked if name not in (*SCENIC, UPGRADE, DOWNGRADE)]
    rollout = _rollout(plan, asked)
    chance = plan.streams()["faults"]
    faults: list[Fault] = []
    members = plan.members_at_first
    free_ns = [FIRST_NS] * plan.overlap
    first = COMES_FIRST if USUAL in plan.faults else ()
    others = _order(names, chance, _beside_all(plan), first)
    is_a_step_due = True
    alone = plan.streams()["first newcomer"].randrange(1, 4) if members.absent else 0
    while True:
        step = rollout.step(members.present) if is_a_step_due else None
        name, target = step or (ADD if alone == 1 and ADD in names else next(others, ""), "")
        is_a_step_due = step is None or not names
        if not name:
            break
        slot = free_ns.index(min(free_ns))
        at_ns = free_ns[slot]
        lasts_ns = int(chance.randrange(*LASTS_NS) * (plan.lasting_s / USUAL_LASTING_S))
        until_ns = at_ns + FAULTS[name].lasts(lasts_ns, plan.cluster != "sim")
        if until_ns > plan.time_limit_ns - LAST_HEALED_NS:
            break
        fault = _fault(len(faults), name, at_ns, until_ns, plan, owner, members, faults, system)
        if fault is not None and fault.drift_ppm and plan.cluster != "sim" and "drift" not in able:
            fault = msgspec.structs.replace(fault, drift_ppm=0)
        if fault is not None and target:
            fault = msgspec.structs.replace(fault, nodes=(target,))
        # Drawn for a fault that cannot be done, too: it takes its place in the stream, or all later ones would change.
        quiet_ns = int(chance.randrange(*QUIET_NS) * plan.calm_s)
        free_ns[slot] = until_ns + _quiet_ns(name, plan, quiet_ns)
        if fault is None or impossible(
            fault, faults, plan.overlap, plan.expectations.decisive, is_real=plan.cluster != "sim"
        ):
            free_ns[slot] = at_ns + QUIET_NS[0]
        else:
            faults.append(fault)
            alone = _left_alone(alone, fault, members, plan)
            members = members.after(fault)
            rollout = rollout.after(fault)
    for name in SCENIC:
        if name not in asked:
            continue
        last_ns = plan.time_limit_ns - LAST_SCENE_NS
        scenes = draw_directed(
            plan.node_names,
            plan.streams()[name],
            FIRST_NS,
            last_ns,
            len(faults),
            fails_over=_can_fail_over(plan),
            calm=plan.calm_s,
            scenes=system.variety.scenes[name],
        )
        faults.extend(scenes)
    return tuple(faults)


def _left_alone(before: int, fault: Fault, members: Membership, plan: Plan) -> int:
    """How many faults from now a new node joins in place of one that left: soon, with some faults between."""
    if fault.does == "remove":
        return plan.streams()[f"members after {fault.id}"].randrange(1, 5)
    if fault.does == "add":
        return 1 if len(members.absent) > 1 else 0
    return max(before - 1, 1) if before else 0


def _rollout(plan: Plan, names: Sequence[str]) -> Rollout:
    """Without nodes, if no upgrade was asked for."""
    turn = plan.streams()["rollout"].sample(list(plan.node_names), plan.nodes) if UPGRADE in names else []
    return Rollout(tuple(turn), returns=DOWNGRADE in names)


def _quiet_ns(name: str, plan: Plan, drawn_ns: int) -> int:
    """It stays quiet for longer after faults from which whole nodes recover."""
    is_long = ACTIONS[FAULTS[name].does].recovers_slowly and plan.cluster != "sim"
    return drawn_ns + (RECOVERY_NS if is_long else 0)


def _beside_all(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """The faults behind each name that was asked for beside "all"; of members one must leave before one can come."""
    if not plan.asks_for_all:
        return ()
    is_possible_at_first = plan.expectations.late > 0
    return tuple(
        tuple(name for name in names if name != ADD or is_possible_at_first) for _, names in named_by(plan)
    )


def _order(
    names: Sequence[str],
    chance: random.Random,
    wanted: Sequence[Sequence[str]] = (),
    first: Collection[str] = (),
) -> Iterator[str]:
    """Names for ever: first one of every group, in random order; then all names, in ever new order.

    Before all that one of each that is `wanted`: a user who names a fault beside "all" wants that one in any case. The
    groups in `first` come before the other groups.
    """
    for each in wanted:
        possible = [name for name in each if name in names]
        yield from possible and [chance.choice(possible)]
    first_of_group: dict[str, str] = {}
    for name in names:
        first_of_group.setdefault(FAULTS[name].group, name)
    for is_first in (True, False):
        group = [name for group, name in first_of_group.items() if (group in first) == is_first]
        yield from chance.sample(group, len(group))
    while names:
        yield from chance.sample(list(names), len(names))


def _fault(
    number: int,
    name: str,
    at_ns: int,
    until_ns: int,
    plan: Plan,
    owner: str,
    members: Membership,
    before: Sequence[Fault],
    system: HasAbilities,
) -> Fault | None:
    """One fault; None if it cannot be done to the members that there are then."""
    kind = FAULTS[name]
    action = ACTIONS[kind.does]
    chance = plan.streams()[f"fault {number}"]  # its own: how much one fault draws changes no other
    nodes = action.candidates(members.present, members.absent, plan.voters)
    if action.is_of_disks and plan.cluster != "sim":  # a simulated schedule stays as it was drawn before
        nodes = [node for node in nodes if node not in plan.expectations.without_disk]
    if not nodes or (members.absent and name != ADD and len(nodes) < kind.nodes_min):
        return None

    def options() -> Fields | None:
        return system.settings.drawn(name, plan, members, owner, chance, before)

    logs, lasts_ns = system.logs.torn, until_ns - at_ns
    drawn = kind.draw(Situation(nodes, owner, chance, lasts_ns, plan.heartbeat_ns, options, logs))
    if drawn is None:
        return None
    named: Any = drawn.get("nodes", ())
    if "on" not in drawn and members.why_not(kind.does, named):
        return None
    if kind.does == "restart" and members.absent and len(members.present) <= members.quorum:
        return None  # a cluster that needs every node left restarts none of them
    # The seed is drawn behind all that the fault itself draws: in front, every stored seed would be another run.
    fields = {"id": number, "name": name, "does": kind.does, "at_ns": at_ns, "until_ns": until_ns}
    return msgspec.convert({**fields, "seed": chance.getrandbits(32), **drawn}, Fault)
