"""The reference two-phase store under test: partitions, near nodes, consistent cuts; no node leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from checkers.check import Check
from harness.cluster.place import Command, node_host
from harness.cluster.protocol import Cluster
from harness.errors import WrongUse
from harness.faults.abilities import Ability
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import Promise
from harness.systems.framed_client import FramedClient
from harness.systems.leaderless import Leaderless
from harness.systems.parts import Logs, NodeFiles, Note, Rows, SecondClusters
from harness.systems.status import Statuses
from harness.systems.twophase.client import CLIENT
from harness.systems.twophase.cut_operator import CutOperator
from harness.systems.twophase.options import (
    BEAT_NS,
    LEAVE_S,
    TwoPhaseOptions,
    deliveries_ns,
    near_clients_of,
    said_of,
    servers_of,
)
from harness.systems.twophase.promises import listed, promise_of, promise_of_atomic
from harness.systems.twophase.variety import TwoPhaseVariety
from harness.systems.twophase.wire import WIRE, TwoPhaseWire
from harness.workloads import workload_of
from nodes.kernel.trace import Described
from nodes.twophase import bugs
from nodes.twophase.configuration import MILLISECOND, Configuration
from nodes.twophase.dispatch import described


@dataclass(frozen=True, slots=True)
class TwoPhaseSystem(Leaderless):
    """Implements `harness.systems.system.System`."""

    hosted: ClassVar[str] = "twophase"
    store: ClassVar[str] = "the two-phase store"
    not_met: ClassVar[str] = "the nodes were not all members of one cluster"

    summary: str = "the reference two-phase store: partitions with backups, near nodes, consistent cuts"
    client: FramedClient = CLIENT
    wire: TwoPhaseWire = WIRE
    options: type[TwoPhaseOptions] = TwoPhaseOptions
    abilities: frozenset[Ability] = frozenset({"torn logs", "disk layer", "clock", "drift", "scenes"})
    are_dialed_unready: bool = False
    begins_from: str | None = None
    """The cut that nodes begin from, with the files that a restore to it made."""
    described: Described = described

    @property
    def logs(self) -> TwoPhaseLogs:
        return LOGS

    @property
    def variety(self) -> TwoPhaseVariety:
        return VARIETY

    def command(self, plan: Plan) -> Command:
        return node_host(self.hosted, self.durability(plan), is_traced=True)

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        said, servers = said_of(plan), servers_of(plan)
        if said.atomic and said.atomic not in spaces:
            raise WrongUse(
                f"-o atomic={said.atomic}: {plan.workload} writes to {', '.join(spaces)} alone; try that"
            )
        deliveries = dict(zip(plan.node_names, deliveries_ns(said.delivery_ms, plan.nodes), strict=True))
        return {
            name: Configuration(
                name=name,
                role="server" if name in servers else "client",
                baseline=servers,
                clients=near_clients_of(plan),
                partitions=said.partitions,
                backups=said.backups,
                concurrency=said.concurrency,
                isolation=said.isolation,
                one_phase=said.one_phase,
                atomic_spaces=(said.atomic,) if said.atomic else (),
                variant=said.variant,
                lock_order=said.lock_order,
                step_ns=int(said.step_ms * MILLISECOND),
                delivery_ns=deliveries[name],
                suspending=said.suspending,
                segment_bytes=said.segment_bytes,
                recovery_rollback_fails_cut=said.recovery_rollback_fails_cut,
                restore=self.begins_from,
                beat_ns=BEAT_NS,
                leave_ns=int(LEAVE_S * SECOND_NS),
                bugs=plan.bugs,
                seed=plan.seed,
            ).to_json()
            for name in plan.node_names
        }

    def is_settled(self, statuses: Statuses) -> bool:
        """All nodes are members of one topology, every copy is complete, nothing is under way."""
        known = [status for status in statuses.values() if status is not None]
        if len(known) < len(statuses) or len({status.get("version") for status in known}) != 1:
            return False
        return all(
            status.get("ready")
            and status.get("coordinator") is not None
            and status.get("newest_topology") == status.get("version")
            and len(_members(status)) == len(statuses)
            and not status.get("out_of_sync")
            and not status.get("transactions")
            and not status.get("in_doubt")
            and status.get("cut") is None
            for status in known
        )

    def promise(self, plan: Plan) -> Promise:
        said = said_of(plan)
        return promise_of_atomic(said.atomic) if said.atomic else promise_of(said.concurrency, said.isolation)

    def promises(self) -> Iterator[tuple[Promise, Mapping[str, str]]]:
        return listed()

    def is_operated(self, plan: Plan) -> bool:
        return said_of(plan).cut_every_s > 0

    async def operate(self, plan: Plan, cluster: Cluster, note: Note, is_over: Callable[[], bool]) -> None:
        await CutOperator(plan, cluster, note).run(is_over)

    @property
    def second_clusters(self) -> SecondClusters:
        return SECOND_CLUSTERS

    def begun_from(self, cut: str) -> TwoPhaseSystem:
        return replace(self, begins_from=cut)

    def bugs(self) -> Mapping[str, str]:
        return {name: str(bugs.bug(name)) for name in bugs.NAMES}


class TwoPhaseSecondClusters(SecondClusters):
    """The methods import the checkers of cuts after a run."""

    def drawn_cuts(self, plan: Plan, files: NodeFiles) -> Sequence[str]:
        from harness.systems.twophase.restored import drawn_cuts

        return drawn_cuts(plan, files)

    def files_at(self, plan: Plan, files: NodeFiles, cut: str) -> NodeFiles | str:
        from harness.systems.twophase.restored import files_restored

        return files_restored(plan, files, cut)

    async def take_cut(self, plan: Plan, cluster: Cluster, cut: str) -> tuple[str, str, str]:
        return await CutOperator(plan, cluster, lambda what, node, value: None).take(plan.node_names[0], cut)

    def rows_at(self, plan: Plan, files: NodeFiles, cut: str) -> Mapping[str, Rows] | str:
        from harness.systems.twophase.restored import rows_of

        return rows_of(plan, files, cut)


class TwoPhaseLogs(Logs):
    torn = ("wal-*.log", "discovery.log", "cuts.index")

    def checks_of_files(self, plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
        from harness.systems.twophase.judging import checks_of_cuts  # not before a run is judged
        from harness.systems.twophase.restored import check_of_restored

        restored = (check_of_restored(plan, files),) if workload_of(plan.workload).everything(plan) else ()
        return (*checks_of_cuts(plan, files), *restored)


LOGS, VARIETY, SECOND_CLUSTERS = TwoPhaseLogs(), TwoPhaseVariety(), TwoPhaseSecondClusters()


def _members(status: Mapping[str, object]) -> Mapping[str, object]:
    members = status.get("members")
    return members if isinstance(members, dict) else {}
