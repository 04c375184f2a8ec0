"""Real time on asyncio: what every cluster of real nodes shares."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class RealTime:
    """Implements `harness.cluster.protocol.Time`. `epoch_ns` is the monotonic time at which the run began."""

    def __init__(self, epoch_ns: int) -> None:
        self._epoch_ns = epoch_ns
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def now_ns(self) -> int:
        return time.monotonic_ns() - self._epoch_ns

    def begin_now(self) -> int:
        """Time begins anew at 0; by how much it went back."""
        before_ns, self._epoch_ns = self._epoch_ns, time.monotonic_ns()
        return self._epoch_ns - before_ns

    async def sleep_until(self, time_ns: int) -> None:
        await asyncio.sleep(max(0, time_ns - self.now_ns()) / 1e9)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = None  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.pop)
        return task
