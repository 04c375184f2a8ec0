"""Kill: processes are ended by signal 9, and started again at the end."""

from __future__ import annotations

import random
from collections.abc import Mapping

from harness.errors import ClusterError
from harness.faults.action import MILLISECOND_NS, Action, Kind, leader_or_one
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.real import RealFault
from harness.faults.virtual import VirtualFault, VirtualHands

RESTART_NS = (50 * MILLISECOND_NS, 200 * MILLISECOND_NS)
"""How long a virtual process takes to come up again."""


class VirtualKill(VirtualFault):
    """Took effect if a node was up."""

    hit: list[str]

    async def begin(self) -> None:
        up = [machine for machine in self.hands.machines(self.fault.nodes) if machine.state != "down"]
        for machine in up:
            self.end_process(machine.name)
        self.hit = [machine.name for machine in up]

    def end_process(self, node: str) -> None:
        self.hands.world.machines[node].kill()

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        machines = self.hands.world.machines
        # Its own: a fault that is left out changes the draws of no other.
        chance = random.Random(self.fault.seed)
        for name in self.hit:
            await self.hands.sleep_until(self.hands.now_ns() + chance.randrange(*RESTART_NS))
            if machines[name].state == "down":
                machines[name].start()
        healed = all(machines[name].status() is not None for name in self.hit)
        return self.evidence(bool(self.hit), self.counters(), first_ns=self.asked_ns, healed=healed)

    def counters(self) -> Mapping[str, int]:
        return {"killed": len(self.hit)}


class RealKill(RealFault):
    """Took effect if all processes of all nodes were seen dead, their ports closed; undone when they answer again."""

    async def begin(self) -> None:
        await self.each(self.end_process)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        healed = await self.each(self.revive)
        return self.evidence(self.all_seen, healed, {"processes_seen_dead": len(self.seen_ns)})

    async def end_process(self, node: str) -> None:
        await self.processes.kill(node)
        await self.look_at(node)

    async def look_at(self, node: str) -> None:
        if left := await self.processes.left(node):
            self.details.append(f"{node} is not down: {left}")
        else:
            self.saw()

    async def revive(self, node: str) -> bool | None:
        try:
            if not await self.processes.revive(node):
                return None
        except ClusterError as error:
            self.details.append(error.message)
            return False
        return await self.answers_again(node)


class Kill(Action):
    """The processes of `nodes` are killed (-9) and started again at the end."""

    does = "kill"
    kinds = (Kind(name="kill", group="kill", summary="kill -9 and restart", draw=leader_or_one),)
    stops_processes = True

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualKill(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealKill(fault, hands)
