"""The common part of the reference stores without a leader: nodes of `nodes.host` that all take writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from checkers.check import Check
from harness.cluster.protocol import Cluster
from harness.errors import ClusterError, WrongUse
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.status import Statuses
from harness.systems.system import System
from nodes.host.systems import SYSTEMS as HOSTED
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability

SET_UP_TIMEOUT_NS = 20 * SECOND_NS
POLL_NS = SECOND_NS // 50


class Leaderless(System):
    """The part of `harness.systems.system.System` that these stores share."""

    hosted: ClassVar[str]
    """Its name in `nodes.host.systems`."""
    store: ClassVar[str]
    """Its name in sentences: "the TxLog"."""
    not_met: ClassVar[str]
    """The words for a cluster that does not settle in time."""

    def completed(self, plan: Plan) -> Plan:
        return plan.changed(leader="none")

    def validate(self, plan: Plan) -> None:
        for bug in plan.bugs:
            if bug not in self.bugs():
                known = ", ".join(self.bugs())
                raise WrongUse(f"--bug {bug!r}: {self.store} has none of that name; it has: {known}")

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        return {name: self.maker(data) for name, data in self.configurations(plan, spaces).items()}

    def maker(self, configuration: bytes) -> Callable[[], Node]:
        return lambda: HOSTED[self.hosted](configuration).node

    def durability(self, plan: Plan) -> Durability:
        return "synced"

    def owner(self, plan: Plan) -> str:
        return ""

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        return ()

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        return f"no node of {self.store} leads"

    def owner_now(self, statuses: Statuses) -> str | None:
        return None

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """The first members have met, and serve."""
        first = plan.members_at_first.present
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        while not self.is_settled({node: await cluster.status(node) for node in first}):
            if cluster.now_ns() > deadline_ns:
                limit_s = SET_UP_TIMEOUT_NS // SECOND_NS
                raise ClusterError(f"{self.not_met} within {limit_s} s; see log.jsonl of each")
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        return ()
