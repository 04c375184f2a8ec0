"""Whether the kernel ended a process for want of memory: by its log, or by its count of the process's group."""

from __future__ import annotations

import time
from contextlib import suppress

from harness.cluster.limits import kernel_log
from harness.cluster.limits.group import Group


class Starved:
    """Made before the process begins; `group`: the one that it runs in, if it has one of its own."""

    def __init__(self, group: Group | None) -> None:
        self._group = group
        self._since_ns = time.monotonic_ns()
        self._before = _kills(group)

    def kernel_line(self, pid: int) -> str:
        """The kernel's words about this end, which was a signal 9; "" if the kernel did not send it.

        A group counts the ends of all its processes: without a line about this very process the count must do.
        """
        if line := kernel_log.ended_process(pid, self._since_ns):
            return line
        kills = _kills(self._group) - self._before
        return f"the kernel counted {kills} oom_kill in the group of the node" if kills > 0 else ""


def _kills(group: Group | None) -> int:
    if group is not None:
        with suppress(OSError):
            return group.counts()["oom_kills"]
    return 0
