"""The table of faults: all actions, and their names. A new action is a class in a file of its own, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.errors import WrongUse
from harness.faults.abilities import ALL_ABILITIES, LACKS, Ability
from harness.faults.action import Action, Kind
from harness.faults.changing_cut import ChangingCut
from harness.faults.clock import Clock
from harness.faults.cut import Cut
from harness.faults.damage import Damage
from harness.faults.disk import DiskError, SlowFsync
from harness.faults.failover import Failover
from harness.faults.fault import DIRECTED, Does, Fault
from harness.faults.held import Hold, SlowDisk
from harness.faults.kill import Kill
from harness.faults.limits import CpuLimit, MemoryLimit, OutOfMemory
from harness.faults.loss import Loss
from harness.faults.members import ADD, LOST_DISK, REMOVE, Add, Remove, Replace
from harness.faults.options import Options
from harness.faults.pause import Pause
from harness.faults.power import Power
from harness.faults.restart import Restart
from harness.faults.rollout import UPGRADE
from harness.faults.shaped import Bandwidth, Jitter, Reorder, Slow
from harness.faults.terminate import Terminate
from harness.faults.versions import Downgrade, Upgrade

MEMBERSHIP = "membership"
MOUNTED = ("local", "docker")
"""Clusters on which a disk is mounted under nodes of other systems (`harness.cluster.mounted_disk`)."""

# A schedule draws from the names in this order: a new one goes to the end, or every seed draws another schedule.
ACTIONS: Mapping[Does, Action] = {
    action.does: action
    for action in (
        *(Cut(), ChangingCut(), Kill(), Pause()),
        *(Slow(), Jitter(), Reorder(), Bandwidth()),
        *(Failover(), Terminate(), Loss(), Power()),
        *(SlowFsync(), DiskError(), Damage(), Clock()),
        *(CpuLimit(), MemoryLimit(), OutOfMemory()),
        *(Remove(), Add(), Replace(), Options(), Restart(), Upgrade(), Downgrade()),
        *(Hold(), SlowDisk()),
    )
}

FAULTS: Mapping[str, Kind] = {
    kind.name: replace(kind, action=action) for action in ACTIONS.values() for kind in action.kinds
}

TOGETHER: Mapping[str, tuple[str, ...]] = {
    "lose-unsynced": ("power-owner", "power-one", "power-all"),
    MEMBERSHIP: (REMOVE, ADD, LOST_DISK),
    "rolling": ("rolling-restart", UPGRADE),
}
"""Names that stand for several."""


def action_of(fault: Fault) -> Action:
    """Raises WrongUse for what no action does."""
    if fault.does not in ACTIONS:
        raise WrongUse(f"fault {fault.name}: {fault.does!r} is unknown; try one of: {', '.join(ACTIONS)}")
    return ACTIONS[fault.does]


def which(holds: Callable[[Action], bool]) -> frozenset[Does]:
    """The words of the actions for which `holds` is true."""
    return frozenset(action.does for action in ACTIONS.values() if holds(action))


def why_not(name: str, cluster: str, able: frozenset[Ability] = ALL_ABILITIES, system: str = "qsync") -> str:
    """Why this fault cannot be done there to a system of these abilities; "" if it can."""
    kind = FAULTS[name]
    if why := kind.where.why_not.get(cluster):
        return why
    if kind.ability is not None and kind.ability not in able:
        return f"{system} {LACKS[kind.ability]}"
    return why_not_to(kind.does, cluster, able, system)


def why_not_to(does: Does, cluster: str, able: frozenset[Ability], system: str) -> str:
    """As `why_not`, for an action. A disk can be mounted under nodes that have no disk layer of ours."""
    lack = ACTIONS[does].lacking_of(able)
    if lack is None or (lack == "disk layer" and cluster in MOUNTED):
        return ""
    return f"{system} {LACKS[lack]}"


def can_do(cluster: str) -> frozenset[Does]:
    """The actions that a cluster can do, by the table; in the simulator, which has triggers, also those of scenes."""
    drawn = frozenset(kind.does for kind in FAULTS.values() if cluster in kind.where.clusters)
    return drawn | DIRECTED if cluster == "sim" else drawn
