"""Options changed while nodes run, as an operator does by `box.cfg`, on one node after the other; and changed back.

Took effect if every node reported the new value afterwards, and at least one had a different value before; healed if
every node that told its options reports the old value again. A change that is to stay is written into the nodes' start
configuration too. A node that is down takes its options from its configuration when it starts, so it is asked again
until it answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults.fault import Evidence, Fault
from harness.faults.node_options import RUNNING
from harness.run.administration.deployed import POLL_NS, Deployed


class ChangedOptions:
    def __init__(self, fault: Fault, deployed: Deployed) -> None:
        self._fault = fault
        self._deployed = deployed
        self._settings = deployed.system.settings
        self._wanted = deployed.options_of(fault)
        self._asked_ns = deployed.cluster.now_ns()
        self._usual: dict[str, Mapping[str, object]] = {}
        self._changed: dict[str, int] = {}
        """Node → when it was seen to have what it had not before."""
        self._had_already = 0
        self._details: list[str] = []

    async def begin(self) -> None:
        self._deployed.tell_quorum(self._fault, settled=False)  # before the first node counts by it
        if self._fault.stays:
            self._deployed.lasting.update(self._wanted)
            for node in self._deployed.members.present:
                self._deployed.configure(node, {})
        for number, node in enumerate(self._fault.nodes):
            await self._pause(number)
            present = await self._present_options(node)
            if present is None:
                self._details.append(f"{node} did not tell its options")
                continue
            before = {name: present.get(name) for name in self._wanted}
            self._usual[node] = before
            if before == self._wanted:
                self._details.append(f"{node} had {self._wanted} already")
                self._had_already += 1
            elif await self._change(node, before, self._wanted, self._fault.until_ns):
                self._changed[node] = self._deployed.cluster.now_ns()

    async def _pause(self, number: int) -> None:
        """An operator goes from node to node."""
        if number and self._fault.delay_ns:
            await self._deployed.cluster.sleep_until(self._deployed.cluster.now_ns() + self._fault.delay_ns)

    async def _present_options(self, node: str) -> Mapping[str, object] | None:
        """The node's present options; it is asked until it answers, or the fault is over."""
        cluster = self._deployed.cluster
        while True:
            options = await self._ask(node)
            if options is not None or cluster.now_ns() >= self._fault.until_ns:
                return options
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    async def end(self) -> Evidence:
        heal_asked_ns = self._deployed.cluster.now_ns()
        deadline_ns = self._deployed.deadline_ns()
        healed = []
        for number, (node, usual) in enumerate(self._usual.items()):
            lasting = self._wanted if self._fault.stays else usual
            if not self._fault.stays:
                await self._pause(number)
            before = self._wanted if node in self._changed else await self._ask(node) or usual
            healed.append(await self._change(node, before, lasting, deadline_ns, is_back=True))
        self._deployed.tell_quorum(self._fault, settled=all(healed))
        return Evidence(
            took_effect=bool(self._changed)
            and len(self._changed) + self._had_already == len(self._fault.nodes),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._changed.values(), default=None),
            all_in_effect_ns=max(self._changed.values(), default=None),
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._deployed.cluster.now_ns(),
            healed=all(healed) if healed else None,
            counters={"nodes_seen_changed": len(self._changed)},
            detail="; ".join(self._details),
        )

    async def _change(
        self,
        node: str,
        before: Mapping[str, object],
        options: Mapping[str, object],
        deadline_ns: int,
        *,
        is_back: bool = False,
    ) -> bool:
        """Set options until the node reports them. `is_back`: they are those that it had first."""
        cluster = self._deployed.cluster
        while True:
            refused = await self._settings.change(node, options, cluster)
            present = None if refused else await self._ask(node)
            if present is not None and all(present.get(name) == value for name, value in options.items()):
                for name, value in options.items():
                    if before.get(name) != value:
                        self._deployed.note_change(
                            node, name, before.get(name), value, how=RUNNING, is_back=is_back
                        )
                return True
            if cluster.now_ns() >= deadline_ns:
                why = refused or "it does not report them"
                self._details.append(f"{node} did not take {dict(options)}: {why}"[:200])
                return False
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    async def _ask(self, node: str) -> Mapping[str, object] | None:
        return await self._settings.of(node, self._deployed.cluster)
