"""The drawn fields of a fault, in which one differs from the next of its name.

Each function takes the nodes, the leader ("" if there is none) and the chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from harness.faults.fault import Damage, Link

MILLISECOND_NS = 1_000_000

Draw = Callable[[Sequence[str], str, random.Random], dict[str, object]]


def cut(shape: Callable[[Sequence[str], str, random.Random], tuple[Link, ...]]) -> Draw:
    return lambda nodes, leader, chance: {"links": shape(nodes, leader, chance)}


def by_the_schedule(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """The schedule draws it: it knows how long shapes last, and what nodes are set to."""
    return {}


def leader_or_one(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    is_leader = chance.random() < 0.5 and leader
    return {"nodes": (leader if is_leader else chance.choice(list(nodes)),)}


def leader(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (leader or chance.choice(list(nodes)),)}


def everyone(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": tuple(nodes)}


def another(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (chance.choice([node for node in nodes if node != leader]),)}


def slow(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """All links of one node, or all links."""
    node = chance.choice([*nodes, None])
    links = tuple((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
    delay_ns = chance.randrange(20, 80) * MILLISECOND_NS
    return {"links": links, "delay_ns": delay_ns, "jitter_ns": delay_ns // 2}


def jitter(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """Every delay between none and twice the mean is as likely."""
    drawn = slow(nodes, leader, chance)
    return {**drawn, "jitter_ns": drawn["delay_ns"]}


def reorder(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {
        "links": slow(nodes, leader, chance)["links"],
        "delay_ns": chance.randrange(10, 50) * MILLISECOND_NS,
        "percent": chance.randrange(20, 50),
    }


def narrow(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """All links of the leader, which sends most, or all links: less than a hundred writes a second need."""
    node = chance.choice((leader or chance.choice(list(nodes)), None))
    links = tuple((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
    return {"links": links, "bytes_per_s": chance.randrange(6, 25) * 1000}


def lossy(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """All links of one node, or all links; 30 % is where TCP still gets through."""
    return {"links": slow(nodes, leader, chance)["links"], "percent": 30}


def clock(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """The wall clock jumps by up to an hour either way; the monotonic one drifts by up to 5 %."""
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1, 3_600_000) * MILLISECOND_NS
    drift_ppm = chance.choice((-1, 1)) * chance.randrange(10_000, 50_000)
    return {"nodes": (chance.choice(list(nodes)),), "jump_ns": jump_ns, "drift_ppm": drift_ppm}


def strobe(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """By up to an hour either way, there and back several times a second or so."""
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1_000, 3_600_000) * MILLISECOND_NS
    delay_ns = chance.randrange(50, 400) * MILLISECOND_NS
    return {"nodes": (chance.choice(list(nodes)),), "jump_ns": jump_ns, "delay_ns": delay_ns}


def slow_disk(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    delay_ns = chance.randrange(50, 400) * MILLISECOND_NS
    return {**leader_or_one(nodes, leader, chance), "delay_ns": delay_ns}


def full_disk(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {**leader_or_one(nodes, leader, chance), "error": "ENOSPC"}


def io_error(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """Of writes, or of syncs after writes that succeeded."""
    return {**leader_or_one(nodes, leader, chance), "error": "EIO", "at_sync": chance.random() < 0.5}


def core_share(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """So little that a node which has anything to do is made to wait."""
    return {**leader_or_one(nodes, leader, chance), "percent": chance.randrange(3, 10)}


def damage(damage: Damage) -> Draw:
    return lambda nodes, leader, chance: {**leader_or_one(nodes, leader, chance), "damage": damage}


def in_turn(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": tuple(chance.sample(list(nodes), len(nodes)))}


def next_node(nodes: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    """The schedule knows which node is next."""
    return {"nodes": tuple(nodes[:1])}


def newcomer(absent: Sequence[str], leader: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (chance.choice(list(absent)),)}
