"""The names of a plan, as things are now.

A plan is drawn as if its first leader stayed the leader, and as if all nodes stayed members. When another node leads,
the names of the two are exchanged; what has left is taken out of a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.faults.fault import Fault
from harness.faults.overlap import MEMBERSHIP, STEPS
from harness.plan.plan import Plan
from harness.run.administration.deployed import Deployed


@dataclass(slots=True)
class Present:
    plan: Plan
    deployed: Deployed
    first: str
    """The leader that the plan was drawn for; "" in a store without one."""
    leader: str = ""
    """The node that takes writes now, as far as we know."""
    former: str = ""
    """The node that took writes before; "" if there was none."""

    def leads(self, node: str) -> None:
        """Note that the node leads now."""
        if node != self.leader:
            self.former, self.leader = self.leader, node

    def name(self, drawn: str) -> str:
        first, leader = self.first, self.leader
        if not first or not leader or leader == first:
            return drawn
        return leader if drawn == first else first if drawn == leader else drawn

    def link(self, drawn: tuple[str, str]) -> tuple[str, str]:
        source, target = drawn
        return self.name(source), self.name(target)

    def fault(self, drawn: Fault) -> Fault | None:
        """The fault with today's names, and without nodes that have left; None if nothing of it is left."""
        return self.of_members(
            msgspec.structs.replace(
                drawn,
                nodes=tuple(self.name(node) for node in drawn.nodes),
                links=tuple(self.link(link) for link in drawn.links),
                shapes=tuple(
                    msgspec.structs.replace(shape, links=tuple(self.link(link) for link in shape.links))
                    for shape in drawn.shapes
                ),
            )
        )

    def of_members(self, fault: Fault) -> Fault | None:
        """The fault without nodes that have left; None if nothing of it is left, or if it may not be."""
        members = self.deployed.members
        absent = members.absent
        if fault.does == "failover" and {*fault.nodes} & self.plan.without_a_vote:
            return None
        if fault.does in STEPS:
            due = self.deployed.due(fault)
            return msgspec.structs.replace(fault, nodes=due) if due else None
        if fault.does == "add":
            return msgspec.structs.replace(fault, nodes=absent[:1]) if absent else None
        if not absent and fault.does not in MEMBERSHIP:
            return fault
        links = tuple(link for link in fault.links if not {*link} & {*absent})
        nodes = tuple(node for node in fault.nodes if node not in absent)
        if (fault.links and not links) or (fault.nodes and not nodes):
            return None
        if members.why_not(fault.does, nodes):
            return None
        kept = ((shape, [link for link in shape.links if not {*link} & {*absent}]) for shape in fault.shapes)
        shapes = tuple(msgspec.structs.replace(shape, links=tuple(left)) for shape, left in kept if left)
        if fault.shapes and len(shapes) < 2:
            return None  # a partition with one shape left changes nothing
        return msgspec.structs.replace(fault, nodes=nodes, links=links, shapes=shapes)
