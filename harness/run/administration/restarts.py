"""Restarts: SIGTERM to one node after the other, each when the one before is back and has caught up; or to all at once.

With options of the fault, nodes start with these, and are restarted in the same way with their own at the end, unless
the change is to stay. Took effect if every node ended; healed if all came back each time and have caught up
with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault
from harness.faults.node_options import RESTARTED, Value
from harness.run.administration.deployed import Deployed
from harness.systems.status import covers, furthest, has_synced


class Restarts:
    def __init__(self, fault: Fault, deployed: Deployed) -> None:
        self._fault = fault
        self._deployed = deployed
        self._asked_ns = deployed.cluster.now_ns()
        self._wanted = deployed.options_of(fault)
        self._lasting = dict(deployed.lasting)
        self._seen_ns: dict[str, int] = {}
        self._away: dict[str, None] = {}
        """Nodes that did not come back, or have not caught up."""
        self._details: list[str] = []

    async def begin(self) -> None:
        if self._fault.stays:
            self._deployed.lasting.update(self._wanted)
        self._deployed.tell_quorum(self._fault, settled=False)
        await self._restart_all(self._wanted, is_back=False)

    async def _restart_all(self, options: Mapping[str, Value], *, is_back: bool) -> None:
        nodes = self._fault.nodes
        for group in (nodes,) if self._fault.at_once else tuple((node,) for node in nodes):
            await self._restart(group, options, is_back)

    async def _restart(self, nodes: Sequence[str], options: Mapping[str, Value], is_back: bool) -> None:
        deployed = self._deployed
        for node in nodes:
            if not await deployed.administered.terminate(node):
                self._details.append(f"{node} did not end by SIGTERM alone")
            if await deployed.cluster.status(node) is None:
                self._seen_ns.setdefault(node, deployed.cluster.now_ns())
        known = furthest(await deployed.statuses())
        for node in nodes if self._wanted else ():
            # All of them before the first starts: the end of another fault may start one in the meantime.
            deployed.configure(node, options)
            self._note(node, is_back)
        for node in nodes:
            try:
                await deployed.administered.start_again(node)
            except ClusterError as error:
                self._details.append(error.message)
                self._away[node] = None
        for node in nodes:
            if node not in self._away and not await deployed.until(
                lambda statuses, node=node: has_synced(node, statuses) and covers(statuses[node], known),  # type: ignore[misc]
                deployed.deadline_ns(),
            ):
                self._away[node] = None
                self._details.append(f"{node} has not caught up")

    def _note(self, node: str, is_back: bool) -> None:
        usual = {**self._deployed.plan.options_of(node), **self._lasting}
        for name, value in self._wanted.items():
            before, after = (value, usual[name]) if is_back else (usual[name], value)
            self._deployed.note_change(node, name, before, after, how=RESTARTED, is_back=is_back)

    async def end(self) -> Evidence:
        heal_asked_ns = self._deployed.cluster.now_ns()
        if self._wanted and not self._fault.stays:
            await self._restart_all({}, is_back=True)
        healed = not self._away and await self._deployed.until(
            lambda statuses: all(has_synced(node, statuses) for node in statuses),
            self._deployed.deadline_ns(),
        )
        self._deployed.tell_quorum(self._fault, settled=True)
        is_all = len(self._seen_ns) == len(self._fault.nodes)
        return Evidence(
            took_effect=is_all,
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns.values(), default=None),
            all_in_effect_ns=max(self._seen_ns.values()) if is_all else None,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._deployed.cluster.now_ns(),
            healed=healed,
            counters={
                "ended": len(self._seen_ns),
                "back": len(self._fault.nodes) - len(self._away),
            },
            detail="; ".join(self._details),
        )
