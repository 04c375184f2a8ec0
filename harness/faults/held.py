"""Steps of directed schedules: messages that do not arrive, records that are not synced (simulator)."""

from __future__ import annotations

from harness.faults.action import Action, Kind, leader
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork
from harness.faults.virtual import VirtualFault, VirtualHands
from harness.faults.where import REAL, SIM, no
from nodes.world.network import Stop

HOLDS = "holds"
MOMENTS = "moments"
SCENIC = (HOLDS, MOMENTS)
"""Scenes of directed faults, which run beside all faults and are not among "all"."""
BY_MOMENT = no(REAL, "only virtual time knows what a node is about to do")


class VirtualHold(VirtualFault):
    """Took effect if something was held."""

    _stop: Stop

    async def begin(self) -> None:
        self._stop = self.hands.network.stop(self.fault.links, self.fault.kinds)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        stop = self._stop
        self.hands.network.go_on(stop)
        return self.evidence(stop.stopped > 0, {"stopped": stop.stopped}, first_ns=stop.first_ns)


class VirtualSlowDisk(VirtualFault):
    """Always took effect: nothing says whether a record was due."""

    async def begin(self) -> None:
        for machine in self.hands.machines(self.fault.nodes):
            for kind in self.fault.kinds or ("",):
                machine.records.hold(kind)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        for machine in self.hands.machines(self.fault.nodes):
            for kind in self.fault.kinds or ("",):
                machine.records.release(kind)
        return self.evidence(True, {}, first_ns=self.asked_ns)


class Hold(Action):
    """Over the directed `links` nothing of `kinds` (nothing at all if none are named) arrives, nor what is behind
    it."""

    does = "hold"
    kinds = (
        Kind(
            name=HOLDS,
            group="directed",
            summary="directed schedules: held messages, slow disks, nodes that die at a trigger (not among all)",
            draw=leader,
            where=SIM | BY_MOMENT,
            nodes_min=2,
            ability="scenes",
        ),
        Kind(
            name=MOMENTS,
            group="directed",
            summary="as holds, but all is drawn: trigger, node, what is held, slow or full, which node dies "
            "(not among all)",
            draw=leader,
            where=SIM | BY_MOMENT,
            ability="scenes",
        ),
    )
    fields = ("links",)

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualHold(fault, hands)


class SlowDisk(Action):
    """Records of `kinds` of `nodes` (all if none are named) are not synced until the end."""

    does = "slow-disk"

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualSlowDisk(fault, hands)
