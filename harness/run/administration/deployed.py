"""The current deployment, which administration changes: members, versions, options; and the means to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.cluster.place import FROM, TO, Which
from harness.cluster.protocol import Administered, Cluster, Configures
from harness.errors import ClusterError
from harness.faults.fault import Fault
from harness.faults.membership import Membership
from harness.faults.node_options import Value
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.status import Statuses
from harness.systems.system import System

POLL_NS = SECOND_NS // 50
WITHIN_NS = 20 * SECOND_NS
"""How long a step may take before it is given up: other faults may be at work beside it."""


@dataclass(slots=True)
class Deployed:
    """`note` appends the current membership to the history, `settled` once every node knows it."""

    plan: Plan
    cluster: Cluster
    system: System
    spaces: tuple[str, ...]
    note: Callable[[Mapping[str, object]], None]
    members: Membership
    generations: dict[str, int] = field(default_factory=dict)
    """How many new nodes have come to each address."""
    run_in: dict[str, Which] = field(default_factory=dict)
    """The version of each node that had a step in the course of the run."""
    reported_versions: dict[Which, str] = field(default_factory=dict)
    """The version that nodes report after such a step."""
    note_option: Callable[[str, Mapping[str, object]], None] = lambda node, value: None
    """Writes a line of the history: a node's option changes."""
    joined: dict[str, bytes] = field(default_factory=dict)
    """The configuration of each node that came in the course of the run."""
    full_ns: dict[str, int] = field(default_factory=dict)
    """When each of them was a full member; it had no data before."""
    lasting: dict[str, Value] = field(default_factory=dict)
    """Options that were changed for good: nodes start with them from now on."""
    refused_versions: list[str] = field(default_factory=list)
    """Nodes that did not come up in the other version: no further step is made."""

    def was_joining(self, node: str, time_ns: int) -> bool:
        """A new node had come to this address, and was not a full member by then."""
        return node in self.joined and time_ns <= self.full_ns.get(node, time_ns)

    @property
    def administered(self) -> Administered:
        if not isinstance(self.cluster, Administered):
            raise ClusterError(f"--cluster {self.plan.cluster} cannot stop and start single nodes")
        return self.cluster

    def configuration(self, node: str, options: Mapping[str, Value]) -> bytes:
        """The node's configuration with these options changed."""
        first = self.joined.get(node) or self.system.configurations(self.plan, self.spaces)[node]
        configured = self.system.settings.configured(first, {**self.lasting, **options})
        if configured is None:
            raise ClusterError(f"--system {self.plan.system} has no options that the harness could change")
        return configured

    def configure(self, node: str, options: Mapping[str, Value]) -> None:
        """The node has these from its next start on."""
        if not isinstance(self.cluster, Configures):
            raise ClusterError(f"--cluster {self.plan.cluster} cannot start a node with other options")
        self.cluster.configure(node, self.configuration(node, options))

    def note_change(
        self, node: str, option: str, before: object, after: object, *, how: str, is_back: bool
    ) -> None:
        change = {"option": option, "from": before, "to": after, "how": how, "back": is_back}
        self.note_option(node, change)

    def due(self, fault: Fault) -> tuple[str, ...]:
        """The node that an upgrade or a downgrade is done to now: the one it names, or, if that runs the version
        already (the names of two nodes were exchanged), another; () if there is none."""
        wanted = TO if fault.does == "upgrade" else FROM
        waiting = [node for node in self.members.present if self.run_in.get(node, FROM) != wanted]
        named = [node for node in fault.nodes if node in waiting]
        return () if self.refused_versions else tuple(named or waiting)[:1]

    async def statuses(self, nodes: Iterable[str] | None = None) -> dict[str, Mapping[str, object] | None]:
        named = self.members.present if nodes is None else tuple(nodes)
        return {node: await self.cluster.status(node) for node in named}

    async def until(self, is_so: Callable[[Statuses], bool], deadline_ns: int) -> bool:
        """Poll the members until `is_so`; False if that takes too long."""
        while True:
            if is_so(await self.statuses()):  # at least once, however late it is
                return True
            if self.cluster.now_ns() >= deadline_ns:
                return False
            await self.cluster.sleep_until(self.cluster.now_ns() + POLL_NS)

    def deadline_ns(self) -> int:
        return self.cluster.now_ns() + WITHIN_NS

    def options_of(self, fault: Fault) -> dict[str, Value]:
        """The options that the fault sets."""
        return self.plan.expectations.decisive.as_set(fault.options)

    def tell_quorum(self, fault: Fault, *, settled: bool) -> None:
        """Note the quorum if the fault sets it. While it changes, some nodes count by the old one and some by the new;
        restarted ones, too."""
        quorum = self.options_of(fault).get(self.plan.expectations.decisive.quorum)
        if isinstance(quorum, int):
            self.tell(settled=settled, quorum=None if settled and not fault.stays else quorum)

    def tell(self, *, settled: bool, joins: str = "", quorum: int | None = None) -> None:
        """Note the members now (or as soon as the change is `settled`); `joins` comes with an empty disk."""
        value: dict[str, object] = {
            "nodes": list(self.members.present),
            "quorum": self.members.quorum if quorum is None else quorum,
            "settled": settled,
            "left": list(self.members.absent),
        }
        self.note(value | ({"joins": joins} if joins else {}))
