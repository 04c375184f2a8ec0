"""Partitions: directed links pass nothing. Shapes after Jepsen's; `nodes` are the members, owner first.

A shape is a function from nodes and chance to the links that are cut, clients left out: clients reach every node.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from harness.faults.action import MILLISECOND_NS, Action, Draw, Kind
from harness.faults.fault import Evidence, Fault, Link
from harness.faults.hands import AtWork, Hands
from harness.faults.virtual import VirtualFault, VirtualHands, first

Shaping = Callable[[Sequence[str], str, random.Random], tuple[Link, ...]]


def between(one: Iterable[str], other: Iterable[str]) -> tuple[Link, ...]:
    """All links between two groups, both ways."""
    others = tuple(other)
    return tuple(link for a in one for b in others for link in ((a, b), (b, a)))


def isolate(node: str, nodes: Sequence[str]) -> tuple[Link, ...]:
    return between([node], [other for other in nodes if other != node])


def isolate_owner(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """The owner is cut off from all nodes, both ways: pending transactions must be rolled back or wait."""
    return isolate(owner, nodes)


def isolate_one(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """One node that is not the owner: a quorum remains, and afterwards the node has to catch up."""
    return isolate(chance.choice([node for node in nodes if node != owner]), nodes)


def halves(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """Two groups, one of them a majority (or, with an even number, none)."""
    shuffled = chance.sample(list(nodes), len(nodes))
    return between(shuffled[: len(nodes) // 2], shuffled[len(nodes) // 2 :])


def majorities_ring(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """Every node hears a majority, and no two nodes hear the same one."""
    ring = chance.sample(list(nodes), len(nodes))
    majority = len(ring) // 2 + 1
    return tuple(
        (ring[(place + step) % len(ring)], node)
        for place, node in enumerate(ring)
        for step in range(majority, len(ring))
    )


def bridge(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """Two groups that see each other only through one node that sees both."""
    shuffled = chance.sample(list(nodes), len(nodes))
    middle = (len(nodes) - 1) // 2
    return between(shuffled[:middle], shuffled[middle + 1 :])


def one_way(nodes: Sequence[str], owner: str, chance: random.Random) -> tuple[Link, ...]:
    """One node is deaf (receives nothing) or mute (reaches no node). Bytes are stopped one way; TCP itself is not."""
    node = chance.choice(list(nodes))
    others = [other for other in nodes if other != node]
    if chance.random() < 0.5:
        return tuple((other, node) for other in others)
    return tuple((node, other) for other in others)


class VirtualCut(VirtualFault):
    """Took effect if bytes were withheld for longer than a heartbeat."""

    async def begin(self) -> None:
        self.hands.network.cut(self.fault.links)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        fault, network = self.fault, self.hands.network
        # First: a connection that is reset takes what it withheld along.
        effects = network.take_effects(fault.links)
        reset = network.heal(fault.links, random.Random(fault.seed))
        longest_ns = max(effect.longest_withheld_ns for effect in effects.values())
        counters = {
            "links_used": sum(map(network.is_used, fault.links)),
            "withheld": sum(effect.withheld for effect in effects.values()),
            "longest_withheld_ms": longest_ns // MILLISECOND_NS,
            "reset": reset,
        }
        first_ns = first(effect.first_withheld_ns for effect in effects.values())
        healed = await self.traffic_passes(fault.links)
        return self.evidence(longest_ns > self.hands.heartbeat_ns, counters, first_ns=first_ns, healed=healed)


def shaped(shape: Shaping) -> Draw:
    return lambda situation: {"links": shape(situation.nodes, situation.leader, situation.chance)}


def partition(
    name: str, summary: str, shape: Shaping, nodes_min: int = 2, *, needs_leader: bool = False
) -> Kind:
    return Kind(
        name=name,
        group="partition",
        summary=summary,
        draw=shaped(shape),
        nodes_min=nodes_min,
        needs_leader=needs_leader,
    )


class Cut(Action):
    """The directed `links` (source, target) pass nothing, silently. On healing, connections with held bytes go on or
    are reset, drawn from `seed`."""

    does = "cut"
    kinds = (
        partition(
            "isolate-owner", "the owner is cut off from all other nodes", isolate_owner, needs_leader=True
        ),
        partition("isolate-one", "one replica is cut off from all other nodes", isolate_one),
        partition("halves", "two groups that cannot talk", halves),
        partition("majorities-ring", "every node hears another majority", majorities_ring, 3),
        partition("bridge", "two groups joined by one node", bridge, 3),
        partition("one-way", "one node receives nothing, or reaches no node", one_way),
    )
    fields = ("links",)
    packets = "filtered"

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualCut(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return hands.links.cut(fault)
