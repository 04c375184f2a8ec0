"""Members that are added while they run already: every member is asked to count the newcomer.

It took effect when all members, the newcomer among them, say that they count it and that it serves.
"""

from __future__ import annotations

from harness.faults.fault import Evidence, Fault
from harness.run.administration.deployed import POLL_NS, Deployed
from harness.systems.status import Statuses


class Introduction:
    def __init__(self, fault: Fault, deployed: Deployed) -> None:
        (self._node,) = fault.nodes
        self._deployed = deployed
        self._system = deployed.system.members
        self._asked_ns = deployed.cluster.now_ns()
        self._effect_ns: int | None = None
        self._detail = ""

    def _is_counted(self, statuses: Statuses) -> bool:
        return all(
            status is not None and self._system.counts(status, self._node) for status in statuses.values()
        )

    async def begin(self) -> None:
        """A member that does not answer is asked again: the newcomer serves when the last one counts it."""
        deployed, cluster = self._deployed, self._deployed.cluster
        deadline_ns = deployed.deadline_ns()
        waiting = list(deployed.members.present)
        deployed.members = deployed.members.having(self._node)
        deployed.tell(settled=False)
        while waiting and cluster.now_ns() < deadline_ns:
            for member in list(waiting):
                refused = await self._system.add(self._node, member, cluster)
                if refused is None:
                    waiting.remove(member)
                else:
                    self._detail = f"{member} does not count {self._node}: {refused}"
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)
        if not waiting and await deployed.until(self._is_counted, deadline_ns):
            self._effect_ns = cluster.now_ns()
            self._detail = f"{self._node} is one of {len(deployed.members.present)} members now"
            deployed.tell(settled=True)

    async def end(self) -> Evidence:
        """Wait until all members answer and count the newcomer."""
        deployed, heal_asked_ns = self._deployed, self._deployed.cluster.now_ns()
        healed = await deployed.until(self._is_counted, deployed.deadline_ns())
        if healed and self._effect_ns is None:
            deployed.tell(settled=True)
        return Evidence(
            took_effect=self._effect_ns is not None,
            asked_ns=self._asked_ns,
            first_effect_ns=self._effect_ns,
            all_in_effect_ns=self._effect_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=deployed.cluster.now_ns(),
            healed=healed,
            counters={"members": len(deployed.members.present)},
            detail=self._detail,
        )
