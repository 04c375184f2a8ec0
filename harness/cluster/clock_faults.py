"""Clocks that are wrong, on real nodes: files in the node's folder say by how much.

The machine's own clock is never touched. A node of ours reads `clock.json` (offset and drift), a process under
libfaketime `faketime` (offset; its monotonic clock stays the machine's, so nothing of it drifts). The node reports its
clock in its status, between two readings of the right time: so there are bounds for how far it is off.

| fault | took effect if |
|---|---|
| a jump | the node's clock was surely off, in the right direction and by at least half of the jump |
| a drift alone | its clock surely gained (lost) time between the beginning and the end |
| strobe (`delay_ns`) | its clock was seen to be wrong, then right, then wrong again |

Healed if its clock was seen to be right.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from harness.cluster.place import FAKETIME, OUR_CLOCK
from harness.faults.fault import Evidence, Fault

RIGHT_WITHIN_NS: Final = 500_000_000
"""A clock that is off by less is right."""
SURELY_WRONG_NS: Final = 100_000_000
"""A clock that is off by less may be right: the clock of a remote host is not known more exactly."""
STROBE_TURNS_MIN: Final = 2
"""Right again, and wrong again."""
_SEEN_WITHIN_S: Final = 3.0
_ASK_AGAIN_S: Final = 0.02

Status = Callable[[str], Awaitable[Mapping[str, object] | None]]
SetClock = Callable[[str, int, int], Awaitable[None]]
"""(node, wall_offset_ns, drift_ppm): how wrong its clocks are from now on; see `write_clock`."""


class Off(NamedTuple):
    """By how much a clock is wrong: not less than `least_ns`, not more than `most_ns`."""

    least_ns: int
    most_ns: int

    def is_wrong_by(self, jump_ns: int) -> bool:
        """Surely off, the same way, by half of that at least."""
        enough_ns = max(abs(jump_ns) // 2, SURELY_WRONG_NS)
        return self.least_ns >= enough_ns if jump_ns > 0 else self.most_ns <= -enough_ns

    def may_be_right(self, jump_ns: int) -> bool:
        """Right as far as can be known, and not still off by most of the jump."""
        tolerance_ns = min(RIGHT_WITHIN_NS, max(abs(jump_ns) // 2, SURELY_WRONG_NS))
        return self.least_ns < tolerance_ns and self.most_ns > -tolerance_ns

    def gained_since(self, before: Off, drift_ppm: int) -> int:
        """How much time the clock surely gained (or, where it is slow, lost) since then; 0 if that is not sure."""
        if drift_ppm > 0:
            return max(0, self.least_ns - before.most_ns)
        return max(0, before.least_ns - self.most_ns)


def this_wall_ns(node: str) -> int:
    """The right time where a node runs: on this machine, that of this machine."""
    return time.time_ns()


def clock_files(wall_offset_ns: int, drift_ppm: int) -> dict[str, str]:
    """The content of the files in a node's folder of clocks, by their names."""
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
    """A jump, or ever new ones there and back, and a drift, of the clocks of some nodes.

    `wall_ns` is the right time where a node runs.
    """

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
        self._seen_ns: dict[str, int] = {}
        """When a node's clock was first seen to be wrong by the jump; without a jump, when it was first read."""
        self._at_first: dict[str, Off] = {}
        self._gained_ns: dict[str, int] = {}
        self._turns: Counter[str] = Counter()
        """How often a node's clock was seen to have turned since, as ordered."""
        self._is_over = asyncio.Event()
        self._strobes: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        fault = self._fault
        for node in fault.nodes:
            await self._set_clock(node, fault.jump_ns, fault.drift_ppm)
        await asyncio.gather(*map(self._see, fault.nodes))
        if fault.delay_ns:
            self._strobes = [asyncio.create_task(self._strobe(node)) for node in fault.nodes]

    async def end(self) -> Evidence:
        heal_asked_ns = self._now_ns()
        self._is_over.set()
        broken = [
            outcome
            for outcome in await asyncio.gather(*self._strobes, return_exceptions=True)
            if isinstance(outcome, BaseException)
        ]
        if self._fault.drift_ppm and not self._fault.delay_ns:
            await asyncio.gather(*map(self._see_gain, self._fault.nodes))
        for node in self._fault.nodes:
            await self._set_clock(node, 0, 0)
        if broken:
            raise broken[0]
        healed = [await self._is_seen(node, self._is_right) for node in self._fault.nodes]
        tried = [each for each in healed if each is not None]
        has_all = len(self._seen_ns) == len(self._fault.nodes)
        return Evidence(
            took_effect=has_all and all(map(self._took_effect, self._fault.nodes)),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns.values(), default=None),
            all_in_effect_ns=max(self._seen_ns.values()) if has_all else None,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._now_ns(),
            healed=all(tried) if tried else None,
            counters=self._counters(),
        )

    def _took_effect(self, node: str) -> bool:
        if self._fault.delay_ns:
            return self._turns[node] >= STROBE_TURNS_MIN
        return self._fault.jump_ns != 0 or self._gained_ns.get(node, 0) > 0

    def _counters(self) -> dict[str, int]:
        fault = self._fault
        counters = {"clocks_seen_to_differ": len(self._seen_ns) if fault.jump_ns else 0}
        if fault.delay_ns:
            counters["turns_seen"] = self._turns.total()
        elif fault.drift_ppm:
            counters["gained_us" if fault.drift_ppm > 0 else "lost_us"] = (
                sum(self._gained_ns.values()) // 1_000
            )
        return counters

    async def _see(self, node: str) -> None:
        """The clock is seen to be wrong; without a jump it is read, to be compared with at the end."""
        jump_ns = self._fault.jump_ns
        if await self._is_seen(node, lambda off: not jump_ns or off.is_wrong_by(jump_ns)):
            self._seen_ns[node] = self._now_ns()
            if (off := await self._off(node)) is not None:
                self._at_first[node] = off

    async def _see_gain(self, node: str) -> None:
        off = await self._off(node)
        if off is not None and node in self._at_first:
            self._gained_ns[node] = off.gained_since(self._at_first[node], self._fault.drift_ppm)

    async def _strobe(self, node: str) -> None:
        """To the right time and away from it again, each as soon as the last turn was seen and its time is over."""
        is_wrong = True
        while not await self._is_over_within(self._fault.delay_ns / 1e9):
            is_wrong = not is_wrong
            jump_ns = self._fault.jump_ns if is_wrong else 0
            await self._set_clock(node, jump_ns, self._fault.drift_ppm)
            if await self._is_seen(node, self._is_wrong if is_wrong else self._is_right, self._is_over):
                self._turns[node] += 1

    async def _is_over_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_over.wait(), seconds)
        return self._is_over.is_set()

    async def _is_seen(
        self, node: str, wanted: Callable[[Off], bool], until: asyncio.Event | None = None
    ) -> bool | None:
        """Whether the node's clock came to be so; None if it never reported."""
        deadline = time.monotonic() + _SEEN_WITHIN_S
        told = None
        while time.monotonic() < deadline and not (until is not None and until.is_set()):
            if (off := await self._off(node)) is not None:
                told = wanted(off)
                if told:
                    return True
            await asyncio.sleep(_ASK_AGAIN_S)
        return told

    async def _off(self, node: str) -> Off | None:
        """The node's report of its clock; None if there is none."""
        before_ns = self._wall_ns(node)
        status = await self._status(node)
        after_ns = self._wall_ns(node)
        told = None if status is None else status.get("wall_ns")
        if not isinstance(told, int | float):
            return None
        return Off(int(told) - after_ns, int(told) - before_ns)

    def _is_wrong(self, off: Off) -> bool:
        return off.is_wrong_by(self._fault.jump_ns)

    def _is_right(self, off: Off) -> bool:
        return off.may_be_right(self._fault.jump_ns)
