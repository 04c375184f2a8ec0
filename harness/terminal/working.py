"""Work that takes more than two seconds: a line that moves on a terminal, a line now and then in a pipe.

    with working("judging"):
        ...                       # says what it is at: harness.doing.doing("the check linearizable")

Checkers and readers call nobody back while they work, so a thread draws. The thread has ended, and its line is gone,
when the block is left: what comes then may be printed as usual. Inside the block nothing else may be printed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from harness.doing import doing, now
from harness.terminal.colour import printable

PATIENCE_S = 2.0
BETWEEN_DRAWINGS_S = 0.25
BETWEEN_LINES_S = 10.0
WIDTH = 78
TURNING = "|/-\\"


@contextmanager
def working(
    what: str,
    *,
    is_quiet: bool = False,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[None]:
    """Show on `stream` (None: standard error) that `what` goes on. `is_quiet`: on a terminal only, as for `--json`."""
    stream = stream or sys.stderr
    is_terminal = stream.isatty() and environ.get("TERM") not in ("dumb", "unknown")
    if is_quiet and not is_terminal:
        yield
        return
    is_over = threading.Event()
    show = _redraw if is_terminal else _write
    thread = threading.Thread(target=show, args=(what, stream, is_over), daemon=True)
    doing("")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        doing("")


def line(what: str, seconds: float) -> str:
    """The sentence of a moment."""
    at = now()
    return printable(f"{what}, {seconds:.0f} s" + (f": {at}" if at else ""))


def _redraw(what: str, stream: TextIO, is_over: threading.Event) -> None:
    began_s, turn = time.monotonic(), 0
    if is_over.wait(PATIENCE_S):
        return
    try:
        while True:
            text = f"{TURNING[turn % len(TURNING)]} {line(what, time.monotonic() - began_s)}"
            _put(stream, f"\r\x1b[K{text[:WIDTH]}")
            turn += 1
            if is_over.wait(BETWEEN_DRAWINGS_S):
                _put(stream, "\r\x1b[K")
                return
    except (OSError, ValueError):
        return  # a terminal that went away ends the line, never the work


def _write(what: str, stream: TextIO, is_over: threading.Event) -> None:
    began_s, wait_s = time.monotonic(), PATIENCE_S
    try:
        while not is_over.wait(wait_s):
            _put(stream, f"qsync: {line(what, time.monotonic() - began_s)}\n")
            wait_s = BETWEEN_LINES_S
    except (OSError, ValueError):
        return


def _put(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
