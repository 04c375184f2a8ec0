"""Faults that this machine, or this user, cannot do: what "all" leaves out here, and what is refused.

| faults | cluster | need |
|---|---|---|
| of the network | docker | packet rules (nftables, root) |
| slow, jitter, reorder, bandwidth | docker | packets that a program holds (NFQUEUE) too |
| of cores and memory | local, docker | groups of processes; those of containers must be seen |
| those that the system names (`why_not_here`) | local | what the system says: libfaketime for clocks of Tarantool |

A fault that the user names is refused. A fault that only "all" asks for is left out. The plan of
such a run leaves it out by name ("-clock"), so that the line that repeats the run draws the same on another machine.
Faults of disks under a store with no disk layer of ours are never among "all".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from harness.errors import WrongUse
from harness.faults.fault import Does
from harness.faults.overlap import LIMITS
from harness.faults.table import FAULTS, TOGETHER, which
from harness.plan.plan import LEAVES_OUT, Plan
from harness.plan.schedule import names_for
from harness.systems.system import System

Look = Callable[[], str]
NOT_HERE = "not-here"
"""A line of the harness: faults that "all" left out on this machine, and why."""
SHAPED = which(lambda action: action.packets == "shaped")
PACKETS = which(lambda action: action.packets != "")
"""The effects that the cluster docker has by packet rules. A node that loses its power is cut off first."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Faults that cannot be done here, all for one reason."""

    names: tuple[str, ...]
    why: str


def without_what_it_lacks(plan: Plan, system: System) -> tuple[Plan, tuple[Lack, ...]]:
    """The plan, with all that only "all" asks for and that cannot be done here left out by name."""
    if plan.drawn is not None or not plan.asks_for_all:
        return plan, ()
    named = {fault for word in plan.faults for fault in TOGETHER.get(word, (word,))}
    lacks = _lacks(plan, system, [each for each in _asked(plan, system) if each[0] not in named])
    words = tuple(f"{LEAVES_OUT}{name}" for lack in lacks for name in lack.names)
    return msgspec.structs.replace(plan, faults=(*plan.faults, *words)) if words else plan, lacks


def refuse_what_it_lacks(plan: Plan, system: System) -> None:
    """WrongUse for a fault of the plan that cannot be done here."""
    for lack in _lacks(plan, system, _asked(plan, system)):
        faults = f"the fault{'s' * (len(lack.names) > 1)} {', '.join(lack.names)}"
        raise WrongUse(f"this run has {faults}, which cannot take effect on this machine: {lack.why}")


def needs_packet_rules(plan: Plan, system: System) -> bool:
    return any(does in PACKETS for _, does in _asked(plan, system))


def _asked(plan: Plan, system: System) -> list[tuple[str, Does]]:
    """Name and action of all faults that the plan may have; in a drawn-out one a name may have several actions."""
    if plan.drawn is not None:
        return list(dict.fromkeys((fault.name, fault.does) for fault in plan.drawn.faults))
    return [(name, FAULTS[name].does) for name in names_for(plan, system.abilities)]


def _lacks(plan: Plan, system: System, asked: Sequence[tuple[str, Does]]) -> tuple[Lack, ...]:
    reasons: dict[str, list[str]] = {}
    known: dict[Look, str] = {}
    for name, does in asked:
        for look in _looks(does, plan, system):
            why = known[look] if look in known else known.setdefault(look, look())
            if why:
                reasons.setdefault(why, []).append(name)
                break
    return tuple(Lack(tuple(faults), why) for why, faults in reasons.items())


def _looks(does: Does, plan: Plan, system: System) -> Iterator[Look]:
    """Functions that give the reason why such a fault cannot be done here; "" if it can."""
    if plan.cluster == "docker" and does in PACKETS:
        from harness.cluster.containers import packet_filter
        from harness.cluster.containers.shaping import presence

        yield packet_filter.why_not
        if does in SHAPED:
            yield presence.why_not
    if does in LIMITS and plan.cluster == "local":
        yield why_no_limits
    if does in LIMITS and plan.cluster == "docker":
        from harness.cluster.limits.group import why_not_of_others

        yield why_not_of_others
    if plan.cluster == "local":
        yield partial(system.why_not_here, frozenset((does,)))


def why_no_limits() -> str:
    """Why local nodes cannot be limited here; "" if they can."""
    from harness.cluster.limits.enclosure import why_not

    why = why_not()
    return f"{why}; try: sudo, or --cluster docker" if why else ""
