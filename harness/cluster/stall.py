"""The harness watches itself: when its own loop stalls, what it measured meanwhile is not the cluster's doing.

A coroutine sleeps a short while again and again and sees how much later than asked it woke. A harness that was
stopped, starved of CPU or busy in one long computation shows the same way.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

STALLED_MS_MIN: Final = 250
_EVERY_NS: Final = 20_000_000


class StallWatch:
    """Notes stalls of the running loop longer than `stalled_ms_min`; each is told up to 20 ms shorter than it was."""

    def __init__(self, epoch_ns: int, stalled_ms_min: int = STALLED_MS_MIN) -> None:
        self._epoch_ns = epoch_ns
        self._stalled_ms_min = stalled_ms_min
        self._stalls: list[tuple[int, int]] = []

    async def run(self) -> None:
        """Watch until cancelled."""
        before_ns = time.monotonic_ns()
        while True:
            await asyncio.sleep(_EVERY_NS / 1e9)
            now_ns = time.monotonic_ns()
            stalled_ms = (now_ns - before_ns - _EVERY_NS) // 1_000_000
            if stalled_ms > self._stalled_ms_min:
                self._stalls.append((before_ns + _EVERY_NS - self._epoch_ns, stalled_ms))
            before_ns = now_ns

    def stalls(self) -> tuple[tuple[int, int], ...]:
        """The stalls since the last call: when each had begun (nanoseconds since the run began), how many ms."""
        stalls, self._stalls = tuple(self._stalls), []
        return stalls
