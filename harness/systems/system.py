"""The interface between the harness and a system under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from checkers.check import Check
from harness.clients.client import Client
from harness.clients.wire import ClientWire
from harness.cluster.place import Command, Version
from harness.cluster.protocol import Cluster
from harness.faults.abilities import Ability
from harness.faults.fault import Does
from harness.faults.membership import Membership
from harness.faults.node_options import Value
from harness.plan.plan import Options, Plan
from harness.systems.parts import Logs, Pictures, Reports, Variety
from harness.systems.promise import Promise
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability
from nodes.kernel.trace import Described

if TYPE_CHECKING:
    from harness.cluster.sim.cluster import Watch

Note = Callable[[str, str, object], None]
"""(what, node, value) → a line of the history."""


class System(Protocol):
    """A store that can be put under test."""

    @property
    def summary(self) -> str: ...

    @property
    def options(self) -> type[Options]:
        """The part of a plan that belongs to this system alone; the command line makes its options of it."""
        ...

    def completed(self, plan: Plan) -> Plan:
        """The plan with what it leaves open decided as this system needs it."""
        ...

    def validate(self, plan: Plan) -> None:
        """WrongUse if the plan asks for what this system or its bugs cannot do on that cluster."""
        ...

    def command(self, plan: Plan) -> Command:
        """The command that starts a node at a place."""
        ...

    @property
    def client(self) -> Client:
        """The client that turns operations into the system's requests."""
        ...

    @property
    def wire(self) -> ClientWire | None:
        """The bytes of its clients' messages; None if a library knows them (`harness.clients.client`)."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that faults may count on; see `harness.faults.abilities`."""
        ...

    @property
    def are_dialed_unready(self) -> bool:
        """Nodes must reach each other before they are ready."""
        ...

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        """Each node's configuration, as the host reads it. `spaces`: the workload's, all synchronous."""
        ...

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        """For the simulator: each node's name → what makes it, anew at each start."""
        ...

    def durability(self, plan: Plan) -> Durability: ...

    def owner(self, plan: Plan) -> str:
        """The node that takes writes first, as the plan is drawn; "" if none leads, and all take writes."""
        ...

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        """The nodes that may be made the owner."""
        ...

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        """Ask a node to become the owner; None if it will try, else why not."""
        ...

    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        """The node that takes writes, by the nodes' reports; None if none reports that."""
        ...

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """From nodes that are up to a store that serves; ClusterError if it does not come to that."""
        ...

    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        """True if nothing is under way any more: queues empty, all nodes the same."""
        ...

    def promise(self, plan: Plan) -> Promise: ...

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        """Checks in addition to those of every workload."""
        ...

    def bugs(self) -> Mapping[str, str]:
        """The seeded bugs by name, with what each does."""
        ...

    # The optional parts (`harness.systems.parts`); a class that is a `Parts` has them all.

    @property
    def logs(self) -> Logs: ...

    @property
    def reports(self) -> Reports: ...

    @property
    def variety(self) -> Variety: ...

    @property
    def pictures(self) -> Pictures: ...


@runtime_checkable
class TracesMessages(Protocol):
    """A system with hosts that record the messages between its nodes (`nodes.kernel.trace`)."""

    @property
    def described(self) -> Described:
        """Which messages these are, and what to call them."""
        ...


@runtime_checkable
class NamesConfigurations(Protocol):
    """A system with named sets of options, of which each has its promise."""

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Values of its option `configuration`."""
        ...


@runtime_checkable
class ListsPromises(Protocol):
    """A system with promises that hang on its own options, and perhaps on the phase of a run."""

    def promises(self) -> Iterator[tuple[Promise, Mapping[str, str]]]:
        """Each of them, with what is promised in which phase; with its source where that stands in no clause."""
        ...


@runtime_checkable
class DependsOnMachine(Protocol):
    """A system with local nodes on which some faults take effect only if the machine has what they need."""

    def why_not_here(self, does: frozenset[Does]) -> str:
        """Why one of these cannot take effect here; "" if all can."""
        ...


@runtime_checkable
class NeedsFiles(Protocol):
    """A system with nodes that need files in a container which the image of our nodes lacks."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Debian packages; what they depend on comes with them."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of files and folders of this machine; nodes find them under the same path, read-only."""
        ...


CANNOT_JOIN = "cannot-join"
"""A line of the monitor: a new node ended in order, because no member could take it in. It is not a crash."""


@runtime_checkable
class ChangesMembers(Protocol):
    """A system with members that can leave and join."""

    def newcomer(
        self,
        plan: Plan,
        spaces: tuple[str, ...],
        node: str,
        generations: Mapping[str, int],
        members: Membership,
    ) -> bytes:
        """The configuration of a node that comes to the address `node` with an identity of its own.

        `generations`: how many new nodes have come to each address, this one included; `members`: with it.
        """
        ...

    async def remove_member(self, owner: str, number: int, cluster: Cluster) -> str | None:
        """Ask the owner to delete the member of this id; None if that is confirmed, else why not."""
        ...


@runtime_checkable
class AddsMembers(Protocol):
    """A system with nodes that run and are no members until every member is asked to count them."""

    async def add_member(self, node: str, member: str, cluster: Cluster) -> str | None:
        """Ask this member to count the node; None if it does, else why not."""
        ...

    def counts(self, status: Mapping[str, object], node: str) -> bool:
        """The member with this status counts the node, and serves."""
        ...


@runtime_checkable
class AdmitsMembers(Protocol):
    """A system with members that count a new node before it starts; its command names the members (`Place.joins`)."""

    async def admit(self, owner: str, node: str, cluster: Cluster) -> str | None:
        """Ask the owner to count a new node at the address `node`, before each start of that node on an empty disk;
        None if that is confirmed, else why not."""
        ...


@runtime_checkable
class HasOptions(Protocol):
    """A system that can start a node with different options (`harness.faults.node_options`)."""

    def with_options(self, configuration: bytes, options: Mapping[str, Value]) -> bytes:
        """The same configuration with these options."""
        ...


@runtime_checkable
class ListsMembers(Protocol):
    """A system with nodes that do not learn the members from each other: an operator configures each."""

    async def tell_members(
        self, plan: Plan, members: Membership, generations: Mapping[str, int], node: str, cluster: Cluster
    ) -> str | None:
        """The node's replication sources and the quorum; None if it has taken them, else why not."""
        ...


@runtime_checkable
class HasVersions(Protocol):
    """A system that can run its nodes in different versions."""

    def version(self, given: str | None) -> Version:
        """By what people call it; None: the usual one. Raises WrongUse."""
        ...


@runtime_checkable
class StartsFromLogs(Protocol):
    """A system that can start its nodes with stored logs."""

    @property
    def starts(self) -> Mapping[str, str]:
        """Their names, and what they are."""
        ...

    def first_files(self, plan: Plan, spaces: tuple[str, ...]) -> Mapping[str, Mapping[str, bytes]]:
        """Node → name → bytes; nothing where the plan names no start."""
        ...

    def acknowledged_before(self, plan: Plan) -> Mapping[str, object]:
        """The answers that clients got while these logs were written (`checkers.replicas.stored_start`); empty if
        none."""
        ...


@runtime_checkable
class MakesNodes(Protocol):
    """A system with nodes that run in the simulator, whatever configuration they are given."""

    def maker(self, configuration: bytes) -> Callable[[], Node]: ...


@runtime_checkable
class ChangesOptions(Protocol):
    """A system with nodes that report their options while they run, and take changes."""

    async def options_of(self, node: str, cluster: Cluster) -> Mapping[str, object] | None:
        """All of them by name; None if the node does not answer."""
        ...

    async def change_options(self, node: str, options: Mapping[str, object], cluster: Cluster) -> str:
        """Ask the node to take these; "" if it did, else its answer."""
        ...


@runtime_checkable
class WatchesItsWorld(Protocol):
    """A system that records what the disks and links of its simulated nodes do (`checkers.logs.wal.early`)."""

    @property
    def watch(self) -> Watch: ...


@runtime_checkable
class HasAsynchronousSpaces(Protocol):
    """A system that makes spaces with transactions that no quorum confirms, beside those of the workload."""

    @property
    def asynchronous_spaces(self) -> tuple[str, ...]: ...


@runtime_checkable
class TellsWhyItCannotJoin(Protocol):
    """A system with new nodes that end in order if no member can take them in."""

    def cannot_join(self, how: str, last_words: Sequence[str]) -> str:
        """The line in which a process reported that; "" if it ended for a different reason."""
        ...


@runtime_checkable
class TellsWhyNoCuts(Protocol):
    """A system of which consistent cuts are taken by default, but not in every configuration."""

    def why_no_cuts(self, plan: Plan) -> str:
        """Why none is taken, though nobody said so; "" if cuts are, or a person asked for none."""
        ...


@runtime_checkable
class Operated(Protocol):
    """A system that needs an operator from outside to fail over."""

    def is_operated(self, plan: Plan) -> bool: ...

    async def operate(self, plan: Plan, cluster: Cluster, note: Note, is_over: Callable[[], bool]) -> None:
        """Do so until the run's load is over and all has settled."""
        ...
