"""From a plan to the parts of its run: the one place where names are looked up in their tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from checkers.history.history import Header
from checkers.replicas import stored_start
from harness.clients.client import MessageClient
from harness.clients.operations import Delete
from harness.clients.wire import SimulatedWire
from harness.cluster import open_files
from harness.cluster.limits.group import Share
from harness.cluster.place import FROM, TO, Version, Which
from harness.cluster.protocol import Cluster
from harness.errors import WrongUse
from harness.faults.overlap import LIMITS
from harness.faults.table import MOUNTED
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import ASYNCHRONOUS_WRITES, FINAL_STATE, WRITES
from harness.plan.schedule import names_for
from harness.run.draw import faults_of, refuse_impossible
from harness.run.machine import needs_packet_rules, refuse_what_it_lacks, why_no_limits
from harness.systems import System, system_of
from harness.workloads import WORKLOADS, Workload, workload_of
from harness.workloads.completed import DUMP
from harness.workloads.failing import MADE_OF

if TYPE_CHECKING:
    from harness.cluster.containers.cluster import ContainerCluster
    from harness.cluster.local.cluster import LocalCluster
    from harness.cluster.mounted_disk.disks import Mounted
    from harness.cluster.sim.cluster import SimCluster
    from harness.cluster.ssh.cluster import SshCluster
    from harness.cluster.talk import Talk

CLUSTERS: dict[str, str] = {
    "local": "one process a node on this machine, every link through a relay",
    "docker": "one container a node on a private network of this machine",
    "ssh": "processes of the hosts that --inventory names, every link through relays there; needs no root",
    "sim": "a virtual world in virtual time: power loss and clocks too, and the same seed gives the same run",
}


STRICTER = "linearizable"
"""The model that `--promise` can ask for."""
RARE_STEPS: Mapping[str, tuple[str, frozenset[type]]] = {
    "deletes": ("deletions", frozenset({Delete})),
    "failing": ("transactions that must fail", MADE_OF),
}
"""The steps of operations that a workload draws only where the plan gives them a share, by the name of that share."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The system, the workload and so on behind a plan's names."""

    plan: Plan
    system: System
    workload: Workload


def parts_of(plan: Plan, *, runs_here: bool = True) -> Parts:
    """Look the names up; WrongUse says which is unknown and what there is.

    `runs_here`: nodes are to be started, so the files that the plan names must be there: the inventory of hosts, and
    the programs of other versions. To judge a run that another machine did needs neither.
    """
    system = system_of(plan.system)
    workload = workload_of(plan.workload)
    if plan.cluster not in CLUSTERS:
        raise WrongUse(f"unknown cluster {plan.cluster!r}; try one of: {', '.join(CLUSTERS)}")
    if plan.promise is not None and plan.promise != STRICTER:
        raise WrongUse(f"--promise {plan.promise!r} is not known; try: {STRICTER}")
    plan = _with_disk(system.completed(plan), system)
    system.validate(plan)
    _check_inventory(plan, runs_here)
    refuse_shares(plan)
    if runs_here:
        versions_of(plan, system)
    _check_words(plan, system, workload)
    _check_spaces(plan, system, workload)
    _check_rare_steps(plan, system, workload)
    _check_waits(plan, workload)
    names_for(plan, system.abilities)
    refuse_impossible(plan, system, workload)
    return Parts(plan, system, workload)


SHARED_OUT = ("docker", "local")
"""Clusters that limit what a node may use in a whole run."""


def refuse_shares(plan: Plan) -> None:
    """WrongUse if the cluster does not limit what a node may use."""
    if _share(plan) is not None and plan.cluster not in SHARED_OUT:
        raise WrongUse(
            f"--node-cpus and --node-memory are for --cluster {' and '.join(SHARED_OUT)}, got {plan.cluster}"
        )


def _share(plan: Plan) -> Share | None:
    """The share of the machine that each node may use all the time; None if the plan does not say."""
    if plan.node_cpus is None and plan.node_memory_mib is None:
        return None
    return Share(cpus=plan.node_cpus, memory_mib=plan.node_memory_mib)


def _with_disk(plan: Plan, system: System) -> Plan:
    """With a mounted disk, if faults need one under a store that is not ours. WrongUse where none can be mounted."""
    if plan.cluster not in MOUNTED:
        if plan.disk == "mounted":
            raise WrongUse(
                f"--disk mounted is for --cluster {' or '.join(MOUNTED)}, got --cluster {plan.cluster}"
            )
        return plan
    is_needed = plan.fails_disks and "disk layer" not in system.abilities
    return msgspec.structs.replace(plan, disk="mounted") if is_needed else plan


def _mounted(parts: Parts) -> Mounted:
    """Nodes of ours sync the folders that they change, as POSIX asks; for other stores the disk acts like a journal."""
    if parts.plan.disk != "mounted":
        return ""
    return "strict" if "disk layer" in parts.system.abilities else "journal"


def _check_inventory(plan: Plan, runs_here: bool) -> None:
    """An inventory that cannot be used is refused before anything is written."""
    if (plan.inventory is not None) != (plan.cluster == "ssh"):
        raise WrongUse(
            "--cluster ssh needs --inventory FILE, which names its hosts"
            if plan.inventory is None
            else f"--inventory is for --cluster ssh, got --cluster {plan.cluster}"
        )
    if plan.inventory is not None and runs_here:
        from harness.cluster.ssh.inventory import read

        read(plan.inventory)


def versions_of(plan: Plan, system: System) -> dict[Which, Version]:
    """The versions that nodes run in, if the plan names one; WrongUse if there is none of that name."""
    if plan.node_from is None:
        if plan.node_to is not None:
            raise WrongUse(
                f"--node-to needs --node-from, the version that nodes start in, got {plan.node_to!r}"
            )
        return {}
    if plan.cluster == "sim":
        raise WrongUse("--node-from: the simulator runs the nodes of this checkout; try: --cluster local")
    older, newer = system.version(plan.node_from), system.version(plan.node_to)
    if older is None or newer is None:
        raise WrongUse(
            f"--node-from: {plan.system} does not tell the harness how another version of it is started"
        )
    versions: dict[Which, Version] = {FROM: older, TO: newer}
    if versions[FROM].is_same(versions[TO]):
        there = plan.node_to or "this checkout"
        raise WrongUse(f"--node-from {plan.node_from} and {there} are the same version; name another one")
    return versions


def _check_words(plan: Plan, system: System, workload: Workload) -> None:
    """WrongUse where the client cannot say what the workload asks."""
    if missing := _unspoken(workload.uses, system):
        raise WrongUse(
            f"the workload {plan.workload} asks for {missing}, which the client of --system {plan.system} "
            f"does not speak; try: --workload {_fitting(system)}"
        )


def _unspoken(steps: frozenset[type], system: System) -> str:
    return ", ".join(sorted(step.__name__ for step in steps - system.client.speaks))


def _fitting(system: System) -> str:
    """The workloads that the client can speak, over spaces that the system has."""
    able = [
        name
        for name, other in WORKLOADS.items()
        if other.uses <= system.client.speaks and {*other.asynchronous} <= {*system.asynchronous_spaces}
    ]
    return " or ".join(able) or "(none fits)"


def _check_rare_steps(plan: Plan, system: System, workload: Workload) -> None:
    """WrongUse where the plan asks for deletions that the workload does not know; or for them, or for transactions that
    must fail, although the client cannot say them."""
    drawn = () if plan.drawn is None else plan.drawn.operations
    if plan.deletes and "deletes" not in workload.shares:
        able = " or ".join(name for name, other in WORKLOADS.items() if "deletes" in other.shares)
        raise WrongUse(f"--deletes: the workload {plan.workload} deletes nothing; try: --workload {able}")
    asks = {
        "deletes": plan.deletes or any(map(workload.is_deletion, drawn)),
        "failing": (plan.failing and "failing" in workload.shares)
        or any(workload.must_fail(each, each.value) for each in drawn),
    }
    for name, (what, steps) in RARE_STEPS.items():
        if asks[name] and (missing := _unspoken(steps, system)):
            raise WrongUse(
                f"--{name}: the client of --system {plan.system} does not speak {missing}; leave the {what} out"
            )


def _check_waits(plan: Plan, workload: Workload) -> None:
    """WrongUse where a write that is only submitted could excuse more than itself: promises to other clients."""
    if plan.submits and not workload.can_submit:
        able = ", ".join(name for name, other in WORKLOADS.items() if other.can_submit)
        raise WrongUse(
            f"--commit-wait {plan.commit_wait}: of the workload {plan.workload} a write that is only submitted would "
            f"excuse the loss of other writes; try one of: {able}"
        )


def _check_spaces(plan: Plan, system: System, workload: Workload) -> None:
    """WrongUse where the system has no space of the kind that the workload writes to."""
    wanted, there = workload.asynchronous, system.asynchronous_spaces
    if not {*wanted} <= {*there}:
        raise WrongUse(
            f"the workload {plan.workload} writes to the asynchronous space {wanted[0]!r}, which "
            f"--system {plan.system} does not have; try: --workload {_fitting(system)}"
        )


def header(parts: Parts) -> Header:
    """The first line of the history: what checkers must know of the run."""
    plan = parts.plan
    begins_later = _begins_elections(parts)
    return Header(
        system=plan.system,
        cluster=plan.cluster,
        workload=plan.workload,
        nodes=plan.node_names,
        quorum=plan.quorum_size,
        owner=None if plan.fails_over or begins_later else parts.system.owner(plan),
        heartbeat_ns=plan.expectations.slowest_heartbeat_ns or plan.heartbeat_ns,
        seed=plan.seed,
        effects={**parts.workload.effects, DUMP: "reads"},
        extra=_expected(parts),
    )


def _begins_elections(parts: Parts) -> bool:
    """The plan turns elections on in the middle of the run: another node may lead then."""
    plan, system = parts.plan, parts.system
    return plan.changes_options and system.settings.begins_elections(plan, faults_of(plan, system))


def _expected(parts: Parts) -> dict[str, object]:
    """Facts for checkers of elections. Only virtual time is so regular that being late is a fault of the store."""
    plan = parts.plan
    expected: dict[str, object] = {"fencing": plan.expectations.fencing, "operated": plan.needs_operator}
    if before := parts.system.acknowledged_before(plan):
        expected[stored_start.BEFORE] = before
    promise = parts.system.promise(plan)
    if not promise.has_leader:
        expected["leaderless"] = True
    if plan.cluster == "sim" and promise.model(WRITES):
        slowest_s = plan.expectations.slowest_election_timeout_s or plan.expectations.election_timeout_s
        expected["leader_within_ns"] = int(10 * slowest_s * SECOND_NS)
        expected["converges"] = bool(promise.model(FINAL_STATE))
        if promise.model(ASYNCHRONOUS_WRITES) != "as synchronous":
            expected["elects_when_split"] = False
    return expected


def simulated(
    parts: Parts,
    folder: Path | None,
    *,
    record_trace: bool = False,
    files: Mapping[str, Mapping[str, bytes]] | None = None,
) -> SimCluster:
    """`files`: what is on the nodes' disks; None: what the plan says."""
    from harness.cluster.sim.cluster import SimCluster

    plan = parts.plan
    assert parts.system.wire is not None, "only nodes with a wire of ours can be simulated"
    if files is None:
        files = parts.system.first_files(plan, parts.workload.spaces)
    return SimCluster(
        parts.system.node_makers(plan, parts.workload.spaces),
        wire=cast(SimulatedWire, parts.system.wire),
        seed=plan.seed,
        heartbeat_ns=plan.heartbeat_ns,
        durability=parts.system.durability(plan),
        folder=folder,
        record_trace=record_trace,
        maker=parts.system.maker,
        watch=parts.system.watch,
        files=files,
        described=parts.system.described,
    )


def talk_of(system: System) -> Talk:
    """How nodes of this system are talked to: by its wire, or by its library."""
    wire = system.wire
    client = system.client
    if wire is not None:
        return wire
    assert not isinstance(client, MessageClient), "a client of messages needs a wire"
    return client


def local(parts: Parts, folder: Path) -> LocalCluster:
    from harness.cluster.local.cluster import LocalCluster, LocalSettings

    return LocalCluster(
        LocalSettings(
            **_real(parts, folder),
            base_port=parts.plan.base_port,
            are_dialed_unready=parts.system.are_dialed_unready,
            asks_when_ready=parts.system.wire is None,
            limited=limits_nodes(parts),
            share=_share(parts.plan),
            mounted=_mounted(parts),
        )
    )


def _real(parts: Parts, folder: Path) -> dict[str, Any]:
    """The settings of every real cluster."""
    plan, system = parts.plan, parts.system
    return {
        "talk": talk_of(system),
        "configs": system.configurations(plan, parts.workload.spaces),
        "folder": folder,
        "heartbeat_ns": plan.heartbeat_ns,
        "epoch_ns": time.monotonic_ns(),
        "command": system.command(plan),
        "ready_within_s": system.ready_within_s,
        "versions": versions_of(plan, system),
        "may_refuse": _mounted(parts) == "journal" and system.durability(plan) == "written",
    }


def refuse_what_this_machine_cannot(parts: Parts) -> None:
    """Refuse what this machine or this user cannot do, before anything is written. Judging alone does not need it."""
    if why := _too_many_clients(parts.plan):
        raise WrongUse(why)
    if parts.plan.cluster == "local" and _share(parts.plan) is not None and (why := why_no_limits()):
        raise WrongUse(f"this plan limits what nodes use of the machine: {why}")
    refuse_what_it_lacks(parts.plan, parts.system)
    if parts.plan.disk == "mounted":
        from harness.cluster.mounted_disk import mounts

        if reason := mounts.why_not():
            raise WrongUse(f"this run needs a disk mounted under each node, and {reason}")


def _too_many_clients(plan: Plan) -> str:
    """Why this machine cannot open so many connections; "" if it can."""
    if plan.cluster == "sim":
        return ""
    return open_files.allow(plan.workers, plan.nodes, has_relay=plan.cluster == "local")


def limits_nodes(parts: Parts) -> bool:
    """Faults of the plan limit what nodes use of their machine, or the plan itself does."""
    return _share(parts.plan) is not None or any(
        fault.does in LIMITS for fault in faults_of(parts.plan, parts.system)
    )


def contained(parts: Parts, folder: Path) -> ContainerCluster:
    from harness.cluster.containers.cluster import ContainerCluster, ContainerSettings

    return ContainerCluster(
        ContainerSettings(
            **_real(parts, folder),
            packages=parts.system.packages,
            image=parts.system.image,
            files=parts.system.files,
            share=_share(parts.plan) or Share(),
            mounted=_mounted(parts),
            filters_packets=needs_packet_rules(parts.plan, parts.system),
        )
    )


def ssh_cluster(parts: Parts, folder: Path) -> SshCluster:
    from harness.cluster.ssh.cluster import SshCluster, SshSettings
    from harness.cluster.ssh.inventory import read

    plan = parts.plan
    assert plan.inventory is not None  # or `parts_of` had refused it
    return SshCluster(
        SshSettings(
            **_real(parts, folder),
            hosts=read(plan.inventory, accept_new_host_keys=plan.accept_new_host_keys),
            are_dialed_unready=parts.system.are_dialed_unready,
            limited=limits_nodes(parts),
        )
    )


def real(parts: Parts, folder: Path) -> Cluster:
    """The cluster of real nodes that the plan names."""
    match parts.plan.cluster:
        case "docker":
            return contained(parts, folder)
        case "ssh":
            return ssh_cluster(parts, folder)
        case _:
            return local(parts, folder)
