"""The common part of all faults.

An *action* is what a fault does: a class in a file of its own. It says which names of the table it has and how each is
drawn, what excludes it, and how it is carried out: over a world of virtual nodes (`virtual`), or with what a cluster of
real nodes offers (`real`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from harness.errors import WrongUse
from harness.faults.abilities import Ability
from harness.faults.fault import Does, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.virtual import VirtualHands
from harness.faults.where import EVERYWHERE, Where

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
RECOVERY_NS = SECOND_NS * 12 // 10
"""How long whole nodes take to recover."""

Fields = dict[str, object]
"""The fields of a `Fault` that differ between faults of one name."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The nodes that a fault may affect, and for how long. `leader` is "" if there is none."""

    nodes: Sequence[str]
    leader: str
    chance: random.Random
    lasts_ns: int
    heartbeat_ns: int
    options: Callable[[], Fields | None]
    """Draws the changed options of a fault of this name; None if the system can change nothing now."""
    logs: tuple[str, ...]
    """Patterns of the names of logs that may be damaged."""


Draw = Callable[[Situation], Fields | None]
"""None: it cannot be done now."""


@runtime_checkable
class ChangingAtWork(AtWork, Protocol):
    """A partition that can change its shape."""

    async def change(self, number: int) -> None:
        """Switch to the shape of that number; links cut in both shapes stay cut throughout."""
        ...


def changing(at_work: AtWork) -> ChangingAtWork:
    assert isinstance(at_work, ChangingAtWork), "it has one shape"
    return at_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A name in the table of faults. A schedule takes one of each `group` before it repeats any.

    `must`: a correct system survives most faults; those that destroy safely written data it may only detect. To refuse
    to start is right then; wrong data are an anomaly all the same. "All" faults are those to be survived. `where`: the
    clusters that can do it. `lasts`: how long, of the time that was drawn and whether nodes are real.
    """

    name: str
    summary: str
    group: str
    draw: Draw
    where: Where = EVERYWHERE
    nodes_min: int = 1
    must: Literal["survive", "detect"] = "survive"
    needs_leader: bool = False
    ability: Ability | None = None
    """Beside the ability that its action needs."""
    lasts: Callable[[int, bool], int] = lambda drawn_ns, is_real: drawn_ns
    action: Action | None = None
    """Filled in by the table."""

    @property
    def does(self) -> Does:
        assert self.action is not None
        return self.action.does

    def is_among_all(self, cluster: str, able: frozenset[Ability]) -> bool:
        assert self.action is not None
        lacks = self.action.lacking_of(able) or (self.ability is not None and self.ability not in able)
        return self.where.is_among_all(cluster) and self.must == "survive" and not lacks


class Action:
    """An action. The docstring of each subclass says what it does, and when it took effect."""

    does: ClassVar[Does]
    kinds: ClassVar[tuple[Kind, ...]] = ()
    """Its names in the table."""
    fields: ClassVar[tuple[str, ...]] = ("nodes",)
    """The fields of a `Fault` without which the action would do nothing."""
    is_of_one: ClassVar[bool] = False
    """`nodes` is one node."""
    ability: ClassVar[Ability | None] = None
    """The ability that a system needs so that it can take effect."""

    # Exclusion (`overlap`): for example, only one action at a time stops a node's processes.
    stops_processes: ClassVar[bool] = False
    fails_writes: ClassVar[bool] = False
    limits_nodes: ClassVar[bool] = False
    takes_memory: ClassVar[bool] = False
    orders_disks: ClassVar[bool] = False
    sets_clocks: ClassVar[bool] = False
    is_of_disks: ClassVar[bool] = False
    """It does nothing to a node that writes nothing."""
    changes_members: ClassVar[bool] = False
    is_step: ClassVar[bool] = False
    """It brings one node to another version."""
    is_administered: ClassVar[bool] = False
    """An operator does it to a working cluster: one at a time."""
    hinders_owner: ClassVar[bool] = True
    recovers_slowly: ClassVar[bool] = False
    """Real nodes find each other anew, and elect, before they serve again."""
    packets: ClassVar[Literal["", "filtered", "shaped"]] = ""
    """How the cluster docker carries it out on packets."""

    def candidates(self, present: Sequence[str], absent: Sequence[str], voters: frozenset[str]) -> list[str]:
        """The nodes to which it may be done. `voters` never lead."""
        return list(present)

    def lacking_of(self, able: frozenset[Ability]) -> Ability | None:
        """The ability that the action needs and the system lacks; None if it lacks none."""
        return None if self.ability is None or self.ability in able else self.ability

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        """In the simulator."""
        raise WrongUse(f"fault {fault.name}: --cluster sim cannot do {self.does!r}")

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        """On real nodes."""
        raise WrongUse(f"fault {fault.name}: --cluster {hands.name} cannot do {self.does!r}")


def by_the_schedule(situation: Situation) -> Fields:
    """The node that the schedule chose; or, in a scene, that the moment decides."""
    return {"nodes": tuple(situation.nodes[:1])}


def leader_or_one(situation: Situation) -> Fields:
    is_leader = situation.chance.random() < 0.5 and situation.leader
    return {"nodes": (situation.leader if is_leader else situation.chance.choice(list(situation.nodes)),)}


def leader(situation: Situation) -> Fields:
    return {"nodes": (situation.leader or situation.chance.choice(list(situation.nodes)),)}


def everyone(situation: Situation) -> Fields:
    return {"nodes": tuple(situation.nodes)}


def anyone(situation: Situation) -> Fields:
    return {"nodes": (situation.chance.choice(list(situation.nodes)),)}


def another(situation: Situation) -> Fields:
    others = [node for node in situation.nodes if node != situation.leader]
    return {"nodes": (situation.chance.choice(others),)}


def in_turn(situation: Situation) -> Fields:
    return {"nodes": tuple(situation.chance.sample(list(situation.nodes), len(situation.nodes)))}


def by_the_system(situation: Situation) -> Fields | None:
    """The options that the system draws."""
    return situation.options()


def links_of_one_or_all(situation: Situation) -> Iterator[tuple[str, str]]:
    """All links of one node, or all links."""
    nodes = situation.nodes
    node = situation.chance.choice([*nodes, None])
    return ((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
