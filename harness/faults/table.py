"""The table of faults. A new one is a row, a sentence, and a function that draws what differs (`draws.py`).

| column | what |
|---|---|
| group | the common part of faults with different names: a schedule takes one of each group before it repeats any |
| does | what a cluster carries out (`fault.py`) |
| draw | the fields in which one fault differs from the next |
| where | the clusters that can do it, and why not the rest (`where.py`); by default all |
| must | a correct system *survives* most; faults that destroy safely written data it may only *detect* |

To refuse to start is right after a fault that may be detected; wrong data are an anomaly all the same. "All" faults are
those to be survived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.faults.abilities import ALL_ABILITIES, LACKS, NEEDED, Ability
from harness.faults.draws import (
    Draw,
    another,
    by_the_schedule,
    clock,
    core_share,
    cut,
    damage,
    everyone,
    full_disk,
    in_turn,
    io_error,
    jitter,
    leader,
    leader_or_one,
    lossy,
    narrow,
    newcomer,
    next_node,
    reorder,
    slow,
    slow_disk,
    strobe,
)
from harness.faults.fault import DIRECTED, Does
from harness.faults.node_options import RECONFIGURING
from harness.faults.partitions import bridge, halves, isolate_one, isolate_owner, majorities_ring, one_way
from harness.faults.rollout import DOWNGRADE, UPGRADE
from harness.faults.where import DOCKER, EVERYWHERE, LOCAL, REAL, SIM, SSH, Where, by_name, no

CHANGING = "changing-partitions"
IN_STEPS = "partition-in-steps"
FAILOVER = "failover"
OOM = "oom"
REMOVE, ADD = "remove-node", "add-node"
LOST_DISK = "replace-node"
MEMBERSHIP = "membership"
QUORUM, TIMEOUTS = "quorum", "timeouts"
RECONFIGURE, RECONFIGURE_AT, OTHERWISE = RECONFIGURING
HOLDS = "holds"
MOMENTS = "moments"
SCENIC = (HOLDS, MOMENTS)
"""Scenes of directed faults, which run beside all faults and are not among "all"."""
POWER_ALL = "power-all"
LOST: Ability = "lost records"
MOUNTED = ("local", "docker")
"""Clusters on which a disk is mounted under nodes of other systems (`harness.cluster.mounted_disk`)."""

ONE_STREAM = no(
    LOCAL | SSH,
    "the relay passes on byte streams, in which nothing can overtake: packets can, see --cluster docker",
)
NO_LOSS = no(
    LOCAL | SSH, "the relay may drop no byte of a live connection: that would be corruption, not loss"
) | no(SIM, "a virtual stream loses bytes only when its connection dies, as TCP's do")
LIKE_KILL = no(SIM, "a virtual process has nothing to do before it ends: the same as kill")
LIKE_FULL_DISK = no(SIM, "a virtual write fails like any other, whatever the error: see full-disk")
LIKE_POWER = no(SIM, "power losses tear the ends of virtual logs")
STAYS = no(SIM, "what is synced on a virtual disk stays")
NO_MACHINE = no(SIM, "virtual nodes share no machine: their work takes no time and no memory")
"""Groups of processes can always be limited where containers can be started; elsewhere it depends on the machine and on
the user, and is done by name."""
ONE_CODE = no(SIM, "the simulator runs the nodes of this checkout, in one process")
STARTED_ANEW = by_name(SIM) | no(
    REAL, "there nodes start with the options that they had; try the faults timeouts and quorum"
)
BY_MOMENT = no(REAL, "only virtual time knows what a node is about to do")


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    does: Does
    draw: Draw
    where: Where = EVERYWHERE
    nodes_min: int = 1
    must: Literal["survive", "detect"] = "survive"
    needs_leader: bool = False
    needs: Ability | None = None
    """Beside the ability that its action needs."""

    def is_among_all(self, cluster: str, able: frozenset[Ability]) -> bool:
        return self.where.is_among_all(cluster) and self.must == "survive" and not lacking(self.does, able)


# fmt: off
FAULTS: dict[str, Kind] = {
    "isolate-owner":   Kind("partition",     "cut",          cut(isolate_owner), nodes_min=2, needs_leader=True),
    "isolate-one":     Kind("partition",     "cut",          cut(isolate_one), nodes_min=2),
    "halves":          Kind("partition",     "cut",          cut(halves), nodes_min=2),
    "majorities-ring": Kind("partition",     "cut",          cut(majorities_ring), nodes_min=3),
    "bridge":          Kind("partition",     "cut",          cut(bridge), nodes_min=3),
    "one-way":         Kind("partition",     "cut",          cut(one_way), nodes_min=2),
    CHANGING:          Kind("partition",     "changing-cut", by_the_schedule, nodes_min=2),
    IN_STEPS:          Kind("partition in steps","changing-cut", by_the_schedule, by_name(EVERYWHERE), nodes_min=2),
    "kill":            Kind("kill",          "kill",         leader_or_one),
    "pause":           Kind("pause",         "pause",        leader_or_one),
    "slow":            Kind("slow",          "slow",         slow, nodes_min=2),
    "jitter":          Kind("slow",          "jitter",       jitter, REAL | by_name(SIM), nodes_min=2),
    "reorder":         Kind("slow",          "reorder",      reorder, DOCKER | by_name(SIM) | ONE_STREAM, nodes_min=2),
    "bandwidth":       Kind("slow",          "bandwidth",    narrow, REAL | by_name(SIM), nodes_min=2),
    FAILOVER:          Kind("failover",      "failover",     another, nodes_min=2),
    "terminate":       Kind("terminate",     "terminate",    leader_or_one, REAL | LIKE_KILL),
    "loss":            Kind("loss",          "loss",         lossy, DOCKER | NO_LOSS, nodes_min=2),
    "power-owner":     Kind("power",         "power",        leader),
    "power-one":       Kind("power",         "power",        another, REAL | by_name(SIM), nodes_min=2),
    POWER_ALL:         Kind("power",         "power",        everyone),
    "slow-disk":       Kind("slow-disk",     "slow-fsync",   slow_disk, REAL | by_name(SIM)),
    "full-disk":       Kind("disk",          "disk-error",   full_disk, REAL | by_name(SIM)),
    "io-error":        Kind("disk",          "disk-error",   io_error, REAL | LIKE_FULL_DISK),
    "torn-tail":       Kind("damage",        "damage",       damage("torn-tail"), REAL | LIKE_POWER),
    "truncated-tail":  Kind("damage", "damage", damage("truncated-tail"), REAL | STAYS, must="detect", needs=LOST),
    "bit-flip":        Kind("damage", "damage", damage("bit-flip"), REAL | STAYS, must="detect", needs=LOST),
    "clock":           Kind("clock",         "clock",        clock),
    "clock-strobe":    Kind("clock",         "clock",        strobe, REAL | by_name(SIM)),
    "cpu-limit":       Kind("cpu",           "cpu-limit",    core_share, DOCKER | by_name(LOCAL | SSH) | NO_MACHINE),
    "memory-limit":    Kind("memory",        "memory-limit", leader_or_one, DOCKER | by_name(LOCAL | SSH) | NO_MACHINE),
    OOM:               Kind("memory",        "oom",          leader_or_one, DOCKER | by_name(LOCAL | SSH) | NO_MACHINE),
    REMOVE:            Kind("membership",    "remove",       another, by_name(EVERYWHERE), nodes_min=3),
    ADD:               Kind("joining",       "add",          newcomer, by_name(EVERYWHERE), nodes_min=3),
    LOST_DISK:         Kind("membership",    "replace",      another, by_name(EVERYWHERE), nodes_min=3),
    TIMEOUTS:          Kind("configuration", "options",      by_the_schedule, by_name(EVERYWHERE)),
    QUORUM:            Kind("configuration", "options",      by_the_schedule, by_name(EVERYWHERE), nodes_min=3),
    RECONFIGURE:       Kind("configuration", "options",      by_the_schedule, STARTED_ANEW),
    RECONFIGURE_AT:    Kind("configuration", "options",      by_the_schedule, STARTED_ANEW),
    OTHERWISE:         Kind("rolling",       "restart",      by_the_schedule, STARTED_ANEW, needs="options"),
    "rolling-restart": Kind("rolling",       "restart",      in_turn, by_name(EVERYWHERE)),
    UPGRADE:           Kind("rolling",       "upgrade",      next_node, by_name(REAL) | ONE_CODE, nodes_min=2),
    DOWNGRADE:         Kind("rolling",       "downgrade",    next_node, by_name(REAL) | ONE_CODE, nodes_min=2),
    HOLDS:             Kind("directed",      "hold",         leader, SIM | BY_MOMENT, nodes_min=2, needs="scenes"),
    MOMENTS:           Kind("directed",      "hold",         leader, SIM | BY_MOMENT, needs="scenes"),
}
# fmt: on

SUMMARIES: Mapping[str, str] = {
    "isolate-owner": "the owner is cut off from all other nodes",
    "isolate-one": "one replica is cut off from all other nodes",
    "halves": "two groups that cannot talk",
    "majorities-ring": "every node hears another majority",
    "bridge": "two groups joined by one node",
    "one-way": "one node receives nothing, or reaches no node",
    CHANGING: "one partition after another, of ever other shape, and nothing is healed between",
    IN_STEPS: "one node, mostly the owner, is cut off in one direction first, and a moment later in both",
    "kill": "kill -9 and restart",
    "pause": "a process is stopped and goes on",
    "slow": "links are slow",
    "jitter": "links are slow by ever other times, from not at all to twice the mean",
    "reorder": "some of what a link carries comes late, and what is behind overtakes it",
    "bandwidth": "so many bytes a second pass a link and no more",
    FAILOVER: "another node is promoted",
    "terminate": "SIGTERM and restart",
    "loss": "three packets of ten are lost",
    "power-owner": "the owner loses power: unsynced bytes are gone",
    "power-one": "a replica loses power",
    POWER_ALL: "all nodes lose power at once",
    "slow-disk": "every fsync takes long",
    "full-disk": "writes fail: no space is left",
    "io-error": "writes or syncs fail: EIO",
    "torn-tail": "killed in the middle of a write: half a record ends a log",
    "truncated-tail": "killed, and the end of the log is gone, synced or not",
    "bit-flip": "killed, and a bit in the middle of the log is flipped",
    "clock": "a wall clock jumps, a monotonic clock drifts",
    "clock-strobe": "a wall clock jumps away and back again, several times a second",
    "cpu-limit": "a node gets a small share of one core",
    "memory-limit": "a node has hardly more memory than it needs",
    OOM: "there is no memory left for a node, and the kernel ends it; restart",
    REMOVE: "a node leaves the cluster: it is stopped, and no node counts it any more",
    ADD: "a node joins: a fresh one at the address of one that left, or one that was no member at first",
    LOST_DISK: "a node loses its disk, and a fresh one with a new identity takes its place",
    TIMEOUTS: "a timeout (synchro, election, replication) is changed on all nodes for a while",
    QUORUM: "the quorum is greater on all nodes for a while; no linearizable reads are promised then",
    RECONFIGURE: "an option is changed for a while, on one node or on all in turn "
    "(election mode, fencing, timeouts, …)",
    RECONFIGURE_AT: "the same on one node in the middle of an election, a promotion, a join or a read",
    OTHERWISE: "all nodes restarted with another option, in turn or at once, and later with the old one",
    "rolling-restart": "SIGTERM and restart, one node after the other",
    UPGRADE: "SIGTERM, and the newer version on the same data: one node after the other, other faults between",
    DOWNGRADE: "after a rolling upgrade the way back to the older version",
    HOLDS: "directed schedules: held messages, slow disks, nodes that die at a trigger (not among all)",
    MOMENTS: "as holds, but all is drawn: trigger, node, what is held, slow or full, which node dies (not among all)",
}

TOGETHER: Mapping[str, tuple[str, ...]] = {
    "lose-unsynced": ("power-owner", "power-one", "power-all"),
    MEMBERSHIP: (REMOVE, ADD, LOST_DISK),
    "rolling": ("rolling-restart", UPGRADE),
}
"""Names that stand for several."""


def lacking(does: Does, able: frozenset[Ability]) -> Ability | None:
    """The ability that a system lacks so that this can take effect on its nodes; None if it lacks none."""
    needed = NEEDED.get(does)
    return None if needed is None or needed in able else needed


def why_not(name: str, cluster: str, able: frozenset[Ability] = ALL_ABILITIES, system: str = "qsync") -> str:
    """Why this fault cannot be done there to a system of these abilities; "" if it can."""
    kind = FAULTS[name]
    if why := kind.where.why_not.get(cluster):
        return why
    if kind.needs is not None and kind.needs not in able:
        return f"{system} {LACKS[kind.needs]}"
    return why_not_to(kind.does, cluster, able, system)


def why_not_to(does: Does, cluster: str, able: frozenset[Ability], system: str) -> str:
    """The same of what a fault does: a disk can be mounted under nodes that have no disk layer of ours."""
    lack = lacking(does, able)
    if lack is None or (lack == "disk layer" and cluster in MOUNTED):
        return ""
    return f"{system} {LACKS[lack]}"


def can_do(cluster: str) -> frozenset[Does]:
    """The actions of a cluster's faults, by the table; in the simulator, which knows triggers, also holds."""
    drawn = frozenset(kind.does for kind in FAULTS.values() if cluster in kind.where.clusters)
    return drawn | DIRECTED if cluster == "sim" else drawn
