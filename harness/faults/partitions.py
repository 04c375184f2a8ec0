"""Partitions: which directed links pass nothing. Shapes after Jepsen's; `members` are the nodes, owner first.

A shape is a function from nodes and chance to the links that are cut, clients left out: clients reach every node.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from harness.faults.fault import Link


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
