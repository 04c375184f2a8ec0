"""Terminate: processes are asked to end (SIGTERM), and started again at the end."""

from __future__ import annotations

from harness.faults.action import Action, Kind, leader_or_one
from harness.faults.fault import Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.kill import RealKill
from harness.faults.where import REAL, SIM, no

LIKE_KILL = no(SIM, "a virtual process has nothing to do before it ends: the same as kill")


class RealTerminate(RealKill):
    """The node may end in order. Took effect as a kill."""

    async def end_process(self, node: str) -> None:
        if not await self.processes.terminate(node):
            self.details.append(f"{node} did not end at SIGTERM and was killed")
        await self.look_at(node)


class Terminate(Action):
    """The processes of `nodes` are asked to end (SIGTERM), and started again at the end."""

    does = "terminate"
    kinds = (
        Kind(
            name="terminate",
            group="terminate",
            summary="SIGTERM and restart",
            draw=leader_or_one,
            where=REAL | LIKE_KILL,
        ),
    )
    stops_processes = True

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealTerminate(fault, hands)
