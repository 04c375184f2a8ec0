"""Virtual time: a heap of what happens when. Ties happen in the order in which they were scheduled."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Agenda:
    """`now_ns` is integer nanoseconds since the world began; it moves when something happens, and never back."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0

    def at(self, time_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do `action(*arguments)` at a time, at once if that is past."""
        self._sequence += 1
        heapq.heappush(self._heap, (max(time_ns, self.now_ns), self._sequence, action, arguments))

    def after(self, delay_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_ns + delay_ns, action, *arguments)

    def advance(self) -> bool:
        """Do the next thing; False if there is none."""
        if not self._heap:
            return False
        self.now_ns, _, action, arguments = heapq.heappop(self._heap)
        action(*arguments)
        return True
