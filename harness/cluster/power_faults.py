"""Processes that lose their power, or find their disk damaged when they come back: kills with something in between.

A power loss closes no connection: the node is cut off first, then killed, so that no peer gets its end of file or what
its kernel still holds; then unsynced bytes are thrown away; when it runs again, old connections are
reset.

A node that refuses a damaged disk does right where it may only detect the damage; so does a store that does not promise
to survive a power loss (real Tarantool with wal_mode=write), if what is left makes no sense to it. It is then started
once more from the files as they were before, so that its refusal is seen and the run has all of its nodes at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
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


class _Spoilt(Kill):
    """The common part of both: a node that refuses damaged files gets the old ones back, and starts once more."""

    def __init__(
        self,
        fault: Fault,
        processes: Processes,
        now_ns: Callable[[], int],
        answers: Answers,
        disks: Mapping[str, Storage],
    ) -> None:
        super().__init__(fault, processes, now_ns, answers)
        self._disks = disks
        self._counts: Counter[str] = Counter()

    async def _once_more(self, node: str, said: Sequence[str]) -> bool:
        """The node has refused; whether it answers with its files as they were before."""
        told = [detail for detail in self._details if not detail.startswith(f"{node} ")]
        self._details = told + [f"{node} refuses: {line}" for line in said]
        self._counts["refused_to_start"] += 1
        await self._disks[node].restore()
        try:
            await self._processes.start_again(node)
        except ClusterError as error:
            self._details.append(error.message)
            return False
        return await self._answers_again(node)

    async def _has_ended(self, node: str, said: Sequence[str]) -> bool:
        """A node that refuses to start ends soon after it says so; its end, and what it `said`, are noted later."""
        deadline = asyncio.get_running_loop().time() + _ENDS_WITHIN_S
        while (self._processes.is_alive(node) or not said) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_LOOK_AGAIN_S)
        return not self._processes.is_alive(node)


class PowerLoss(_Spoilt):
    """Bit as a kill. `may_refuse`: a store that promises to survive none may say so instead."""

    def __init__(
        self,
        fault: Fault,
        processes: Processes,
        now_ns: Callable[[], int],
        answers: Answers,
        isolation: Isolation,
        disks: Mapping[str, Storage],
        *,
        may_refuse: bool = False,
    ) -> None:
        super().__init__(fault, processes, now_ns, answers, disks)
        self._isolation = isolation
        self._may_refuse = may_refuse

    async def begin(self) -> None:
        await self._isolation.cut_off(self._fault)
        await asyncio.gather(*(self._disks[node].power_fails() for node in self._fault.nodes))
        await super().begin()
        await self._isolation.forget(self._fault)
        for node in self._fault.nodes:
            if self._may_refuse:
                await self._disks[node].save()
            seed = f"{self._fault.seed} {node}"
            self._counts["bytes_lost"] += await self._disks[node].lose_unsynced(seed)

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        with ExitStack() as allowed:
            said = {
                node: allowed.enter_context(self._processes.may_refuse(node))
                for node in (self._fault.nodes if self._may_refuse else ())
            }
            started = await asyncio.gather(*map(self._start, self._fault.nodes))
            await self._isolation.join(self._fault)
            healed = {node: await self._answers_again(node) if up else up for node, up in started}
            refused = [
                node for node in said if healed[node] is False and await self._has_ended(node, said[node])
            ]
        for node in refused:
            healed[node] = await self._once_more(node, said[node])
        counters = {
            "processes_seen_dead": len(self._seen_ns),
            "bytes_lost": self._counts["bytes_lost"],
            **({"refused_to_start": len(refused)} if self._may_refuse else {}),
        }
        return self._evidence(self._all_seen, healed.values(), counters)

    async def _start(self, node: str) -> tuple[str, bool | None]:
        try:
            return node, True if await self._processes.revive(node) else None
        except ClusterError as error:
            self._details.append(error.message)
            return node, False


class DamagedDisk(_Spoilt):
    """Took effect if the processes were seen dead and files of theirs damaged."""

    async def begin(self) -> None:
        await super().begin()
        for node in self._fault.nodes:
            await self._damage(node)

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        healed = await asyncio.gather(*map(self._revive, self._fault.nodes))
        names = ("disks_damaged", "bytes_damaged", "refused_to_start")
        counters = {name: self._counts[name] for name in names}
        return self._evidence(self._all_seen and self._counts["disks_damaged"] > 0, healed, counters)

    async def _damage(self, node: str) -> None:
        disk = self._disks[node]
        await disk.save()
        size = await disk.damage(self._fault.damage, self._fault.logs, f"{self._fault.seed} {node}")
        self._counts["bytes_damaged"] += size
        self._counts["disks_damaged"] += size > 0
        if not size:
            self._details.append(f"{node} has no log that is long enough to be damaged")

    async def _revive(self, node: str) -> bool | None:
        with self._processes.may_refuse(node) as said:
            up = await super()._revive(node)
            if up is not False or not await self._has_ended(node, said):
                return up
        return await self._once_more(node, said)
