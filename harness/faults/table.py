"""The table of faults. A new one is a function and a line here.

`group` is what faults of different names have in common: a schedule takes one of each group before it repeats any.
`clusters` says where it can be done. All faults of this table are such that a correct system must *survive* them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.faults import partitions
from harness.faults.fault import Does, Link

MILLISECOND_NS = 1_000_000
EVERYWHERE = ("local", "docker", "sim")
RELAYED = ("local", "sim")
SIMULATED = ("sim",)

FAILOVER = "failover"
HOLDS = "holds"

Draw = Callable[[Sequence[str], str, random.Random], dict[str, object]]
"""(nodes, owner, chance) → the fields of the `Fault` that differ from one to the next."""


@dataclass(frozen=True, slots=True)
class Kind:
    summary: str
    group: str
    does: Does
    draw: Draw
    clusters: tuple[str, ...] = EVERYWHERE
    nodes_min: int = 1


def _cut(shape: Callable[[Sequence[str], str, random.Random], tuple[Link, ...]]) -> Draw:
    return lambda nodes, owner, chance: {"links": shape(nodes, owner, chance)}


def _owner_or_one(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (owner if chance.random() < 0.5 else chance.choice(list(nodes)),)}


def _owner(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (owner,)}


def _everyone(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": tuple(nodes)}


def _another(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (chance.choice([node for node in nodes if node != owner]),)}


def _slow(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """All links of one node, or all links."""
    node = chance.choice([*nodes, None])
    links = tuple((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
    delay_ns = chance.randrange(20, 80) * MILLISECOND_NS
    return {"links": links, "delay_ns": delay_ns, "jitter_ns": delay_ns // 2}


def _clock(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The wall clock jumps by up to an hour either way; the monotonic one drifts by up to 5 %."""
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1, 3_600_000) * MILLISECOND_NS
    drift_ppm = chance.choice((-1, 1)) * chance.randrange(10_000, 50_000)
    return {"nodes": (chance.choice(list(nodes)),), "jump_ns": jump_ns, "drift_ppm": drift_ppm}


FAULTS: dict[str, Kind] = {
    "isolate-owner": Kind(
        "the owner is cut off from all others",
        "partition",
        "cut",
        _cut(partitions.isolate_owner),
        nodes_min=2,
    ),
    "isolate-one": Kind(
        "one replica is cut off from all others",
        "partition",
        "cut",
        _cut(partitions.isolate_one),
        nodes_min=2,
    ),
    "halves": Kind("two groups that cannot talk", "partition", "cut", _cut(partitions.halves), nodes_min=2),
    "majorities-ring": Kind(
        "every node hears another majority", "partition", "cut", _cut(partitions.majorities_ring), nodes_min=3
    ),
    "bridge": Kind("two groups joined by one node", "partition", "cut", _cut(partitions.bridge), nodes_min=3),
    "one-way": Kind(
        "one node hears nobody, or nobody hears it", "partition", "cut", _cut(partitions.one_way), nodes_min=2
    ),
    "kill": Kind("kill -9 and restart", "kill", "kill", _owner_or_one),
    "pause": Kind("a process is stopped and goes on", "pause", "pause", _owner_or_one),
    "slow": Kind("links are slow", "slow", "slow", _slow, RELAYED, nodes_min=2),
    FAILOVER: Kind("another node is promoted", "failover", "failover", _another, nodes_min=2),
    "power-owner": Kind(
        "the owner loses power: unsynced bytes are gone", "power", "power", _owner, SIMULATED
    ),
    "power-all": Kind("all nodes lose power at once", "power", "power", _everyone, SIMULATED),
    "clock": Kind("a wall clock jumps, a monotonic clock drifts", "clock", "clock", _clock),
    HOLDS: Kind(
        "beside the others: messages of a kind are held, disks are slow, nodes die at a moment (not among all)",
        "directed",
        "hold",
        _owner,
        SIMULATED,
        nodes_min=2,
    ),
}


DIRECTED: frozenset[Does] = frozenset(("hold", "slow-disk"))


def can_do(cluster: str) -> frozenset[Does]:
    """What the faults of a cluster come down to, by the table; and in the simulator, whose moments are known, holds."""
    drawn = frozenset(kind.does for kind in FAULTS.values() if cluster in kind.clusters)
    return drawn | DIRECTED if cluster in SIMULATED else drawn
