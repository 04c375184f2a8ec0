"""Rolling restart: SIGTERM to one node after the other, each when the one before is back and has caught up.

Bit if every node was seen to end; healed if all came back and have caught up with each other.
"""

from __future__ import annotations

from harness.administration.site import Site, covers, furthest, has_synced
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault


class RollingRestart:
    def __init__(self, fault: Fault, site: Site) -> None:
        self._fault = fault
        self._site = site
        self._asked_ns = site.cluster.now_ns()
        self._seen_ns: list[int] = []
        self._back: list[str] = []
        self._details: list[str] = []

    async def begin(self) -> None:
        for node in self._fault.nodes:
            await self._restart(node)

    async def _restart(self, node: str) -> None:
        site = self._site
        if not await site.administered.terminate(node):
            self._details.append(f"{node} did not end by SIGTERM alone")
        if await site.cluster.status(node) is None:
            self._seen_ns.append(site.cluster.now_ns())
        wanted = furthest(await site.statuses())
        try:
            await site.administered.start_again(node)
        except ClusterError as error:
            self._details.append(error.message)
            return
        if await site.until(
            lambda told: has_synced(node, told) and covers(told[node], wanted), site.deadline_ns()
        ):
            self._back.append(node)
        else:
            self._details.append(f"{node} has not caught up")

    async def end(self) -> Evidence:
        heal_asked_ns = self._site.cluster.now_ns()
        count = len(self._fault.nodes)
        healed = len(self._back) == count and await self._site.until(
            lambda told: all(has_synced(node, told) for node in told), self._site.deadline_ns()
        )
        return Evidence(
            bit=len(self._seen_ns) == count,
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=min(self._seen_ns, default=None),
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._site.cluster.now_ns(),
            healed=healed,
            counters={"ended": len(self._seen_ns), "back": len(self._back)},
            detail="; ".join(self._details),
        )
