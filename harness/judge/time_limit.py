"""The limits of one judgement: one time limit for all of its checks together.

    with limited(Limits(timeout_s=60.0)):
        finish(folder, plan)

Searches look at the time themselves, between slices of some 0.1 s. All other checks are interrupted by a timer of the
kernel: its signal raises `OutOfTime` in the thread that checks, and `run_safely` makes of it a verdict that says
unknown and why. Keys that were decided by then stay decided. Behind the limit no check begins.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from checkers.limits import Limits, given, interrupt, left_s, within

OPTION = "--timeout"
AGAIN = 0.04  # of the limit: when the next signal comes, if what was interrupted still goes on
AGAIN_S_MIN = 0.02


@contextmanager
def limited(
    limits: Limits | None, *, left: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Limit all checks inside; None: by the limits that apply already. `left`: as `left_s` of `within`.

    A thread other than the main one receives no signal, so only searches keep the limit there.
    """
    if limits is None:
        yield
        return
    with within(limits, source=OPTION, left_s=left, clock=clock):
        after_s = limits.timeout_s if left is None else left
        if (
            limits.timeout_s is None
            or after_s is None
            or threading.current_thread() is not threading.main_thread()
        ):
            yield
            return
        with _alarm(max(AGAIN_S_MIN, after_s), max(AGAIN_S_MIN, AGAIN * limits.timeout_s)):
            yield


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The limits of this process, for a process that may be on another machine with the same wall clock."""

    limits: Limits
    until_s: float | None

    @classmethod
    def now(cls) -> Elsewhere:
        """The limits at this moment."""
        seconds = left_s()
        return cls(given(), None if seconds is None else time.time() + seconds)

    def held(self) -> AbstractContextManager[None]:
        """Apply the limits in the other process."""
        left = None if self.until_s is None else max(0.0, self.until_s - time.time())
        return limited(self.limits, left=left)


@contextmanager
def _alarm(after_s: float, again_s: float) -> Iterator[None]:
    """Call `interrupt` after `after_s`, and again every `again_s`. An outer alarm is restored at the end."""
    before = signal.signal(signal.SIGALRM, lambda *_: interrupt())
    left_s, repeat_s = signal.setitimer(signal.ITIMER_REAL, after_s, again_s)
    began_s = time.monotonic()
    try:
        yield
    finally:
        # Before the handler: a late signal must not reach the outer one.
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s - (time.monotonic() - began_s)), repeat_s)
