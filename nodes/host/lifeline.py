"""A node dies with the process that started it, however that one ends.

Two ways, because neither is enough:

- Linux: the kernel is asked to send SIGKILL when the parent dies (PR_SET_PDEATHSIG). It ends stopped processes too,
  which read nothing. It hangs on the parent's *thread* that started us: start nodes from one that stays.
- Everywhere: the parent holds the other end of our stdin; when it ends, a thread sees the end of file.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask for SIGKILL at the parent's death, if this is Linux. To be called first thing."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before we had asked
        os.kill(os.getpid(), signal.SIGKILL)


def watch_stdin(at_end: Callable[[], None]) -> None:
    """Call `at_end`, from a thread of its own, when stdin ends. The loop may hang; this does not."""
    threading.Thread(target=_read_to_end, args=(at_end,), name="lifeline", daemon=True).start()


def _read_to_end(at_end: Callable[[], None]) -> None:
    with suppress(OSError):  # a closed stdin is an ended one
        while os.read(0, 4096):
            pass
    at_end()
