"""A node's disk is slow, full or broken: the disk gets orders, and reports what it did (`harness.cluster.storage`).

Nodes of ours have a disk layer that takes orders (`nodes.host.medium`, by files in the folder `faults` beside the
data). All in effect when the disk has reported that it read the order; took effect if calls of it were delayed or
failed since; healed when it has reported that it read the end. A node that ended because its calls failed is started
again then. The promise decides whether it may end (`checkers.replicas.crash`), and it must come up on a disk that
works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from harness.cluster.process_faults import Processes
from harness.cluster.storage import Storage
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault
from nodes.host.medium import Orders

_SEEN_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.01


class DiskFault:
    """Bit, and healed, as the disks themselves say."""

    def __init__(
        self,
        fault: Fault,
        disks: Mapping[str, Storage],
        now_ns: Callable[[], int],
        processes: Processes,
    ) -> None:
        self._fault = fault
        self._disks = disks
        self._now_ns = now_ns
        self._processes = processes
        self._details: list[str] = []
        self._asked_ns = now_ns()
        self._seen_ns: list[int] = []

    async def begin(self) -> None:
        await asyncio.gather(*map(self._break, self._fault.nodes))

    async def end(self) -> Evidence:
        heal_asked_ns = self._now_ns()
        affected = [await self._effects(node, self._fault.id) for node in self._fault.nodes]
        healed = await asyncio.gather(*map(self._mend, self._fault.nodes))
        tried = [each for each in healed if each is not None]
        counts = {
            f"calls_{word}": sum(int(told.get(word, 0)) for told in affected)
            for word in ("delayed", "failed")
        }
        return Evidence(
            took_effect=any(counts.values()),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=max(self._seen_ns) if len(self._seen_ns) == len(self._fault.nodes) else None,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._now_ns(),
            healed=all(tried) if tried else None,
            counters=counts,
            detail="; ".join(self._details),
        )

    async def _break(self, node: str) -> None:
        fault = self._fault
        at_write, at_sync = ("", fault.error) if fault.at_sync else (fault.error, "")
        orders = Orders(id=fault.id, sync_delay_ns=fault.delay_ns, write_error=at_write, sync_error=at_sync)
        await self._disks[node].order(asdict(orders))
        if await self._has_seen(node, fault.id):
            self._seen_ns.append(self._now_ns())

    async def _mend(self, node: str) -> bool | None:
        """Whether the disk saw that all is well again; None if the node does not run, so that it cannot see that."""
        well = Orders()
        await self._disks[node].order(asdict(well))
        if self._fault.does == "disk-error" and not self._processes.is_alive(node):
            # No other fault has a node down meanwhile: `harness.faults.overlap` excludes that.
            try:
                await self._processes.start_again(node)
                self._details.append(f"{node} had ended, and was started again")
            except ClusterError as error:
                self._details.append(error.message)
                return False
        seen = await self._has_seen(node, well.id)
        return seen or (False if self._processes.is_alive(node) else None)

    async def _has_seen(self, node: str, number: int) -> bool:
        deadline = time.monotonic() + _SEEN_WITHIN_S
        while not await self._effects(node, number):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_AGAIN_S)
        return True

    async def _effects(self, node: str, number: int) -> dict[str, Any]:
        """The disk's report on these orders; empty if it has not read them."""
        told = await self._disks[node].effects()
        return told if told.get("id") == number else {}
