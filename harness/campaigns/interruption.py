"""SIGTERM, and SIGHUP of a terminal that is closed, as Ctrl-C, and not lost.

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
def by_signal() -> Iterator[None]:
    """Within it both raise KeyboardInterrupt in the main thread; in any other thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    for name, handler in before.items():
        if handler is not signal.SIG_IGN:  # `nohup` ignores SIGHUP: the verb is to outlive its terminal
            signal.signal(name, _ask)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
        # The code after this block has not been asked to end.
        _asked.clear()


def _ask(number: int, _frame: Any) -> NoReturn:
    # The kernel and the shell both send it: the second must not cut the clean-up off.
    if number == signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)
    _asked.set()
    raise KeyboardInterrupt


def look() -> None:
    """Raises KeyboardInterrupt if one of them has come, and its exception was dropped."""
    if _asked.is_set():
        _asked.clear()
        raise KeyboardInterrupt
