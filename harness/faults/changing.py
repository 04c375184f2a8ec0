"""Partitions that change: one shape follows another, and nothing is healed between them.

A change closes its new links before it opens the old ones: a link that is in both shapes passes nothing meanwhile.
In one of three such faults some links stay cut all the while.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from harness.faults import partitions
from harness.faults.fault import Link, Shape

SHAPES = (
    partitions.isolate_one,
    partitions.halves,
    partitions.majorities_ring,
    partitions.bridge,
    partitions.one_way,
)
SHAPES_WITH_OWNER = (partitions.isolate_owner, *SHAPES)
MANY = (3, 7)
BEATS_MIN = 3
"""A shape that is shorter than so many heartbeats may have no effect on any node."""
FIRST_STEP_BEATS = (1.4, 2.4)
"""How many heartbeats the first step of a partition in steps lasts."""
_TRIES = 20


def draw_shapes(
    nodes: Sequence[str], owner: str, chance: random.Random, lasts_ns: int, heartbeat_ns: int
) -> tuple[Shape, ...]:
    """Two shapes at least, each other than the one before, and when each begins."""
    many = max(2, min(chance.randrange(*MANY), lasts_ns // (BEATS_MIN * heartbeat_ns)))
    stays = partitions.one_way(nodes, owner, chance)[:1] if chance.random() < 1 / 3 else ()
    shapes: list[tuple[Link, ...]] = []
    for _ in range(many):
        shapes.append(_another(nodes, owner, chance, stays, shapes[-1:]))
    shares = [chance.uniform(0.8, 1.2) for _ in shapes]
    begins = [int(lasts_ns * sum(shares[:place]) / sum(shares)) for place in range(many)]
    return tuple(
        Shape(after_ns=begin_ns, links=links) for begin_ns, links in zip(begins, shapes, strict=True)
    )


def draw_steps(
    nodes: Sequence[str], owner: str, chance: random.Random, lasts_ns: int, heartbeat_ns: int
) -> tuple[Shape, ...]:
    """One node, mostly the owner, is first deaf or mute, and a moment later cut off in both directions.

    Partitions come like this in practice, where one direction of a path fails, or one rule is set before the other: for
    a moment messages still arrive while their answers are lost, then nothing does. The moment is long enough to show.
    """
    node = owner if owner in nodes and chance.random() < 2 / 3 else chance.choice(list(nodes))
    others = [other for other in nodes if other != node]
    inwards = tuple((other, node) for other in others)
    outwards = tuple((node, other) for other in others)
    first = inwards if chance.random() < 0.5 else outwards
    after_ns = min(int(chance.uniform(*FIRST_STEP_BEATS) * heartbeat_ns), lasts_ns // 2)
    return Shape(after_ns=0, links=first), Shape(after_ns=after_ns, links=(*inwards, *outwards))


def _another(
    nodes: Sequence[str],
    owner: str,
    chance: random.Random,
    stays: Iterable[Link],
    before: Sequence[tuple[Link, ...]],
) -> tuple[Link, ...]:
    possible = SHAPES_WITH_OWNER if owner in nodes else SHAPES
    for _ in range(_TRIES):
        drawn = chance.choice(possible)(nodes, owner, chance)
        links = tuple(dict.fromkeys((*stays, *drawn)))
        if drawn and all({*links} != {*other} for other in before):
            return links
    # So few nodes that chance found the same again and again.
    whole = partitions.isolate(owner if owner in nodes else nodes[0], nodes)
    return whole if all({*whole} != {*other} for other in before) else whole[:1]


def all_links(shapes: Iterable[Shape]) -> tuple[Link, ...]:
    """Every link that is cut at some time."""
    return tuple(dict.fromkeys(link for shape in shapes for link in shape.links))
