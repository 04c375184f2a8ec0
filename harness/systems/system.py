"""What the harness must know of a system under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from checkers.wal.record import LogRules
from harness.plan import Plan
from harness.protocols import Cluster
from harness.systems.promises import Promise
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability


class System(Protocol):
    """A store that can be put under test."""

    @property
    def summary(self) -> str: ...

    def validate(self, plan: Plan) -> None:
        """WrongUse if the plan asks for what this system or its bugs cannot do on that cluster."""
        ...

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        """Each node's configuration, as the host reads it. `spaces`: the workload's, all synchronous."""
        ...

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        """For the simulator: each node's name → what makes it, anew at each start."""
        ...

    def durability(self, plan: Plan) -> Durability: ...

    def owner(self, plan: Plan) -> str:
        """The node that takes writes first, as the plan is drawn."""
        ...

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        """The nodes that may be made the owner."""
        ...

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        """Ask a node to become the owner; None if it will try, else why not."""
        ...

    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        """The node that takes writes, by what the nodes say; None if nobody says so."""
        ...

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """From nodes that are up to a store that serves; ClusterError if it does not come to that."""
        ...

    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        """True if nothing is under way any more: queues empty, all nodes the same."""
        ...

    def promise(self, plan: Plan) -> Promise: ...

    def log_rules(self, plan: Plan) -> LogRules | None:
        """How the xlogs of its nodes are to be read; None if they leave none."""
        ...

    def bugs(self) -> Mapping[str, str]:
        """The seeded bugs by name, with what each does."""
        ...
