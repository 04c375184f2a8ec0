"""cpu-limit, memory-limit and oom: the kernel's limits on groups of processes, observed by the kernel's counts.

- cpu-limit took effect if the kernel made the node wait for longer than a heartbeat in all. A node that needs less than
  its share gets half of that, and so on, until it has to wait.
- memory-limit took effect if the kernel took memory from the node's group that came back to it, or counted that it came
  to its limit. If the kernel found none that it could take it ended the node, which counts as done by the fault: the
  node is started again at the end.
- oom took effect if the kernel counted, or logged, that it ended the node for want of memory, and it was seen dead.

Healed if the limits are what they were, as the kernel says, and the node answers. Groups of processes can always be
limited where containers can be started; elsewhere it depends on the machine and on the user, and is done by name.
"""

from __future__ import annotations

from abc import abstractmethod

from harness.errors import ClusterError
from harness.faults.action import (
    MILLISECOND_NS,
    RECOVERY_NS,
    SECOND_NS,
    Action,
    Fields,
    Kind,
    Situation,
    leader_or_one,
)
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Ballast, Counts, Hands
from harness.faults.kill import RealKill
from harness.faults.real import RealFault
from harness.faults.where import DOCKER, LOCAL, SIM, SSH, by_name, no

SPARE_BYTES = 8 << 20
"""Memory that a node under memory-limit may still take."""
NONE_SPARE_BYTES = 1 << 20
DEAD_WITHIN_NS = 15 * SECOND_NS
SEEN_DEAD_WITHIN_NS = 3 * SECOND_NS
LOOK_AGAIN_NS = 3 * MILLISECOND_NS
LOOKS = 6
WAITED_NS = 100 * MILLISECOND_NS
LOOK_FOR_WAITING_NS = 50 * MILLISECOND_NS
OOM = "oom"
NO_MACHINE = no(SIM, "virtual nodes share no machine: their work takes no time and no memory")
WHERE = DOCKER | by_name(LOCAL | SSH) | NO_MACHINE


class Limited(RealFault):
    """A fault that limits nodes, with the kernel's counts before it and since."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self.limits = hands.limits
        self._before: dict[str, Counts] = {}
        self._last: dict[str, Counts] = {}
        self.ran_out: dict[str, bool] = {}
        """Node → whether the kernel was observed to end it."""

    async def _count(self, node: str) -> bool:
        """Read the newest counts; False if none can be had: those of a dead container are gone."""
        try:
            self._last[node] = await self.limits.counts(node)
        except (OSError, ValueError, ClusterError):
            return False
        self._before.setdefault(node, self._last[node])
        return True

    def _sum(self, name: str, nodes: tuple[str, ...] | None = None) -> int:
        """By how much a count grew, over these nodes or all nodes of the fault."""
        return sum(
            max(0, self._last.get(node, {}).get(name, 0) - before.get(name, 0))
            for node, before in self._before.items()
            if nodes is None or node in nodes
        )

    async def _lift(self, node: str) -> bool:
        try:
            is_lifted = await self.limits.lift(node)
        except (OSError, ValueError, ClusterError) as error:
            self.details.append(f"the limits of {node} could not be lifted: {error}")
            return False
        if not is_lifted:
            self.details.append(f"the limits of {node} are not what they were")
        return is_lifted

    def _could_not(self, node: str, error: Exception) -> None:
        self.details.append(f"{node} could not be limited: {str(error) or type(error).__name__}")


class RealCpuLimit(Limited):
    """Took effect if the kernel made each of the nodes wait, for longer than a heartbeat in all."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self._percent = fault.percent

    async def begin(self) -> None:
        await self.each(self._limit)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        await self.each(self._count)
        healed = await self.each(self._unlimit)
        waited = [self._sum("throttled_ns", (node,)) for node in self.fault.nodes]
        counters = {
            "periods_throttled": self._sum("throttled"),
            "throttled_ms": sum(waited) // MILLISECOND_NS,
            "percent": self._percent,
        }
        took_effect = bool(self.seen_ns) and all(waited_ns >= self.hands.heartbeat_ns for waited_ns in waited)
        return self.evidence(took_effect, healed, counters)

    async def _limit(self, node: str) -> None:
        await self._count(node)
        percent = self.fault.percent
        try:
            await self.limits.limit_cpu(node, percent)
            while not await self._has_to_wait(node) and percent > 1:
                percent //= 2
                await self.limits.limit_cpu(node, percent)
        except (OSError, ValueError, ClusterError) as error:
            self._could_not(node, error)
        else:
            self._percent = min(self._percent, percent)
            self.saw()

    async def _has_to_wait(self, node: str) -> bool:
        """The kernel makes the node wait for a good part of its periods, which are ten a second."""
        before_ns = self._sum("throttled_ns", (node,))
        for _ in range(LOOKS):
            await self.sleep(LOOK_FOR_WAITING_NS)
            await self._count(node)
            if self._sum("throttled_ns", (node,)) - before_ns >= WAITED_NS:
                return True
        return False

    async def _unlimit(self, node: str) -> bool:
        return await self._lift(node) and await self.answers_again(node)


class Hungry(Limited, RealKill):
    """A second process in the nodes' groups wants memory, and there is little."""

    _ballast: Ballast
    _spare_bytes: int

    async def begin(self) -> None:
        await self.each(self._squeeze)

    async def _squeeze(self, node: str) -> None:
        await self._count(node)
        self.processes.starve(node)
        try:
            # in this order: what the ballast reads is in no count yet for a while, and would seem to be needed
            await self.limits.limit_memory(node, self._spare_bytes)
            await self.limits.press(node, self._ballast)
            await self._until_in_effect(node)
        except (OSError, ValueError, ClusterError) as error:
            self._could_not(node, error)

    def _oom_kills(self, node: str) -> int:
        """The kernel's count. The counts of a container go with it, often before they can be read."""
        return max(self._sum("oom_kills", (node,)), int(self.ran_out.get(node, False)))

    @abstractmethod
    async def _until_in_effect(self, node: str) -> None:
        """Wait until the limit takes effect on the node, or cannot."""

    async def _until_dead(self, node: str) -> None:
        """Wait for a while until the cluster observes that the node is dead."""
        deadline_ns = self.hands.now_ns() + SEEN_DEAD_WITHIN_NS
        while self.processes.is_alive(node) and self.hands.now_ns() < deadline_ns:
            await self.sleep(LOOK_AGAIN_NS)

    async def _outlives(self, node: str, kills: int) -> bool:
        """Whether the kernel has ended no process beyond `kills`. The end of one is observed a little later."""
        is_there = await self._count(node)
        if not is_there or self._sum("oom_kills", (node,)) > kills:
            await self._until_dead(node)
        return self.processes.is_alive(node)

    async def _relieve(self, node: str) -> bool | None:
        """Lift the limits and revive the node, in this order: a dead node has no limits to look at until it starts."""
        is_there = await self._count(node)
        kills = self._sum("oom_kills", (node,))
        await self.limits.release(node)
        if not is_there or kills:
            await self._until_dead(node)
        is_alive = self.processes.is_alive(node)
        is_lifted = await self._lift(node) if is_alive else None
        if is_alive and not await self._outlives(node, kills):
            is_lifted = None  # it was ended in the last moment
        self.ran_out[node] = await self.processes.feed(node)
        is_up = await self.revive(node)
        if is_lifted is None and is_up:
            is_lifted = await self._lift(node)
        return is_up and is_lifted is not False


class RealMemoryLimit(Hungry):
    """Took effect if the kernel took memory from the groups of all nodes, or ended them for want of it."""

    _ballast = "press"
    _spare_bytes = SPARE_BYTES

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        healed = await self.each(self._relieve)
        names = ("limit_hits", "refaults")
        kills = {node: self._oom_kills(node) for node in self.fault.nodes}
        affected = [
            kills[node] or any(self._sum(name, (node,)) for name in names) for node in self.fault.nodes
        ]
        counters = {**{name: self._sum(name) for name in names}, "oom_kills": sum(kills.values())}
        return self.evidence(bool(self.seen_ns) and all(affected), healed, counters)

    async def _until_in_effect(self, node: str) -> None:
        self.saw()


class RealOutOfMemory(Hungry):
    """Took effect if the kernel counted an end in each group, and the nodes were seen dead."""

    _ballast = "fill"
    _spare_bytes = NONE_SPARE_BYTES

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        healed = await self.each(self._relieve)
        kills = [self._oom_kills(node) for node in self.fault.nodes]
        counters = {"oom_kills": sum(kills), "processes_seen_dead": len(self.seen_ns)}
        took_effect = len(self.seen_ns) == len(kills) and all(kills)
        return self.evidence(took_effect, healed, counters)

    async def _until_in_effect(self, node: str) -> None:
        """The kernel counts before it ends a process; the counts of a container go with it."""
        deadline_ns = self.hands.now_ns() + DEAD_WITHIN_NS
        while self.processes.is_alive(node):
            if self.hands.now_ns() > deadline_ns:
                self.details.append(f"{node} was not ended within {DEAD_WITHIN_NS // SECOND_NS} s")
                return
            await self._count(node)
            if self._sum("oom_kills", (node,)):
                await self.limits.release(node)
            await self.sleep(LOOK_AGAIN_NS)
        self.saw()
        await self._count(node)
        await self.limits.release(node)


class LimitAction(Action):
    """An action that limits nodes."""

    limits_nodes = True


def core_share(situation: Situation) -> Fields:
    """So little that a node which has anything to do is made to wait."""
    return {**leader_or_one(situation), "percent": situation.chance.randrange(3, 10)}


class CpuLimit(LimitAction):
    """`nodes` get `percent` of one core."""

    does = "cpu-limit"
    kinds = (
        Kind(
            name="cpu-limit",
            group="cpu",
            summary="a node gets a small share of one core",
            draw=core_share,
            where=WHERE,
        ),
    )
    fields = ("nodes", "percent")

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealCpuLimit(fault, hands)


class MemoryLimit(LimitAction):
    """The limit of `nodes` is little above the memory that they need, and a second process takes some too."""

    does = "memory-limit"
    kinds = (
        Kind(
            name="memory-limit",
            group="memory",
            summary="a node has hardly more memory than it needs",
            draw=leader_or_one,
            where=WHERE,
        ),
    )
    takes_memory = True

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealMemoryLimit(fault, hands)


class OutOfMemory(LimitAction):
    """There is no memory left for `nodes`, so that the kernel ends them; they are started again at the end."""

    does = "oom"
    kinds = (
        Kind(
            name=OOM,
            group="memory",
            summary="there is no memory left for a node, and the kernel ends it; restart",
            draw=leader_or_one,
            where=WHERE,
            # memory takes its time to run out, and what is to be seen begins with the death of the node
            lasts=lambda drawn_ns, is_real: drawn_ns + RECOVERY_NS,
        ),
    )
    takes_memory = True

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealOutOfMemory(fault, hands)
