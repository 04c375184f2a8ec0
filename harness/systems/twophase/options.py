"""The options of the two-phase store: its nodes, its transactions, its cuts."""

from __future__ import annotations

from typing import Annotated, ClassVar, cast

from msgspec import Meta

from harness.plan.expectations import Expectations
from harness.plan.plan import Options, Plan
from harness.workloads import WORKLOADS, workload_of
from nodes.twophase.configuration import MILLISECOND, Concurrency, Isolation, LockOrder, Variant

BEAT_NS = 100 * MILLISECOND
LEAVE_S = 0.6
"""A node that is silent for so long, which is six beats, leaves; those with its partitions then serve again. A fault
lasts 1.3 s or longer: most of its time then shows how the others do without the node."""
ELECTION_S = 1.5
"""A coordinator that is silent for up to 1 s has a successor; so long it may take in all."""
DELIVERY_MS_MAX = 60_000


class TwoPhaseOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decides_operations: ClassVar[tuple[str, ...]] = ()

    near_clients: Annotated[
        int,
        Meta(ge=0, le=8, description="So many of the nodes, the last ones, only coordinate transactions."),
    ] = 0
    partitions: Annotated[int, Meta(ge=1, le=1024, description="Into which keys are divided.")] = 8
    backups: Annotated[int, Meta(ge=0, le=4, description="Copies of a partition beside the primary.")] = 1
    concurrency: Annotated[Concurrency, Meta(description="pessimistic (locks) or optimistic (versions).")] = (
        "pessimistic"
    )
    isolation: Annotated[Isolation, Meta(description="read-committed, repeatable-read or serializable.")] = (
        "serializable"
    )
    atomic: Annotated[
        str,
        Meta(description="The workload's space is outside of transactions and cuts: its name, or nothing."),
    ] = ""
    one_phase: Annotated[
        bool, Meta(description="One round for transactions with one primary and at most one backup.")
    ] = True
    variant: Annotated[
        Variant, Meta(description="How messages name a cut: shipped, seed-counter or seed-colour.")
    ] = "shipped"
    recovery_rollback_fails_cut: Annotated[
        bool, Meta(description="A transaction that recovery rolls back makes a running cut fail.")
    ] = False
    lock_order: Annotated[
        LockOrder, Meta(description="Locks in one order of all keys, or as steps come: keys or steps.")
    ] = "keys"
    step_ms: Annotated[
        float, Meta(ge=0, le=1000, description="Longest time between the steps of a cut, and of a commit.")
    ] = 0.0
    delivery_ms: Annotated[
        str,
        Meta(description="Longest time until a node delivers an agreed entry: one for all, or one a node."),
    ] = "0"
    suspending: Annotated[
        float, Meta(ge=0, le=1, description="Share of transactions that pause before they prepare.")
    ] = 0.0
    segment_bytes: Annotated[
        int, Meta(ge=1024, description="Size at which a new file of the log begins.")
    ] = 4 << 20
    cuts_at_once: Annotated[
        int, Meta(ge=1, le=8, description="Nodes that are asked for a cut at one time.")
    ] = 1
    restores: Annotated[
        int, Meta(ge=1, le=20, description="Finished cuts to restore after a run of the workload restore.")
    ] = 3
    cut_every_s: Annotated[float, Meta(ge=0, le=3600, description="Seconds between two cuts; 0: none.")] = 1.0

    def check(self, plan: Plan) -> None:
        servers = plan.nodes - self.near_clients
        if servers < 1:
            raise ValueError(
                f"expected at least one server, got {self.near_clients} near clients of {plan.nodes} nodes"
            )
        if self.backups >= servers:
            raise ValueError(
                f"expected fewer backups than servers, got {self.backups} and {servers}: try --backups {servers - 1}"
            )
        if self.atomic and not workload_of(plan.workload).has_single_steps:
            able = ", ".join(name for name, workload in WORKLOADS.items() if workload.has_single_steps)
            raise ValueError(
                f"expected a workload of single steps for the atomic space {self.atomic} ({able}), "
                f"got {plan.workload}"
            )
        if self.atomic and self.backups > 1:
            raise ValueError(f"expected at most 1 backup with an atomic space, got {self.backups}")
        if self.cuts_at_once > plan.nodes:
            raise ValueError(f"expected cuts at once by at most {plan.nodes} nodes, got {self.cuts_at_once}")
        deliveries_ns(self.delivery_ms, plan.nodes)

    def expectations(self, plan: Plan) -> Expectations:
        servers = plan.nodes - self.near_clients
        has_spare = servers == 1 or (self.backups > 0 and servers > 2)
        return Expectations(
            configuration=f"{self.concurrency} {self.isolation}",
            without_disk=frozenset(plan.node_names[servers:]),
            needs_every_node=not has_spare,
            heartbeat_ns=BEAT_NS,
            election_timeout_s=ELECTION_S,
            rolls_back_after_s=LEAVE_S,
            fails_over=True,
            read_mode="linearizable",
        )


def deliveries_ns(words: str, nodes: int) -> tuple[int, ...]:
    """Each node's: of one number for all, or one for each, separated by commas. ValueError for anything else."""
    parts = [word.strip() for word in words.split(",")]
    numbers = [
        float(part)
        for part in parts
        if part.replace(".", "", 1).isdecimal() and part.isascii() and float(part) <= DELIVERY_MS_MAX
    ]
    if len(numbers) < len(parts) or len(parts) not in (1, nodes):
        raise ValueError(
            f"expected milliseconds up to {DELIVERY_MS_MAX} for all {nodes} nodes, "
            f"as one number or one for each (0,20,5), got {words!r:.100}"
        )
    return tuple(int(number * MILLISECOND) for number in (numbers * nodes)[:nodes])


def said_of(plan: Plan) -> TwoPhaseOptions:
    """The options of a plan of this system."""
    return cast(TwoPhaseOptions, plan.options)


def servers_of(plan: Plan) -> tuple[str, ...]:
    return plan.node_names[: plan.nodes - said_of(plan).near_clients]


def near_clients_of(plan: Plan) -> tuple[str, ...]:
    return plan.node_names[plan.nodes - said_of(plan).near_clients :]
