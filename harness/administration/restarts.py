"""Rolling restart: SIGTERM to one node after the other, each when the one before is back and has caught up.

A rolling upgrade is the same, and each node starts with the newer code. Bit if every node was seen to end and to come
back (after an upgrade: as another version, by its own word); healed if all have caught up with each other.
"""

from __future__ import annotations

from collections.abc import Mapping

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
        self._changed: list[str] = []
        self._details: list[str] = []

    async def begin(self) -> None:
        for node in self._fault.nodes:
            await self._restart(node)

    async def _restart(self, node: str) -> None:
        site = self._site
        before = await site.cluster.status(node)
        if not await site.administered.terminate(node):
            self._details.append(f"{node} did not end by SIGTERM alone")
        if await site.cluster.status(node) is None:
            self._seen_ns.append(site.cluster.now_ns())
        wanted = furthest(await site.statuses())
        try:
            await site.administered.start_again(node, is_upgraded=self._fault.does == "upgrade")
        except ClusterError as error:
            self._details.append(error.message)
            return
        if await site.until(
            lambda told: has_synced(node, told) and covers(told[node], wanted), site.deadline_ns()
        ):
            self._back.append(node)
            self._compare(node, before, await site.cluster.status(node))
        else:
            self._details.append(f"{node} has not caught up")

    def _compare(
        self, node: str, before: Mapping[str, object] | None, after: Mapping[str, object] | None
    ) -> None:
        old, new = (before or {}).get("code"), (after or {}).get("code")
        if old != new:
            self._changed.append(node)
            self._details.append(f"{node}: {old} → {new}")

    async def end(self) -> Evidence:
        heal_asked_ns = self._site.cluster.now_ns()
        count = len(self._fault.nodes)
        healed = len(self._back) == count and await self._site.until(
            lambda told: all(has_synced(node, told) for node in told), self._site.deadline_ns()
        )
        is_upgrade = self._fault.does == "upgrade"
        return Evidence(
            bit=len(self._seen_ns) == count and (not is_upgrade or len(self._changed) == count),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=min(self._seen_ns, default=None),
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._site.cluster.now_ns(),
            healed=healed,
            counters={"ended": len(self._seen_ns), "back": len(self._back)}
            | ({"upgraded": len(self._changed)} if is_upgrade else {}),
            detail="; ".join(self._details),
        )
