"""The course of a run: it goes on until it is over, a person interrupts it, or one of its parts breaks."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from harness.faults.hands import Time
from harness.plan.plan import SECOND_NS


@dataclass(slots=True)
class Course:
    """The state of a run: every part asks it before it goes on."""

    time: Time
    step_ns: int = SECOND_NS // 10
    """The longest time without a look at whether a person interrupts the run."""
    is_interrupted: bool = False
    is_over: bool = False
    failure: Exception | None = None
    """The error of the first part that broke."""

    def interrupt(self) -> None:
        """Begin nothing new: what is under way ends, faults are healed, nothing is read any more."""
        self.is_interrupted = True

    async def part(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """A part of the load. If it breaks, the remaining parts end in order at once, and its error is raised after
        them: without waiting until this part is awaited."""
        try:
            await coroutine
        except Exception as error:  # no CancelledError: a part that is cancelled has not broken
            self.failure = self.failure or error
            self.interrupt()

    async def wait_until(self, time_ns: int) -> None:
        """Sleep in short steps, so that an interrupt takes effect soon."""
        time = self.time
        while (now_ns := time.now_ns()) < time_ns and not self.is_interrupted:
            await time.sleep_until(min(time_ns, now_ns + self.step_ns))
