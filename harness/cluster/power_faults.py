"""Processes that lose their power, or find their disk damaged when they come back: kills with something in between.

A power loss says goodbye to nobody: the node is cut off first, then killed, so that neither its end of file nor what
its kernel still holds reaches anybody; then unsynced bytes are thrown away; when it runs again, old connections are
reset.

A node that refuses a damaged disk does right where it may only detect the damage. It is then started once more from the
files as they were before, so that its refusal is seen and the run has all of its nodes at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from harness.cluster.process_faults import Answers, Kill, Processes
from harness.cluster.storage import Storage
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault

_ENDS_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.01


class Isolation(Protocol):
    """Silence around nodes without power."""

    async def cut_off(self, fault: Fault) -> None:
        """From now on nothing reaches the nodes of the fault or comes from them."""
        ...

    async def forget(self, fault: Fault) -> None:
        """The nodes are dead: what is held for them or of them is gone."""
        ...

    async def join(self, fault: Fault) -> None:
        """They run again; connections of before are reset."""
        ...


class PowerLoss(Kill):
    """Bit if all processes were seen dead."""

    def __init__(
        self,
        fault: Fault,
        roster: Processes,
        now_ns: Callable[[], int],
        answers: Answers,
        isolation: Isolation,
        disks: Mapping[str, Storage],
    ) -> None:
        super().__init__(fault, roster, now_ns, answers)
        self._isolation = isolation
        self._disks = disks
        self._bytes_lost = 0

    async def begin(self) -> None:
        await self._isolation.cut_off(self._fault)
        await asyncio.gather(*(self._disks[node].power_fails() for node in self._fault.nodes))
        await super().begin()
        await self._isolation.forget(self._fault)
        for node in self._fault.nodes:
            self._bytes_lost += await self._disks[node].lose_unsynced(f"{self._fault.seed} {node}")

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        started = await asyncio.gather(*map(self._start, self._fault.nodes))
        await self._isolation.join(self._fault)
        healed = [await self._answers_again(node) if up else up for node, up in started]
        counters = {"processes_seen_dead": len(self._seen_ns), "bytes_lost": self._bytes_lost}
        return self._evidence(bool(self._seen_ns), healed, counters)

    async def _start(self, node: str) -> tuple[str, bool | None]:
        try:
            return node, True if await self._roster.revive(node) else None
        except ClusterError as error:
            self._details.append(error.message)
            return node, False


class DamagedDisk(Kill):
    """Bit if the processes were seen dead and files of theirs damaged."""

    def __init__(
        self,
        fault: Fault,
        roster: Processes,
        now_ns: Callable[[], int],
        answers: Answers,
        disks: Mapping[str, Storage],
    ) -> None:
        super().__init__(fault, roster, now_ns, answers)
        self._disks = disks
        self._counts: Counter[str] = Counter()

    async def begin(self) -> None:
        await super().begin()
        for node in self._fault.nodes:
            await self._damage(node)

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        healed = await asyncio.gather(*map(self._revive, self._fault.nodes))
        names = ("disks_damaged", "bytes_damaged", "refused_to_start")
        counters = {name: self._counts[name] for name in names}
        return self._evidence(bool(self._seen_ns) and self._counts["disks_damaged"] > 0, healed, counters)

    async def _damage(self, node: str) -> None:
        disk = self._disks[node]
        await disk.save()
        size = await disk.damage(self._fault.damage, f"{self._fault.seed} {node}")
        self._counts["bytes_damaged"] += size
        self._counts["disks_damaged"] += size > 0
        if not size:
            self._details.append(f"{node} has no log that is long enough to be damaged")

    async def _revive(self, node: str) -> bool | None:
        with self._roster.may_refuse(node) as said:
            up = await super()._revive(node)
            if up is not False or not await self._has_ended(node):
                return up
        self._details = [f"{node} refuses: {line}" for line in said] or self._details
        self._counts["refused_to_start"] += 1
        await self._disks[node].restore()
        await self._roster.start_again(node)
        return await self._answers_again(node)

    async def _has_ended(self, node: str) -> bool:
        """Whoever says that it does not come up ends soon after."""
        deadline = asyncio.get_running_loop().time() + _ENDS_WITHIN_S
        while self._roster.is_alive(node) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_LOOK_AGAIN_S)
        return not self._roster.is_alive(node)
