"""Named timers on the node's monotonic clock. They may fire late, never early by the clock that the node reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nodes.host.clock import Clock
from nodes.kernel.events import TimerFired

NS_PER_S = 1_000_000_000


class Timers:
    """At most one timer of a name; setting it again replaces it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver: Callable[[TimerFired], None], clock: Clock
    ) -> None:
        self._clock = clock
        self._loop = loop
        self._deliver = deliver
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, name: str, after_ns: int) -> None:
        self.cancel(name)
        self._arm(name, self._clock.now().monotonic_ns + after_ns, after_ns)

    def cancel(self, name: str) -> None:
        if handle := self._handles.pop(name, None):
            handle.cancel()

    def cancel_all(self) -> None:
        for name in tuple(self._handles):
            self.cancel(name)

    def _arm(self, name: str, due_ns: int, after_ns: int) -> None:
        wait_ns = min(self._clock.true_duration_ns(max(after_ns, 0)), self._clock.steady_ns)
        self._handles[name] = self._loop.call_later(wait_ns / NS_PER_S, self._fire, name, due_ns)

    def _fire(self, name: str, due_ns: int) -> None:
        early_ns = due_ns - self._clock.now().monotonic_ns
        # The drift may have changed; and the loop counts in floats and rounds, but a node compares nanoseconds.
        if early_ns > 0:
            self._arm(name, due_ns, early_ns)
            return
        del self._handles[name]
        self._deliver(TimerFired(name))
