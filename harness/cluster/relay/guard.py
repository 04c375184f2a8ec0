"""Processes that must not outlive the harness, whatever happens to it.

The relay learns of the harness's death by the end of its control channel, or by a signal that it asked the
kernel for; it then kills those it guards, stopped ones too (SIGKILL reaches them), and ends. Nodes also watch
their parent themselves; this is the second net. On Linux a guarded process is held by a pidfd, so that a
number which was used again hits nobody else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


class Guard:
    def __init__(self) -> None:
        self._handles: dict[int, int | None] = {}

    def watch(self, pid: int) -> None:
        """Guard a process. One that is gone already needs no guard."""
        with contextlib.suppress(ProcessLookupError):
            self._handles[pid] = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def release(self, pid: int) -> None:
        handle = self._handles.pop(pid, None)
        if handle is not None:
            os.close(handle)

    def kill_all(self) -> None:
        for pid, handle in self._handles.items():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if handle is None:
                    os.kill(pid, signal.SIGKILL)
                else:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)


def ask_for_signal_at_death_of_parent(number: signal.Signals) -> None:
    """Linux only; elsewhere the end of the control channel has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
