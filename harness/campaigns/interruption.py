"""SIGTERM as Ctrl-C, and not lost.

The handler raises KeyboardInterrupt wherever the process is. Python drops an exception in a finalizer or in a callback
of a weak reference: then the process would go on as if no signal had come. A campaign looks at each turn of its loop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_asked = threading.Event()


@contextmanager
def by_sigterm() -> Iterator[None]:
    """Within it SIGTERM raises KeyboardInterrupt in the main thread; in any other thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked.clear()
    before = signal.signal(signal.SIGTERM, _ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ask(_signal: int, _frame: Any) -> NoReturn:
    _asked.set()
    raise KeyboardInterrupt


def look() -> None:
    """Raises KeyboardInterrupt if SIGTERM has come, and its exception was dropped."""
    if _asked.is_set():
        _asked.clear()
        raise KeyboardInterrupt
