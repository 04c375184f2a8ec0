"""A node's disk is slow, full or broken: the disk layer of our own nodes is told so by a file, and says what it did.

Both files lie in the folder `faults` beside the node's data (`nodes.host.medium`). All in effect when the node has said
that it saw the order; bit if calls of it were delayed or failed since; healed when it has said that it saw the end.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from harness.cluster.damaged_files import NodeDisk
from harness.faults.fault import Evidence, Fault
from nodes.host.medium import FELT, ORDERS, Orders

_SEEN_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.01


class DiskFault:
    """Bit, and healed, as the nodes' own disk layers say."""

    def __init__(
        self,
        fault: Fault,
        disks: Mapping[str, NodeDisk],
        now_ns: Callable[[], int],
        is_alive: Callable[[str], bool],
    ) -> None:
        self._fault = fault
        self._disks = disks
        self._now_ns = now_ns
        self._is_alive = is_alive
        self._asked_ns = now_ns()
        self._seen_ns: list[int] = []

    async def begin(self) -> None:
        await asyncio.gather(*map(self._break, self._fault.nodes))

    async def end(self) -> Evidence:
        heal_asked_ns = self._now_ns()
        felt = [self._felt(node, self._fault.id) for node in self._fault.nodes]
        healed = await asyncio.gather(*map(self._mend, self._fault.nodes))
        tried = [each for each in healed if each is not None]
        counts = {
            f"calls_{word}": sum(int(told.get(word, 0)) for told in felt) for word in ("delayed", "failed")
        }
        return Evidence(
            bit=any(counts.values()),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=max(self._seen_ns) if len(self._seen_ns) == len(self._fault.nodes) else None,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._now_ns(),
            healed=all(tried) if tried else None,
            counters=counts,
        )

    async def _break(self, node: str) -> None:
        fault = self._fault
        at_write, at_sync = ("", fault.error) if fault.at_sync else (fault.error, "")
        self._order(
            node,
            Orders(id=fault.id, sync_delay_ns=fault.delay_ns, write_error=at_write, sync_error=at_sync),
        )
        if await self._has_seen(node, fault.id):
            self._seen_ns.append(self._now_ns())

    async def _mend(self, node: str) -> bool | None:
        """Whether the node saw that all is well again; None if it does not run, so that nobody could see it."""
        self._order(node, Orders())
        seen = await self._has_seen(node, Orders().id)
        return seen or (False if self._is_alive(node) else None)

    def _order(self, node: str, orders: Orders) -> None:
        folder = self._disks[node].faults
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{ORDERS}.new"
        fresh.write_bytes(msgspec.json.encode(orders))
        fresh.replace(folder / ORDERS)

    async def _has_seen(self, node: str, number: int) -> bool:
        deadline = time.monotonic() + _SEEN_WITHIN_S
        while not self._felt(node, number):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_AGAIN_S)
        return True

    def _felt(self, node: str, number: int) -> dict[str, Any]:
        """What the node says of these orders; empty if it has not seen them."""
        try:
            told = json.loads((self._disks[node].faults / FELT).read_bytes())
        except (OSError, ValueError):
            return {}
        return dict(told) if told.get("id") == number else {}
