"""Pause: processes are stopped, and go on at the end."""

from __future__ import annotations

from harness.faults.action import Action, Kind, leader_or_one
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.real import RealFault
from harness.faults.virtual import VirtualFault, VirtualHands


class VirtualPause(VirtualFault):
    """Took effect if a node was up."""

    hit: list[str]

    async def begin(self) -> None:
        machines = self.hands.machines(self.fault.nodes)
        for machine in machines:
            machine.pause()
        self.hit = [machine.name for machine in machines if machine.state == "paused"]

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        machines = self.hands.machines(self.hit)
        for machine in machines:
            machine.resume()
        healed = all(machine.status() is not None for machine in machines)
        return self.evidence(bool(self.hit), {"paused": len(self.hit)}, first_ns=self.asked_ns, healed=healed)


class RealPause(RealFault):
    """Took effect if all threads of all processes were seen stopped, at the beginning and still at the end."""

    lives: dict[str, int]

    async def begin(self) -> None:
        self.lives = {node: self.processes.life(node) for node in self.fault.nodes}
        await self.each(self._pause)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        # All are looked at before the first goes on. The life too: a node that was started anew was not paused.
        still = [await self._is_still_stopped(node) for node in self.fault.nodes]
        took_effect = self.all_seen and all(still)
        healed = await self.each(self._resume)
        return self.evidence(took_effect, healed, {"processes_seen_stopped": len(self.seen_ns)})

    async def _pause(self, node: str) -> None:
        if await self.processes.pause(node):
            self.saw()
        else:
            self.details.append(f"{node} was not seen stopped")

    async def _is_still_stopped(self, node: str) -> bool:
        is_so = self.processes.life(node) == self.lives[node] and await self.processes.is_stopped(node)
        if not is_so:
            self.details.append(f"{node} did not stay stopped")
        return is_so

    async def _resume(self, node: str) -> bool | None:
        if not await self.processes.resume(node) or not self.processes.is_alive(node):
            return None
        return await self.answers_again(node)


class Pause(Action):
    """The processes of `nodes` are stopped and continued at the end."""

    does = "pause"
    kinds = (
        Kind(name="pause", group="pause", summary="a process is stopped and goes on", draw=leader_or_one),
    )
    stops_processes = True

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualPause(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealPause(fault, hands)
