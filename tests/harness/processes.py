"""Watching processes that a test has started."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]  # it has no types

PATIENCE_S = 60
"""For a machine that has much else to do."""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.02)


def is_stopped(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


def is_gone(process: psutil.Process) -> bool:
    """Ended; a zombie waits only for its parent to hear it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
