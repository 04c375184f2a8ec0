"""Work that takes more than two seconds: a line that moves on a terminal, a line now and then in a pipe.

    with working("judging"):
        ...                       # says what it is at: harness.doing.doing("the check linearizable")

Checkers and readers have no callbacks, so a thread draws. When the block is left the thread has ended and its line is
gone, and output may be printed as usual. Inside the block `say` of the value prints lines.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from harness.doing import doing, now
from harness.pages.terminal.colour import can_redraw, on_one_line, printable

PATIENCE_S = 2.0
BETWEEN_DRAWINGS_S = 0.25
FIRST_GAP_S, LAST_GAP_S = 10.0, 60.0
"""Between two lines in a pipe. The gap grows, because no one watches a work of hours."""
TURNING = "|/-\\"
ERASE = "\r\x1b[K"


class Working:
    """The line of one work."""

    def __init__(self, work: str, stream: TextIO, *, is_terminal: bool) -> None:
        self._work = work
        self._stream = stream
        self._is_terminal = is_terminal
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        """Held by the thread that writes."""
        self._thread = threading.Thread(target=self._show, daemon=True)

    def say(self, text: str) -> None:
        """A line that stays, without control characters."""
        self._put(f"{ERASE if self._is_terminal else ''}{printable(text)}\n")

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # Ctrl-C must wake the main thread
        if self._over.wait(PATIENCE_S):
            return
        if self._is_terminal:
            self._redraw()
        else:
            self._write()

    def _redraw(self) -> None:
        turn = 0
        while self._put(ERASE + on_one_line(f"{TURNING[turn % len(TURNING)]} {self._line()}", self._stream)):
            turn += 1
            if self._over.wait(BETWEEN_DRAWINGS_S):
                self._put(ERASE)
                return

    def _write(self) -> None:
        gap_s = FIRST_GAP_S
        while self._put(f"qsync: {self._line()}\n") and not self._over.wait(gap_s):
            gap_s = min(2 * gap_s, LAST_GAP_S)

    def _line(self) -> str:
        at = now()
        return printable(
            f"{self._work}, {time.monotonic() - self._began_s:.0f} s" + (f": {at}" if at else "")
        )

    def _put(self, text: str) -> bool:
        """False if the reader went away, which ends the line but never the work."""
        try:
            with self._lock:
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):
            return False
        return True


@contextmanager
def working(
    work: str,
    *,
    is_quiet: bool = False,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Working]:
    """Show on `stream` (None: standard error) that `work` goes on. `is_quiet`: on a terminal only, as for `--json`."""
    stream = stream or sys.stderr
    is_terminal = can_redraw(stream, environ)
    shown = Working(work, stream, is_terminal=is_terminal)
    if is_quiet and not is_terminal:
        yield shown
        return
    doing("")
    shown.begin()
    try:
        yield shown
    finally:
        shown.end()
        doing("")
