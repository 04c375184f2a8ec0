"""Slow syncs and failing writes: a disk is slow, full or broken.

Nodes of ours have a disk layer that takes orders (`nodes.host.medium`, by files in the folder `faults` beside the
data); under other stores a disk is mounted (`harness.cluster.mounted_disk`). All in effect when the disk has reported
that it read the order; took effect if calls of it were delayed or failed since; healed when it has reported that it
read the end, and the nodes whose calls failed answer again. One that ended is started again then. The promise decides
whether it may end (`checkers.replicas.crash`), and it must come up on a disk that works.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ClusterError
from harness.faults.action import (
    MILLISECOND_NS,
    SECOND_NS,
    Action,
    Fields,
    Kind,
    Situation,
    leader_or_one,
)
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.real import RealFault
from harness.faults.virtual import VirtualFault, VirtualHands
from harness.faults.where import REAL, SIM, by_name, no
from nodes.host.orders import Orders

SEEN_WITHIN_NS = 3 * SECOND_NS
LOOK_AGAIN_NS = 10 * MILLISECOND_NS
LIKE_FULL_DISK = no(SIM, "a virtual write fails like any other, whatever the error: see full-disk")


class VirtualDiskFault(VirtualFault):
    """Took effect if calls were delayed or failed."""

    async def begin(self) -> None:
        for machine in self.hands.machines(self.fault.nodes):
            machine.records.slow_down(self.fault.delay_ns)
            machine.fill_disk(bool(self.fault.error))

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        machines = self.hands.machines(self.fault.nodes)
        affected = sum(machine.records.take_affected() for machine in machines)
        for machine in machines:
            machine.records.slow_down(0)
            machine.fill_disk(False)
        counters = {"calls_delayed" if self.fault.does == SlowFsync.does else "calls_failed": affected}
        return self.evidence(affected > 0, counters, first_ns=self.asked_ns)


class RealDiskFault(RealFault):
    """Took effect, and healed, as the disks themselves say."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self.disks = {node: hands.storage(node) for node in fault.nodes}

    async def begin(self) -> None:
        await self.each(self._break)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        # Before they are mended: the report of new orders begins anew.
        affected = [await self._effects(node, self.fault.id) for node in self.fault.nodes]
        healed = await self.each(self._mend)
        counts = {
            f"calls_{word}": sum(int(report.get(word, 0)) for report in affected)
            for word in ("delayed", "failed")
        }
        return self.evidence(any(counts.values()), healed, counts)

    async def _break(self, node: str) -> None:
        fault = self.fault
        at_write, at_sync = ("", fault.error) if fault.at_sync else (fault.error, "")
        orders = Orders(id=fault.id, sync_delay_ns=fault.delay_ns, write_error=at_write, sync_error=at_sync)
        await self.disks[node].order(asdict(orders))
        if await self._has_seen(node, fault.id):
            self.saw()

    async def _mend(self, node: str) -> bool | None:
        """Whether the disk reports that it read the end; None if the node does not run, so it cannot report."""
        well = Orders()
        # Before the start: a node cannot start on a disk that fails writes.
        await self.disks[node].order(asdict(well))
        if self.fault.does == DiskError.does:
            try:
                if not await self._run_again(node):
                    return False
            except ClusterError as error:
                self.details.append(error.message)
                return False
        seen = await self._has_seen(node, well.id)
        return seen or (False if self.processes.is_alive(node) else None)

    async def _run_again(self, node: str) -> bool:
        """Start the node if it has ended; False if it runs and does not answer. Raises ClusterError.

        A store may need seconds to give up on its disk: until it answers, its end is an effect of this fault.
        """
        if self.processes.is_alive(node) and await self.answers_again(node):
            return True
        # No other fault has a node down meanwhile: `harness.faults.overlap` excludes that.
        if self.processes.is_alive(node):
            return False
        await self.processes.start_again(node)
        self.details.append(f"{node} had ended, and was started again")
        return True

    async def _has_seen(self, node: str, number: int) -> bool:
        deadline_ns = self.hands.now_ns() + SEEN_WITHIN_NS
        while not await self._effects(node, number):
            if self.hands.now_ns() > deadline_ns:
                return False
            await self.sleep(LOOK_AGAIN_NS)
        return True

    async def _effects(self, node: str, number: int) -> dict[str, Any]:
        """The disk's report on these orders; empty if it has not read them."""
        report = await self.disks[node].effects()
        return report if report.get("id") == number else {}


class DiskAction(Action):
    """An action on disks."""

    ability = "disk layer"
    orders_disks = True
    is_of_disks = True

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualDiskFault(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealDiskFault(fault, hands)


def slow_disk(situation: Situation) -> Fields:
    delay_ns = situation.chance.randrange(50, 400) * MILLISECOND_NS
    return {**leader_or_one(situation), "delay_ns": delay_ns}


def full_disk(situation: Situation) -> Fields:
    return {**leader_or_one(situation), "error": "ENOSPC"}


def io_error(situation: Situation) -> Fields:
    """Of writes, or of syncs after writes that succeeded."""
    return {**leader_or_one(situation), "error": "EIO", "at_sync": situation.chance.random() < 0.5}


class SlowFsync(DiskAction):
    """Every sync of `nodes` takes `delay_ns` longer."""

    does = "slow-fsync"
    kinds = (
        Kind(
            name="slow-disk",
            group="slow-disk",
            summary="every fsync takes long",
            draw=slow_disk,
            where=REAL | by_name(SIM),
        ),
    )
    fields = ("nodes", "delay_ns")


class DiskError(DiskAction):
    """Writes, or where `at_sync` says so syncs, of `nodes` fail with `error` (ENOSPC, EIO)."""

    does = "disk-error"
    kinds = (
        Kind(
            name="full-disk",
            group="disk",
            summary="writes fail: no space is left",
            draw=full_disk,
            where=REAL | by_name(SIM),
        ),
        Kind(
            name="io-error",
            group="disk",
            summary="writes or syncs fail: EIO",
            draw=io_error,
            where=REAL | LIKE_FULL_DISK,
        ),
    )
    fields = ("nodes", "error")
    fails_writes = True
