"""The table of faults. A new one is a function and a line here.

`group` is what faults of different names have in common: a schedule takes one of each group before it repeats any.
`clusters` says where it can be done; why not elsewhere, `CANNOT` says. A correct system must *survive* most; some,
which take away what was safely on disk, it may only *detect*: to refuse to start is right then, wrong data are an
anomaly all the same. "All" faults are those to be survived.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.faults import partitions
from harness.faults.abilities import ALL_ABILITIES, LACKS, NEEDED, Ability
from harness.faults.fault import Damage, Does, Link
from harness.faults.rollout import DOWNGRADE, UPGRADE
from harness.run.node_options import RECONFIGURING

MILLISECOND_NS = 1_000_000
EVERYWHERE = ("local", "docker", "ssh", "sim")
REAL = ("local", "docker", "ssh")
CONTAINED = ("docker",)
UPGRADABLE = ("local", "docker", "ssh")
SIMULATED = ("sim",)

LIMITED = ("local", "docker", "ssh")
WHERE_IT_MAY = ("local", "ssh")
"""Whether groups of processes can be limited there depends on the machine and on who one is: so it is asked for by
name. Whoever can start containers can limit them."""

CHANGING = "changing-partitions"
IN_STEPS = "partition-in-steps"
FAILOVER = "failover"
OOM = "oom"
REMOVE, ADD = "remove-node", "add-node"
QUORUM, TIMEOUTS = "quorum", "timeouts"
RECONFIGURE, RECONFIGURE_AT, OTHERWISE = RECONFIGURING
FACTORS = (0.5, 0.7, 1.5, 2.0)
"""By what timeouts are multiplied."""
HOLDS = "holds"
MOMENTS = "moments"
SCENIC = (HOLDS, MOMENTS)
"""Scenes of directed faults, which go on beside all others and are not among "all"."""
POWER_ALL = "power-all"
MOUNTED = ("local", "docker")
"""Clusters on which a disk is mounted under nodes of other systems (`harness.cluster.mounted_disk`)."""

Draw = Callable[[Sequence[str], str, random.Random], dict[str, object]]
"""(nodes, owner, chance) → the fields of the `Fault` that differ from one to the next."""
Must = Literal["survive", "detect"]


@dataclass(frozen=True, slots=True)
class Kind:
    summary: str
    group: str
    does: Does
    draw: Draw
    clusters: tuple[str, ...] = EVERYWHERE
    nodes_min: int = 1
    must: Must = "survive"
    only_named: tuple[str, ...] = ()
    """Clusters in which "all" leaves it out."""
    needs_leader: bool = False

    def is_among_all(self, cluster: str, able: frozenset[Ability]) -> bool:
        return (
            cluster in self.clusters
            and cluster not in self.only_named
            and self.must == "survive"
            and not lacking(self.does, able)
        )


def _cut(shape: Callable[[Sequence[str], str, random.Random], tuple[Link, ...]]) -> Draw:
    return lambda nodes, owner, chance: {"links": shape(nodes, owner, chance)}


def _shaped_later(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The schedule draws the shapes, for it knows how long they last."""
    return {}


def _owner_or_one(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    is_owner = chance.random() < 0.5 and owner
    return {"nodes": (owner if is_owner else chance.choice(list(nodes)),)}


def _owner(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (owner or chance.choice(list(nodes)),)}


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


def _jitter(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """Every delay between none and twice the mean is as likely."""
    drawn = _slow(nodes, owner, chance)
    return {**drawn, "jitter_ns": drawn["delay_ns"]}


def _reorder(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {
        "links": _slow(nodes, owner, chance)["links"],
        "delay_ns": chance.randrange(10, 50) * MILLISECOND_NS,
        "percent": chance.randrange(20, 50),
    }


def _narrow(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The owner's links, which carry most, or all links: less than a hundred writes a second need."""
    node = chance.choice((owner or chance.choice(list(nodes)), None))
    links = tuple((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
    return {"links": links, "bytes_per_s": chance.randrange(6, 25) * 1000}


def _lossy(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """All links of one node, or all links; 30 % is where TCP still gets through."""
    return {"links": _slow(nodes, owner, chance)["links"], "percent": 30}


def _clock(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The wall clock jumps by up to an hour either way; the monotonic one drifts by up to 5 %."""
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1, 3_600_000) * MILLISECOND_NS
    drift_ppm = chance.choice((-1, 1)) * chance.randrange(10_000, 50_000)
    return {"nodes": (chance.choice(list(nodes)),), "jump_ns": jump_ns, "drift_ppm": drift_ppm}


def _strobe(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """By up to an hour either way, there and back several times a second or so."""
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1_000, 3_600_000) * MILLISECOND_NS
    delay_ns = chance.randrange(50, 400) * MILLISECOND_NS
    return {"nodes": (chance.choice(list(nodes)),), "jump_ns": jump_ns, "delay_ns": delay_ns}


def _slow_disk(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    delay_ns = chance.randrange(50, 400) * MILLISECOND_NS
    return {**_owner_or_one(nodes, owner, chance), "delay_ns": delay_ns}


def _full_disk(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {**_owner_or_one(nodes, owner, chance), "error": "ENOSPC"}


def _io_error(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """Of writes, or of syncs after writes that succeeded."""
    return {**_owner_or_one(nodes, owner, chance), "error": "EIO", "at_sync": chance.random() < 0.5}


def _little_of_a_core(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """So little that a node which has anything to do is made to wait."""
    return {**_owner_or_one(nodes, owner, chance), "percent": chance.randrange(3, 10)}


def _damage(damage: Damage) -> Draw:
    return lambda nodes, owner, chance: {**_owner_or_one(nodes, owner, chance), "damage": damage}


def _in_turn(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": tuple(chance.sample(list(nodes), len(nodes)))}


def _whose_turn_it_is(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The schedule replaces this node by the one whose turn it is."""
    return {"nodes": tuple(nodes[:1])}


def _newcomer(absent: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    return {"nodes": (chance.choice(list(absent)),)}


def _quorum(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """Greater than what it is, and not greater than N: what was confirmed before it had less."""
    least = len(nodes) // 2 + 2
    return {
        "nodes": tuple(nodes),
        "options": {"replication_synchro_quorum": chance.randrange(least, len(nodes) + 1)},
    }


def _option(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """The schedule draws it, which knows what nodes are set to."""
    return {}


def _timeouts(nodes: Sequence[str], owner: str, chance: random.Random) -> dict[str, object]:
    """One of them, by a factor: the schedule makes seconds of it."""
    names = ("replication_synchro_timeout", "election_timeout", "replication_timeout")
    return {"nodes": tuple(nodes), "options": {chance.choice(names): chance.choice(FACTORS)}}


FAULTS: dict[str, Kind] = {
    "isolate-owner": Kind(
        "the owner is cut off from all others",
        "partition",
        "cut",
        _cut(partitions.isolate_owner),
        nodes_min=2,
        needs_leader=True,
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
    CHANGING: Kind(
        "one partition after another, of ever other shape, and nothing is healed between",
        "partition",
        "changing-cut",
        _shaped_later,
        nodes_min=2,
    ),
    IN_STEPS: Kind(
        "one node, mostly the owner, is cut off in one direction first, and a moment later in both",
        "partition in steps",
        "changing-cut",
        _shaped_later,
        nodes_min=2,
        only_named=EVERYWHERE,
    ),
    "kill": Kind("kill -9 and restart", "kill", "kill", _owner_or_one),
    "pause": Kind("a process is stopped and goes on", "pause", "pause", _owner_or_one),
    "slow": Kind("links are slow", "slow", "slow", _slow, nodes_min=2),
    "jitter": Kind(
        "links are slow by ever other times, from not at all to twice the mean",
        "slow",
        "jitter",
        _jitter,
        nodes_min=2,
        only_named=SIMULATED,
    ),
    "reorder": Kind(
        "some of what a link carries comes late, and what is behind overtakes it",
        "slow",
        "reorder",
        _reorder,
        ("docker", "sim"),
        nodes_min=2,
        only_named=SIMULATED,
    ),
    "bandwidth": Kind(
        "so many bytes a second pass a link and no more",
        "slow",
        "bandwidth",
        _narrow,
        nodes_min=2,
        only_named=SIMULATED,
    ),
    FAILOVER: Kind("another node is promoted", "failover", "failover", _another, nodes_min=2),
    "terminate": Kind("SIGTERM and restart", "terminate", "terminate", _owner_or_one, REAL),
    "loss": Kind("three packets of ten are lost", "loss", "loss", _lossy, CONTAINED, nodes_min=2),
    "power-owner": Kind(
        "the owner loses power: unsynced bytes are gone",
        "power",
        "power",
        _owner,
    ),
    "power-one": Kind(
        "a replica loses power",
        "power",
        "power",
        _another,
        nodes_min=2,
        only_named=SIMULATED,
    ),
    POWER_ALL: Kind("all nodes lose power at once", "power", "power", _everyone),
    "slow-disk": Kind(
        "every fsync takes long",
        "slow-disk",
        "slow-fsync",
        _slow_disk,
        only_named=SIMULATED,
    ),
    "full-disk": Kind(
        "writes fail: no space is left",
        "disk",
        "disk-error",
        _full_disk,
        only_named=SIMULATED,
    ),
    "io-error": Kind("writes or syncs fail: EIO", "disk", "disk-error", _io_error, REAL),
    "torn-tail": Kind(
        "killed in the middle of a write: half a record ends the log",
        "damage",
        "damage",
        _damage("torn-tail"),
        REAL,
    ),
    "truncated-tail": Kind(
        "killed, and the end of the log is gone, synced or not",
        "damage",
        "damage",
        _damage("truncated-tail"),
        REAL,
        must="detect",
    ),
    "bit-flip": Kind(
        "killed, and a bit in the middle of the log is another",
        "damage",
        "damage",
        _damage("bit-flip"),
        REAL,
        must="detect",
    ),
    "clock": Kind("a wall clock jumps, a monotonic clock drifts", "clock", "clock", _clock),
    "clock-strobe": Kind(
        "a wall clock jumps away and back again, several times a second",
        "clock",
        "clock",
        _strobe,
        only_named=SIMULATED,
    ),
    "cpu-limit": Kind(
        "a node gets a small share of one core",
        "cpu",
        "cpu-limit",
        _little_of_a_core,
        LIMITED,
        only_named=WHERE_IT_MAY,
    ),
    "memory-limit": Kind(
        "a node has hardly more memory than it cannot do without",
        "memory",
        "memory-limit",
        _owner_or_one,
        LIMITED,
        only_named=WHERE_IT_MAY,
    ),
    OOM: Kind(
        "there is no memory left for a node, and the kernel ends it; restart",
        "memory",
        "oom",
        _owner_or_one,
        LIMITED,
        only_named=WHERE_IT_MAY,
    ),
    REMOVE: Kind(
        "a node leaves the cluster: it is stopped, and nobody counts it any more",
        "membership",
        "remove",
        _another,
        nodes_min=3,
        only_named=EVERYWHERE,
    ),
    ADD: Kind(
        "where one had left a fresh node comes, with an identity of its own",
        "joining",
        "add",
        _newcomer,
        nodes_min=3,
        only_named=EVERYWHERE,
    ),
    "replace-node": Kind(
        "a node loses its disk, and one with another identity takes its place",
        "membership",
        "replace",
        _another,
        nodes_min=3,
        only_named=EVERYWHERE,
    ),
    TIMEOUTS: Kind(
        "a timeout (synchro, election, replication) is another on all nodes for a while",
        "configuration",
        "options",
        _timeouts,
        only_named=EVERYWHERE,
    ),
    QUORUM: Kind(
        "the quorum is greater on all nodes for a while; no linearizable reads are promised then",
        "configuration",
        "options",
        _quorum,
        nodes_min=3,
        only_named=EVERYWHERE,
    ),
    RECONFIGURE: Kind(
        "an option is another for a while, on one node or on all in turn (election mode, fencing, timeouts, …)",
        "configuration",
        "options",
        _option,
        SIMULATED,
        only_named=EVERYWHERE,
    ),
    RECONFIGURE_AT: Kind(
        "the same on one node in the middle of an election, a promotion, a join or a read",
        "configuration",
        "options",
        _option,
        SIMULATED,
        only_named=EVERYWHERE,
    ),
    OTHERWISE: Kind(
        "all nodes restarted with another option, in turn or at once, and later with the former one",
        "rolling",
        "restart",
        _option,
        SIMULATED,
        only_named=EVERYWHERE,
    ),
    "rolling-restart": Kind(
        "SIGTERM and restart, one node after the other",
        "rolling",
        "restart",
        _in_turn,
        only_named=EVERYWHERE,
    ),
    UPGRADE: Kind(
        "SIGTERM, and the newer version on the same data: one node after the other, other faults between",
        "rolling",
        "upgrade",
        _whose_turn_it_is,
        UPGRADABLE,
        nodes_min=2,
        only_named=EVERYWHERE,
    ),
    DOWNGRADE: Kind(
        "after a rolling upgrade the way back to the older version",
        "rolling",
        "downgrade",
        _whose_turn_it_is,
        UPGRADABLE,
        nodes_min=2,
        only_named=EVERYWHERE,
    ),
    HOLDS: Kind(
        "beside the others: messages of a kind are held, disks are slow, nodes die at a moment (not among all)",
        "directed",
        "hold",
        _owner,
        SIMULATED,
        nodes_min=2,
        needs_leader=True,
    ),
    MOMENTS: Kind(
        "as holds, but all is drawn: which moment, whose, what is held or slow or full, who dies (not among all)",
        "directed",
        "hold",
        _owner,
        SIMULATED,
        needs_leader=True,
    ),
}


DIRECTED: frozenset[Does] = frozenset(("hold", "slow-disk"))

TOGETHER: Mapping[str, tuple[str, ...]] = {
    "lose-unsynced": ("power-owner", "power-one", "power-all"),
    "membership": (REMOVE, ADD, "replace-node"),
    "rolling": ("rolling-restart", UPGRADE),
}
"""Names that stand for several."""

_ONE_CODE = "the simulator runs the nodes of this checkout, in one process"
_ONE_STREAM = (
    "the relay passes on byte streams, in which nothing can overtake: packets can, see --cluster docker"
)
_LIMITS = ("cpu-limit", "memory-limit", OOM)
_NO_MACHINE = "virtual nodes share no machine: their work takes no time and no memory"
_STARTED_ANEW = "there nodes start with the options that they had; try the faults timeouts and quorum"
_BY_MOMENT = "only virtual time knows what a node is about to do"
CANNOT: Mapping[tuple[str, str], str] = {
    ("reorder", "local"): _ONE_STREAM,
    ("reorder", "ssh"): _ONE_STREAM,
    ("loss", "local"): "the relay may drop no byte of a live connection: that would be corruption, not loss",
    ("loss", "sim"): "a virtual stream loses bytes only when its connection dies, as TCP's do",
    **{(name, "sim"): _NO_MACHINE for name in _LIMITS},
    ("terminate", "sim"): "a virtual process has nothing to do before it ends: the same as kill",
    ("io-error", "sim"): "a virtual write fails like any other, whatever the error: see full-disk",
    ("torn-tail", "sim"): "power losses tear the ends of virtual logs",
    ("truncated-tail", "sim"): "what is synced on a virtual disk stays",
    ("bit-flip", "sim"): "what is synced on a virtual disk stays",
    **{(name, cluster): _BY_MOMENT for name in SCENIC for cluster in REAL},
    **{(name, "sim"): _ONE_CODE for name in (UPGRADE, DOWNGRADE)},
    **{(name, cluster): _STARTED_ANEW for name in RECONFIGURING for cluster in REAL},
    ("loss", "ssh"): "the relays may drop no byte of a live connection: that would be corruption, not loss",
}


def lacking(does: Does, able: frozenset[Ability]) -> Ability | None:
    """The ability that a system lacks so that this can take effect on its nodes; None if it lacks none."""
    needed = NEEDED.get(does)
    return None if needed is None or needed in able else needed


def why_not(name: str, cluster: str, able: frozenset[Ability] = ALL_ABILITIES, system: str = "qsync") -> str:
    """Why this fault cannot be done there to a system of these abilities; "" if it can."""
    kind = FAULTS[name]
    if cluster not in kind.clusters:
        return CANNOT.get((name, cluster), f"nothing does it on --cluster {cluster}")
    return why_not_to(kind.does, cluster, able, system)


def why_not_to(does: Does, cluster: str, able: frozenset[Ability], system: str) -> str:
    """The same of what a fault does: a disk can be mounted under nodes that have no disk layer of ours."""
    lack = lacking(does, able)
    if lack is None or (lack == "disk layer" and cluster in MOUNTED):
        return ""
    return f"{system} {LACKS[lack]}"


def can_do(cluster: str) -> frozenset[Does]:
    """The actions of a cluster's faults, by the table; in the simulator, which knows triggers, also holds."""
    drawn = frozenset(kind.does for kind in FAULTS.values() if cluster in kind.clusters)
    return drawn | DIRECTED if cluster in SIMULATED else drawn
