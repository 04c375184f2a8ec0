"""cpu-limit, memory-limit and oom: the kernel's limits on groups of processes, observed by the kernel's counts.

- cpu-limit took effect if the kernel made the node wait for longer than a heartbeat in all. A node that needs less than
  its share gets half of that, and so on, until it has to wait.
- memory-limit took effect if the kernel took memory from the node's group that came back to it, or counted that it came
  to its limit. If the kernel found none that it could take it ended the node, which counts as done by the fault: the
  node is started again at the end.
- oom took effect if the kernel counted, or logged, that it ended the node for want of memory, and it was seen dead.

Healed if the limits are what they were, as the kernel says, and the node answers.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

from harness.cluster.limits.group import Counts
from harness.cluster.limits.machine import Ballast, Limits
from harness.cluster.process_faults import Answers, Kill, Processes, _ProcessFault
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault

SPARE_BYTES: Final = 8 << 20
"""Memory that a node under memory-limit may still take."""
_NONE_SPARE_BYTES: Final = 1 << 20
_DEAD_WITHIN_S: Final = 15.0
_SEEN_DEAD_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.003
_LOOKS: Final = 6
_WAITED_NS: Final = 100_000_000
_LOOK_FOR_WAITING_S: Final = 0.05
_NOTHING: Final = Counts(throttled=0, throttled_ns=0, limit_hits=0, refaults=0, oom_kills=0)
_NANOSECONDS_A_MS: Final = 1_000_000


class Starvable(Processes, Protocol):
    """Processes of which the kernel may end one for want of memory, and that is not an unexpected end."""

    def starve(self, node: str) -> None:
        """From now on; `revive` undoes that it was ended."""
        ...

    async def feed(self, node: str) -> bool:
        """Not any more; before `revive`. Whether the kernel has ended it since `starve`."""
        ...


class _Limited(_ProcessFault):
    """The kernel's counts before, and since."""

    def __init__(
        self, fault: Fault, processes: Starvable, now_ns: Callable[[], int], answers: Answers, limits: Limits
    ) -> None:
        super().__init__(fault, processes, now_ns, answers)
        self._starvable = processes
        self._limits = limits
        self._before: dict[str, Counts] = {}
        self._last: dict[str, Counts] = {}
        self._ran_out: dict[str, bool] = {}
        """Nodes that were seen to have been ended by the kernel."""

    async def _count(self, node: str) -> None:
        """The newest counts that can be had: those of a dead container are gone."""
        await self._is_counted(node)

    async def _is_counted(self, node: str) -> bool:
        try:
            self._last[node] = await self._limits.counts(node)
        except (OSError, ValueError, ClusterError):
            return False
        finally:
            self._before.setdefault(node, self._last.get(node, _NOTHING))
        return True

    def _sum(self, name: str, nodes: tuple[str, ...] | None = None) -> int:
        """By how much a count grew, over all nodes of the fault."""
        return sum(
            max(0, getattr(self._last.get(node, _NOTHING), name) - getattr(before, name))
            for node, before in self._before.items()
            if nodes is None or node in nodes
        )

    async def _lift(self, node: str) -> bool:
        try:
            is_lifted = await self._limits.lift(node)
        except (OSError, ValueError, ClusterError) as error:
            self._details.append(f"the limits of {node} could not be lifted: {error}")
            return False
        if not is_lifted:
            self._details.append(f"the limits of {node} are not what they were")
        return is_lifted

    def _could_not(self, node: str, error: Exception) -> None:
        self._details.append(f"{node} could not be limited: {str(error) or type(error).__name__}")


class CpuLimit(_Limited):
    """Took effect if the kernel made each of the nodes wait, for longer than a heartbeat in all."""

    def __init__(
        self,
        fault: Fault,
        processes: Starvable,
        now_ns: Callable[[], int],
        answers: Answers,
        limits: Limits,
        heartbeat_ns: int,
    ) -> None:
        super().__init__(fault, processes, now_ns, answers, limits)
        self._heartbeat_ns = heartbeat_ns
        self._percent = fault.percent

    async def begin(self) -> None:
        await asyncio.gather(*map(self._limit, self._fault.nodes))

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        await asyncio.gather(*map(self._count, self._fault.nodes))
        healed = await asyncio.gather(*map(self._unlimit, self._fault.nodes))
        waited = [self._sum("throttled_ns", (node,)) for node in self._fault.nodes]
        counters = {
            "periods_throttled": self._sum("throttled"),
            "throttled_ms": sum(waited) // _NANOSECONDS_A_MS,
            "percent": self._percent,
        }
        took_effect = bool(self._seen_ns) and all(each >= self._heartbeat_ns for each in waited)
        return self._evidence(took_effect, healed, counters)

    async def _limit(self, node: str) -> None:
        await self._count(node)
        percent = self._fault.percent
        try:
            await self._limits.limit_cpu(node, percent)
            while not await self._has_to_wait(node) and percent > 1:
                percent //= 2
                await self._limits.limit_cpu(node, percent)
        except (OSError, ValueError, ClusterError) as error:
            self._could_not(node, error)
        else:
            self._percent = min(self._percent, percent)
            self._saw()

    async def _has_to_wait(self, node: str) -> bool:
        """For a good part of some periods, of which the kernel has ten a second."""
        before_ns = self._sum("throttled_ns", (node,))
        for _ in range(_LOOKS):
            await asyncio.sleep(_LOOK_FOR_WAITING_S)
            await self._count(node)
            if self._sum("throttled_ns", (node,)) - before_ns >= _WAITED_NS:
                return True
        return False

    async def _unlimit(self, node: str) -> bool:
        return await self._lift(node) and await self._answers_again(node)


class _Hungry(_Limited, Kill):
    """A second process in the nodes' groups wants memory, and there is little."""

    _ballast: Ballast
    _spare_bytes: int

    async def begin(self) -> None:
        await asyncio.gather(*map(self._squeeze, self._fault.nodes))

    async def _squeeze(self, node: str) -> None:
        await self._count(node)
        self._starvable.starve(node)
        try:
            # in this order: what the ballast reads is in no count yet for a while, and would seem to be needed
            await self._limits.limit_memory(node, self._spare_bytes)
            await self._limits.press(node, self._ballast)
            await self._until_in_effect(node)
        except (OSError, ValueError, ClusterError) as error:
            self._could_not(node, error)

    def _oom_kills(self, node: str) -> int:
        """As the kernel counted; the counts of a container go with it, often before they can be read."""
        return max(self._sum("oom_kills", (node,)), int(self._ran_out.get(node, False)))

    @abstractmethod
    async def _until_in_effect(self, node: str) -> None:
        """Wait until the limit takes effect on the node, or cannot."""

    async def _until_dead(self, node: str, within_s: float) -> bool:
        """Whether the cluster has seen within that time that the node is dead."""
        deadline = asyncio.get_running_loop().time() + within_s
        while self._processes.is_alive(node) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_LOOK_AGAIN_S)
        return not self._processes.is_alive(node)

    async def _outlives(self, node: str, kills: int) -> bool:
        """Whether the kernel has ended no process since it had ended `kills`. An end is seen a little later."""
        is_there = await self._is_counted(node)
        if not is_there or self._sum("oom_kills", (node,)) > kills:
            await self._until_dead(node, _SEEN_DEAD_WITHIN_S)
        return self._processes.is_alive(node)

    async def _relieve(self, node: str) -> bool | None:
        """In this order: a dead node has no limits that could be looked at, until it is started again."""
        is_there = await self._is_counted(node)
        kills = self._sum("oom_kills", (node,))
        await self._limits.release(node)
        if not is_there or kills:
            await self._until_dead(node, _SEEN_DEAD_WITHIN_S)
        is_alive = self._processes.is_alive(node)
        is_lifted = await self._lift(node) if is_alive else None
        if is_alive and not await self._outlives(node, kills):
            is_lifted = None  # it was ended in the last moment
        self._ran_out[node] = await self._starvable.feed(node)
        is_up = await self._revive(node)
        if is_lifted is None and is_up:
            is_lifted = await self._lift(node)
        return is_up and is_lifted is not False


class MemoryLimit(_Hungry):
    """Took effect if the kernel took memory from the groups of all nodes, or ended them for want of it."""

    _ballast = "press"
    _spare_bytes = SPARE_BYTES

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        healed = await asyncio.gather(*map(self._relieve, self._fault.nodes))
        names = ("limit_hits", "refaults")
        kills = {node: self._oom_kills(node) for node in self._fault.nodes}
        affected = [
            kills[node] or any(self._sum(name, (node,)) for name in names) for node in self._fault.nodes
        ]
        counters = {**{name: self._sum(name) for name in names}, "oom_kills": sum(kills.values())}
        return self._evidence(bool(self._seen_ns) and all(affected), healed, counters)

    async def _until_in_effect(self, node: str) -> None:
        self._saw()


class OutOfMemory(_Hungry):
    """Took effect if the kernel counted an end in each group, and the nodes were seen dead."""

    _ballast = "fill"
    _spare_bytes = _NONE_SPARE_BYTES

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        healed = await asyncio.gather(*map(self._relieve, self._fault.nodes))
        kills = [self._oom_kills(node) for node in self._fault.nodes]
        counters = {"oom_kills": sum(kills), "processes_seen_dead": len(self._seen_ns)}
        took_effect = len(self._seen_ns) == len(kills) and all(kills)
        return self._evidence(took_effect, healed, counters)

    async def _until_in_effect(self, node: str) -> None:
        """The kernel counts before it ends anybody; the counts of a container go with it."""
        try:
            async with asyncio.timeout(_DEAD_WITHIN_S):
                while self._processes.is_alive(node):
                    await self._count(node)
                    if self._sum("oom_kills", (node,)):
                        await self._limits.release(node)
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError:
            self._details.append(f"{node} was not ended within {_DEAD_WITHIN_S:.0f} s")
            return
        self._saw()
        await self._count(node)
        await self._limits.release(node)
