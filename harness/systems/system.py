"""The interface between the harness and a system under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from checkers.check import Check
from harness.clients.client import Client
from harness.clients.wire import ClientWire
from harness.cluster.place import Command
from harness.cluster.protocol import Cluster
from harness.faults.abilities import Ability
from harness.plan.plan import Options, Plan
from harness.plan.promise import Promise
from harness.systems.parts import Parts
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability

CANNOT_JOIN = "cannot-join"
"""A line of the monitor: a new node ended in order, because no member could take it in. It is not a crash."""


class System(Parts, ABC):
    """A store that can be put under test: how it is deployed, its client and its promise, beside optional parts."""

    @property
    @abstractmethod
    def summary(self) -> str: ...

    @property
    @abstractmethod
    def options(self) -> type[Options]:
        """The part of a plan that belongs to this system alone; the command line makes its options of it."""

    @abstractmethod
    def completed(self, plan: Plan) -> Plan:
        """The plan with what it leaves open decided as this system needs it."""

    @abstractmethod
    def validate(self, plan: Plan) -> None:
        """WrongUse if the plan asks for what this system or its bugs cannot do on that cluster."""

    @abstractmethod
    def command(self, plan: Plan) -> Command:
        """The command that starts a node at a place."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that turns operations into the system's requests."""

    @property
    @abstractmethod
    def wire(self) -> ClientWire | None:
        """The bytes of its clients' messages; None if a library knows them (`harness.clients.client`)."""

    @property
    @abstractmethod
    def abilities(self) -> frozenset[Ability]:
        """The abilities that faults may count on; see `harness.faults.abilities`."""

    @property
    @abstractmethod
    def are_dialed_unready(self) -> bool:
        """Nodes must reach each other before they are ready."""

    @abstractmethod
    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        """Each node's configuration, as the host reads it. `spaces`: the workload's, all synchronous."""

    @abstractmethod
    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        """For the simulator: each node's name → what makes it, anew at each start."""

    @abstractmethod
    def durability(self, plan: Plan) -> Durability: ...

    @abstractmethod
    def owner(self, plan: Plan) -> str:
        """The node that takes writes first, as the plan is drawn; "" if none leads, and all take writes."""

    @abstractmethod
    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        """The nodes that may be made the owner."""

    @abstractmethod
    async def promote(self, node: str, cluster: Cluster) -> str | None:
        """Ask a node to become the owner; None if it will try, else why not."""

    @abstractmethod
    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        """The node that takes writes, by the nodes' reports; None if none reports that."""

    @abstractmethod
    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """From nodes that are up to a store that serves; ClusterError if it does not come to that."""

    @abstractmethod
    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        """True if nothing is under way any more: queues empty, all nodes the same."""

    @abstractmethod
    def promise(self, plan: Plan) -> Promise: ...

    @abstractmethod
    def checks(self, plan: Plan) -> tuple[Check, ...]:
        """Checks in addition to those of every workload."""

    @abstractmethod
    def bugs(self) -> Mapping[str, str]:
        """The seeded bugs by name, with what each does."""
