"""Processes that must not outlive the harness, whatever happens to it.

The relay learns of the harness's death by the end of its control channel, or by a signal that it asked the
kernel for; it then kills those it guards, with all that they have started (`harness.cluster.family`), stopped ones too
(SIGKILL reaches them), and ends. Nodes also watch their parent themselves; this is the second net.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Final

from harness.cluster.family import Family

_PR_SET_PDEATHSIG: Final = 1


class Guard:
    def __init__(self) -> None:
        self._guarded: dict[int, Family] = {}

    def watch(self, pid: int, mark: str) -> None:
        """Guard a process and all that inherit its mark."""
        self._guarded[pid] = Family(pid, mark)

    def release(self, pid: int) -> None:
        self._guarded.pop(pid, None)

    def kill_all(self) -> None:
        for family in self._guarded.values():
            family.kill_now()


def ask_for_signal_at_death_of_parent(number: signal.Signals) -> None:
    """Linux only; elsewhere the end of the control channel has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
