"""Power: nodes lose it at once, and unsynced bytes with it.

A power loss closes no connection: the node is cut off first, then killed, so that no peer gets its end of file or what
its kernel still holds; then unsynced bytes are thrown away; when it runs again, old connections are reset.

A store that does not promise to survive a power loss (real Tarantool with wal_mode=write) may refuse what is left. It
is then started once more from the files as they were before, so that its refusal is seen and the run has all of its
nodes at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from harness.errors import ClusterError
from harness.faults.action import MILLISECOND_NS, SECOND_NS, Action, Kind, another, everyone, leader
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands, together
from harness.faults.kill import RealKill, VirtualKill
from harness.faults.virtual import VirtualHands
from harness.faults.where import REAL, SIM, by_name

ENDS_WITHIN_NS = 3 * SECOND_NS
LOOK_AGAIN_NS = 10 * MILLISECOND_NS
POWER_ALL = "power-all"


class VirtualPowerLoss(VirtualKill):
    """As a kill, but no peer sees a connection end."""

    lost_bytes = 0

    def end_process(self, node: str) -> None:
        self.lost_bytes += self.hands.world.machines[node].lose_power()

    def counters(self) -> Mapping[str, int]:
        return {"killed": len(self.hit), "bytes_lost": self.lost_bytes}


class Spoilt(RealKill):
    """A kill that spoils files: a node that refuses them gets the old ones back, and starts once more."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self.disks = {node: hands.storage(node) for node in fault.nodes}
        self.counts: Counter[str] = Counter()

    async def once_more(self, node: str, last_words: Sequence[str]) -> bool:
        """Start a node that refused once more, with its old files; whether it answers."""
        others = [detail for detail in self.details if not detail.startswith(f"{node} ")]
        self.details = others + [f"{node} refuses: {line}" for line in last_words]
        self.counts["refused_to_start"] += 1
        await self.disks[node].restore()
        try:
            await self.processes.start_again(node)
        except ClusterError as error:
            self.details.append(error.message)
            return False
        return await self.answers_again(node)

    async def has_ended(self, node: str, last_words: Sequence[str]) -> bool:
        """Wait until the node has ended, and its `last_words` are there: both come a little after its refusal."""
        deadline_ns = self.hands.now_ns() + ENDS_WITHIN_NS
        while (self.processes.is_alive(node) or not last_words) and self.hands.now_ns() < deadline_ns:
            await self.sleep(LOOK_AGAIN_NS)
        return not self.processes.is_alive(node)


class RealPowerLoss(Spoilt):
    """Took effect as a kill."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self.isolation = hands.links.isolation()
        self.may_refuse = hands.may_refuse

    async def begin(self) -> None:
        await self.isolation.cut_off(self.fault)
        await together(self.hands, (disk.power_fails() for disk in self.disks.values()))
        await super().begin()
        await self.isolation.forget(self.fault)
        for node, disk in self.disks.items():
            if self.may_refuse:
                await disk.save()  # as the processes left it: what is lost next may be refused
            self.counts["bytes_lost"] += await disk.lose_unsynced(f"{self.fault.seed} {node}")

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        with ExitStack() as allowed:
            last_words = {
                node: allowed.enter_context(self.processes.may_refuse(node))
                for node in (self.fault.nodes if self.may_refuse else ())
            }
            started = await self.each(self._start)
            await self.isolation.join(self.fault)
            healed = {node: await self.answers_again(node) if up else up for node, up in started}
            refused = [
                node
                for node in last_words
                if healed[node] is False and await self.has_ended(node, last_words[node])
            ]
        for node in refused:
            healed[node] = await self.once_more(node, last_words[node])
        counters = {
            "processes_seen_dead": len(self.seen_ns),
            "bytes_lost": self.counts["bytes_lost"],
            **({"refused_to_start": len(refused)} if self.may_refuse else {}),
        }
        return self.evidence(self.all_seen, healed.values(), counters)

    async def _start(self, node: str) -> tuple[str, bool | None]:
        try:
            return node, True if await self.processes.revive(node) else None
        except ClusterError as error:
            self.details.append(error.message)
            return node, False


class Power(Action):
    """As kill, but no peer sees a connection end, and unsynced bytes are lost."""

    does = "power"
    kinds = (
        Kind(
            name="power-owner",
            group="power",
            summary="the owner loses power: unsynced bytes are gone",
            draw=leader,
        ),
        Kind(
            name="power-one",
            group="power",
            summary="a replica loses power",
            draw=another,
            where=REAL | by_name(SIM),
            nodes_min=2,
        ),
        Kind(
            name=POWER_ALL,
            group="power",
            summary="all nodes lose power at once",
            draw=everyone,
            # while real nodes are all dead nothing is to be seen, and they take their own time to come up again
            lasts=lambda drawn_ns, is_real: drawn_ns // 4 if is_real else drawn_ns,
        ),
    )
    ability = "disk layer"
    stops_processes = True
    recovers_slowly = True
    packets = "filtered"

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualPowerLoss(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealPowerLoss(fault, hands)
