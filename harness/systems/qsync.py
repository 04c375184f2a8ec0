"""The reference qsync: nodes of `nodes.qsync`, one owner that stays the same for the run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import ClusterError, WrongUse
from harness.plan import SECOND_NS, Plan
from harness.protocols import Cluster, Replied
from harness.systems.promises import ELECTED, ELECTED_WITH_ROLLBACK, FIXED_OWNER, Promise
from nodes.iproto.messages import Answer, Call
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability
from nodes.qsync.bugs import ACK_BEFORE_FSYNC, BUGS
from nodes.qsync.configuration import Configuration, Identity, SpaceDefinition
from nodes.qsync.replica import Replica
from nodes.qsync.service import READ_MODES

FIRST_SPACE_ID = 512
NOTES = "notes"
"""A space that is not synchronous, in every run."""
_NAMESPACE = uuid.UUID("6f1a52a4-0c0e-4bfa-9d0e-8a4b5f1e7c11")
SET_UP_PROCESS = -1
SET_UP_TIMEOUT_NS = 10 * SECOND_NS
POLL_NS = SECOND_NS // 50


@dataclass(frozen=True, slots=True)
class Qsync:
    summary: str = "the reference node: quorum-synchronous replication after Tarantool, one owner"

    def validate(self, plan: Plan) -> None:
        for bug in plan.bugs:
            if bug not in BUGS:
                raise WrongUse(f"unknown bug {bug!r} of qsync; try one of: {', '.join(BUGS)}")
        if ACK_BEFORE_FSYNC in plan.bugs and plan.cluster != "sim":
            raise WrongUse(
                f"--bug {ACK_BEFORE_FSYNC} shows only where a disk forgets; "
                f"try: ./qsync run --cluster sim --bug {ACK_BEFORE_FSYNC} --seed {plan.seed}"
            )
        if plan.election_mode not in ("off", "candidate"):
            raise WrongUse(f"unknown election mode {plan.election_mode!r}; try one of: off, candidate")
        if plan.read_mode not in READ_MODES:
            raise WrongUse(f"unknown read mode {plan.read!r}; try one of: {', '.join(READ_MODES)}")

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        members = tuple(
            Identity(id=number, name=name, uuid=_uuid(plan, name))
            for number, name in enumerate(plan.node_names, start=1)
        )
        return {
            member.name: Configuration(
                name=member.name,
                cluster_uuid=_uuid(plan, "cluster"),
                members=members,
                spaces=_definitions(spaces),
                quorum=plan.quorum_size,
                synchro_timeout_ns=int(plan.synchro_timeout_s * SECOND_NS),
                replication_timeout_ns=plan.heartbeat_ns,
                bugs=plan.bugs,
                election_mode="candidate" if plan.has_elections else "off",
                election_timeout_ns=int(plan.election_timeout_s * SECOND_NS),
                rollback_on_timeout=self._rolls_back(plan),
                seed=plan.seed,
            ).to_json()
            for member in members
        }

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        def maker(data: bytes) -> Callable[[], Node]:
            configuration = Configuration.from_json(data)
            return lambda: Replica(configuration)

        return {name: maker(data) for name, data in self.configurations(plan, spaces).items()}

    def durability(self, plan: Plan) -> Durability:
        return "written" if ACK_BEFORE_FSYNC in plan.bugs else "synced"

    def owner(self, plan: Plan) -> str:
        return plan.node_names[0]

    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        owners = {
            node: status.get("term", 0)
            for node, status in statuses.items()
            if status is not None and status.get("role") == "owner"
        }
        return max(owners, key=lambda node: int(str(owners[node])), default=None)

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """PROMOTE or an election makes the owner; all nodes must follow each other and know it."""
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        if not plan.has_elections:
            await self._promote(plan, cluster)
        while True:
            statuses = {node: await cluster.status(node) for node in plan.node_names}
            if all(_is_in_place(status, plan.nodes) for status in statuses.values()):
                return
            if cluster.now_ns() > deadline_ns:
                raise ClusterError(f"the nodes did not find each other in 10 s: {statuses}")
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    async def _promote(self, plan: Plan, cluster: Cluster) -> None:
        reply = await cluster.call(
            SET_UP_PROCESS, self.owner(plan), Call(1, "box.ctl.promote", ()), SET_UP_TIMEOUT_NS
        )
        if not (isinstance(reply, Replied) and isinstance(reply.response, Answer)):
            raise ClusterError(f"{self.owner(plan)} could not be made the owner: {reply}")

    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        known = [status for status in statuses.values() if status is not None]
        return (
            len(known) == len(statuses)
            and all(status["limbo"] == 0 and not status["in_rollback"] for status in known)
            and all(status.get("pending_promotes", 0) == 0 for status in known)
            and self.owner_now(statuses) is not None
            and all(status["vclock"] == known[0]["vclock"] for status in known)
        )

    def promise(self, plan: Plan) -> Promise:
        if not plan.has_elections:
            return FIXED_OWNER
        return ELECTED_WITH_ROLLBACK if self._rolls_back(plan) else ELECTED

    def _rolls_back(self, plan: Plan) -> bool:
        return not plan.has_elections if plan.rollback_on_timeout is None else plan.rollback_on_timeout

    def bugs(self) -> Mapping[str, str]:
        return BUGS


def _definitions(names: tuple[str, ...]) -> tuple[SpaceDefinition, ...]:
    """The workload's spaces, which are synchronous, and one that is not."""
    return tuple(
        SpaceDefinition(id=number, name=name, is_sync=name != NOTES)
        for number, name in enumerate((*names, NOTES), start=FIRST_SPACE_ID)
    )


def _uuid(plan: Plan, name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{plan.seed}/{name}"))


def _is_in_place(status: Mapping[str, object] | None, nodes: int) -> bool:
    """The node knows the owner, follows all others and is followed by all."""
    if status is None:
        return False
    following, followers = status["following"], status["followers"]
    assert isinstance(following, list | tuple)
    assert isinstance(followers, list | tuple)
    return status["owner"] != 0 and len(following) == len(followers) == nodes - 1
