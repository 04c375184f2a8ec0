"""Members leave, come, and are replaced, one change at a time; before each, all nodes know the last one.

- remove: the node is stopped (SIGTERM), a write that needs a quorum deletes its identity from `_cluster`, and
  the remaining nodes no longer count it;
- add: a node starts on an empty disk under a new identity, joins, catches up, and all count it; some stores count it
  before it starts (`Members.admit`);
- replace: the node is killed and its disk is lost; at the end its identity is deleted, and a new node joins in its
  place.

Before a change all members report the same members. No node returns under an identity that has left: the address
of a node is used again, its identity is not. A removal or addition took effect if all members reported different
members than before, a replacement as soon as the node was gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from checkers.history.values import often
from harness.errors import ClusterError, NodeEnded
from harness.faults.fault import Evidence, Fault
from harness.plan.plan import SECOND_NS
from harness.run.administration.deployed import POLL_NS, Deployed
from harness.systems.status import Statuses, covers, furthest, has_synced

AGAIN_NS = SECOND_NS // 2
"""How long an operator waits before a newcomer is tried once more."""


def is_agreed(statuses: Statuses, count: int | None = None) -> bool:
    """All nodes report the same members and quorum, and `count` members; by default as many as there are nodes."""
    reports = [
        None if status is None else (status.get("members"), status.get("quorum"))
        for status in statuses.values()
    ]
    first = reports[0] if reports else None
    return (
        first is not None
        and isinstance(first[0], list | tuple)
        and len(first[0]) == (len(statuses) if count is None else count)
        and all(report == first for report in reports)
    )


class _Change:
    """A change of members, and its observed effect."""

    def __init__(self, fault: Fault, deployed: Deployed) -> None:
        (self._node,) = fault.nodes
        self._deployed = deployed
        self._system = deployed.system.members
        self._asked_ns = deployed.cluster.now_ns()
        self._effect_ns: int | None = None
        self._detail = ""
        self._number: int | None = None
        """The id under which the node that leaves is a member."""
        self._ended: list[str] = []
        """The last words of new nodes that ended instead of joining."""
        self._is_settled = True
        """All nodes know the change that was begun last."""

    def _tell(self, *, settled: bool, joins: str = "") -> None:
        self._is_settled = settled
        self._deployed.tell(settled=settled, joins=joins)

    def _note_effect(self) -> None:
        self._effect_ns = self._deployed.cluster.now_ns()

    async def _all_agree(self) -> bool:
        """All nodes know the last change, and there is an owner that can decide about the next."""
        deployed = self._deployed
        agreed = await deployed.until(
            lambda statuses: is_agreed(statuses) and deployed.system.owner_now(statuses) is not None,
            deployed.deadline_ns(),
        )
        if not agreed:
            self._detail = "the nodes did not agree on the members: nothing was changed"
        return agreed

    async def _note_identity(self) -> bool:
        status = await self._deployed.cluster.status(self._node)
        number = None if status is None else status.get("id")
        self._number = number if isinstance(number, int) and number else None
        if self._number is None:
            self._detail = f"{self._node} did not tell its id: nothing was changed"
        return self._number is not None

    async def _remove(self) -> bool:
        """Delete the identity, again and again, because the owner may change meanwhile. The node does not run."""
        deployed, number = self._deployed, self._number
        assert number is not None
        deployed.members = deployed.members.without(self._node)
        self._tell(settled=False)  # before the first node counts anew: until all do, either quorum may decide
        deadline_ns = deployed.deadline_ns()
        while not (await self._is_gone(number) and await self._all_configured()):
            owner = deployed.system.owner_now(await deployed.statuses())
            if owner is not None:
                self._detail = await self._system.remove(owner, number, deployed.cluster) or ""
            await self._all_configured()
            if deployed.cluster.now_ns() >= deadline_ns:
                self._detail = f"replica {number} is a member still: {self._detail}"
                return False
            await deployed.cluster.sleep_until(deployed.cluster.now_ns() + POLL_NS)
        self._detail = f"replica {number} is not a member any more"
        self._tell(settled=True)
        return True

    async def _all_configured(self) -> bool:
        """If an operator must configure that: each member knows its replication sources and the quorum."""
        deployed = self._deployed
        if not self._system.are_listed:
            return True
        for node in deployed.members.present:
            error = await self._system.tell(
                deployed.plan, deployed.members, deployed.generations, node, deployed.cluster
            )
            if error is not None:
                self._detail = f"{node} does not take the new members: {error}"
                return False
        return True

    async def _is_gone(self, number: int) -> bool:
        statuses = await self._deployed.statuses()
        return is_agreed(statuses) and not any(number in _members(status) for status in statuses.values())

    async def _join(self) -> bool:
        """A node with a new identity comes to the address; it is a full member as soon as it has caught up."""
        deployed, node = self._deployed, self._node
        statuses = await deployed.statuses()
        # Counted before the start: an identity that came to nothing is not used again.
        generation = deployed.generations[node] = deployed.generations.get(node, 0) + 1
        before, members = deployed.members.present, deployed.members.having(node)
        configuration = self._system.newcomer(
            deployed.plan, deployed.spaces, node, deployed.generations, members
        )
        deployed.joined[node] = configuration
        deployed.full_ns.pop(node, None)
        if deployed.lasting:
            configuration = deployed.configuration(node, {})
        wanted = furthest(statuses)  # of before the join: what is written since may still be on its way
        deployed.members = members
        # Before the start: its disk is empty, so it may hold less from here on.
        self._tell(settled=False, joins=node)
        if not await self._started(configuration, before):
            return False
        deadline_ns = deployed.deadline_ns()
        while not await self._all_configured() and deployed.cluster.now_ns() < deadline_ns:
            await deployed.cluster.sleep_until(deployed.cluster.now_ns() + POLL_NS)
        joined = await deployed.until(
            lambda statuses: (
                is_agreed(statuses) and has_synced(node, statuses) and covers(statuses[node], wanted)
            ),
            deadline_ns,
        )
        if not joined:
            self._detail = f"the new {node} is not a full member yet"
            return False
        deployed.full_ns[node] = deployed.cluster.now_ns()
        status = await deployed.cluster.status(node)
        number = (status or {}).get("id")
        self._detail += self._failures()
        self._detail += f"{node} is replica {number} now, its identity number {generation + 1}"
        self._tell(settled=True)
        return True

    async def _started(self, configuration: bytes, members: Collection[str]) -> bool:
        """If the node ends while it joins, note it and start it again on an empty disk, as an operator would."""
        deployed, deadline_ns = self._deployed, self._deployed.deadline_ns()
        is_admitted_first = self._system.are_admitted_first
        while True:
            if not await self._is_admitted(members, deadline_ns):
                return False
            try:
                await deployed.administered.start_again(
                    self._node, configuration=configuration, members=members if is_admitted_first else ()
                )
                return True
            except NodeEnded as error:
                self._ended.append(error.message)
                if deployed.cluster.now_ns() >= deadline_ns:
                    self._detail += self._failures()
                    return False
                await deployed.cluster.sleep_until(deployed.cluster.now_ns() + AGAIN_NS)
            except ClusterError as error:
                self._detail = error.message
                return False

    async def _is_admitted(self, members: Collection[str], deadline_ns: int) -> bool:
        """Wait, where members count a new node before it starts, until all do, and no newcomer that never came."""
        deployed, system = self._deployed, self._system
        if not system.are_admitted_first:
            return True
        refused: str | None = "no node leads"
        while deployed.cluster.now_ns() < deadline_ns:
            statuses = await deployed.statuses(members)
            owner = deployed.system.owner_now(statuses)
            if refused is None and is_agreed(statuses, len(members) + 1):
                return True
            if refused is not None and owner is not None and None not in statuses.values():
                known = {status.get("id") for status in statuses.values() if status is not None}
                strangers = [number for number in _members(statuses[owner]) if number not in known]
                if strangers:
                    await self._system.remove(owner, strangers[0], deployed.cluster)
                else:
                    refused = await system.admit(owner, self._node, deployed.cluster)
            await deployed.cluster.sleep_until(deployed.cluster.now_ns() + POLL_NS)
        self._detail = f"the members do not count the new {self._node}: {refused or 'not all know of it'}"
        return False

    def _failures(self) -> str:
        if not self._ended:
            return ""
        return f"{often(len(self._ended))} the newcomer ended while it joined ({self._ended[-1]}); "

    def _evidence(self, heal_asked_ns: int, *, healed: bool | None, counters: dict[str, int]) -> Evidence:
        return Evidence(
            took_effect=self._effect_ns is not None,
            asked_ns=self._asked_ns,
            first_effect_ns=self._effect_ns,
            all_in_effect_ns=self._effect_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._deployed.cluster.now_ns(),
            healed=healed,
            counters={
                **counters,
                "ended_while_joining": len(self._ended),
                "members": len(self._deployed.members.present),
            },
            detail=self._detail,
        )

    async def end(self) -> Evidence:
        """Wait until all members answer and agree."""
        heal_asked_ns = self._deployed.cluster.now_ns()
        healed = await self._deployed.until(is_agreed, self._deployed.deadline_ns())
        if healed and not self._is_settled:
            self._tell(settled=True)
        return self._evidence(heal_asked_ns, healed=healed, counters={})


class Removal(_Change):
    async def begin(self) -> None:
        if not await self._all_agree() or not await self._note_identity():
            return
        await self._deployed.administered.terminate(self._node)
        if await self._remove():
            self._note_effect()


class Addition(_Change):
    async def begin(self) -> None:
        if await self._all_agree() and await self._join():
            self._note_effect()


class Replacement(_Change):
    async def begin(self) -> None:
        if not await self._all_agree() or not await self._note_identity():
            return
        await self._deployed.administered.destroy(self._node)
        if await self._deployed.cluster.status(self._node) is None:
            self._note_effect()

    async def end(self) -> Evidence:
        heal_asked_ns = self._deployed.cluster.now_ns()
        if self._number is None or self._effect_ns is None:
            return self._evidence(heal_asked_ns, healed=None, counters={})
        healed = await self._remove()
        if healed:
            self._detail += "; "
            healed = await self._join()
        return self._evidence(heal_asked_ns, healed=healed, counters={"disks_lost": 1})


def _members(status: Mapping[str, object] | None) -> tuple[int, ...]:
    members = status.get("members") if status is not None else None
    return tuple(members) if isinstance(members, list | tuple) else ()
