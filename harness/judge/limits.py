"""One limit for all checks of a command: a check that it leaves no time for is unknown, never valid."""

from __future__ import annotations

import time
from collections.abc import Callable

from checkers.history.history import History
from checkers.verdict import Verdict
from harness.check import Check, Limits, RunCheck


class Clock:
    """Counts from when it is made."""

    def __init__(self, limits: Limits, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now_s = now_s
        self._began_s = now_s()

    @property
    def left(self) -> Limits:
        """What is left of the limits."""
        timeout_s = self._limits.timeout_s
        if timeout_s is None:
            return self._limits
        left_s = max(0.0, timeout_s - (self._now_s() - self._began_s))
        return Limits(timeout_s=left_s, memory_mib=self._limits.memory_mib)

    @property
    def is_over(self) -> bool:
        return self.left.timeout_s == 0.0

    def within(self, run_check: RunCheck) -> RunCheck:
        """The same, until the time is over."""

        def run(check: Check, history: History) -> Verdict:
            if not self.is_over:
                return run_check(check, history)
            summary = "not judged: the time limit for all checks was over"
            return Verdict(checker=check.name, result="unknown", summary=summary, model=check.model)

        return run
