"""Clocks that are wrong, on real nodes: files in the node's folder say by how much.

The machine's own clock is never touched. A node of ours reads `clock.json` (offset and drift), a process under
libfaketime `faketime` (offset). Bit if the node's own clock, as it tells it in its status, was seen to be wrong by the
jump; healed if it was seen to be right.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from harness.cluster.place import FAKETIME, OUR_CLOCK
from harness.faults.fault import Evidence, Fault

RIGHT_WITHIN_NS: Final = 500_000_000
"""A clock that is off by less is right."""
_SEEN_WITHIN_S: Final = 3.0
_ASK_AGAIN_S: Final = 0.02

Status = Callable[[str], Awaitable[Mapping[str, object] | None]]
SetClock = Callable[[str, int, int], Awaitable[None]]
"""(node, wall_offset_ns, drift_ppm): how wrong its clocks are from now on; see `write_clock`."""


def this_wall_ns(node: str) -> int:
    """The right time where a node runs: on this machine, that of this machine."""
    return time.time_ns()


def clock_files(wall_offset_ns: int, drift_ppm: int) -> dict[str, str]:
    """What stands in the files of a node's folder of clocks, by their names."""
    ours = json.dumps({"wall_offset_ns": wall_offset_ns, "drift_ppm": drift_ppm})
    return {OUR_CLOCK: ours + "\n", FAKETIME: f"{wall_offset_ns / 1e9:+.6f}\n"}


def write_clock(folder: Path, wall_offset_ns: int, drift_ppm: int) -> None:
    """Say how wrong a node's clocks are from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in clock_files(wall_offset_ns, drift_ppm).items():
        fresh = folder / f"{name}.new"
        fresh.write_text(text)
        fresh.replace(folder / name)


class ClockFault:
    """One jump, and a drift, of the clocks of some nodes. `wall_ns` is the right time where a node runs."""

    def __init__(
        self,
        fault: Fault,
        set_clock: SetClock,
        now_ns: Callable[[], int],
        status: Status,
        wall_ns: Callable[[str], int] = this_wall_ns,
    ) -> None:
        self._fault = fault
        self._set_clock = set_clock
        self._wall_ns = wall_ns
        self._now_ns = now_ns
        self._status = status
        self._asked_ns = now_ns()
        self._seen_ns: list[int] = []

    async def begin(self) -> None:
        fault = self._fault
        for node in fault.nodes:
            await self._set_clock(node, fault.jump_ns, fault.drift_ppm)
        await asyncio.gather(*map(self._see, fault.nodes))

    async def end(self) -> Evidence:
        heal_asked_ns = self._now_ns()
        for node in self._fault.nodes:
            await self._set_clock(node, 0, 0)
        healed = [await self._is_seen(node, self._is_right) for node in self._fault.nodes]
        tried = [each for each in healed if each is not None]
        return Evidence(
            bit=len(self._seen_ns) == len(self._fault.nodes),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=max(self._seen_ns, default=None),
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._now_ns(),
            healed=all(tried) if tried else None,
            counters={"clocks_seen_to_differ": len(self._seen_ns)},
        )

    async def _see(self, node: str) -> None:
        if await self._is_seen(node, self._is_wrong):
            self._seen_ns.append(self._now_ns())

    async def _is_seen(self, node: str, wanted: Callable[[int], bool]) -> bool | None:
        """Whether the node's clock came to be so; None if it never told."""
        deadline = time.monotonic() + _SEEN_WITHIN_S
        told = None
        while time.monotonic() < deadline:
            status = await self._status(node)
            wall_ns = None if status is None else status.get("wall_ns")
            if isinstance(wall_ns, int | float):
                told = wanted(int(wall_ns) - self._wall_ns(node))
                if told:
                    return True
            await asyncio.sleep(_ASK_AGAIN_S)
        return told

    def _is_wrong(self, off_ns: int) -> bool:
        tolerance_ns = max(RIGHT_WITHIN_NS, abs(self._fault.jump_ns) // 10)
        return abs(off_ns - self._fault.jump_ns) < tolerance_ns

    def _is_right(self, off_ns: int) -> bool:
        return abs(off_ns) < RIGHT_WITHIN_NS
