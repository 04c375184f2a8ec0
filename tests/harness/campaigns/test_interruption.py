"""SIGTERM and SIGHUP end what goes on, also where Python drops their exception."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from harness.campaigns import interruption


def ask() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)  # the handler runs here


def test_what_was_dropped_is_raised_at_the_next_look() -> None:
    """If it failed, a campaign whose interruption met a finalizer would go on for hours."""
    with interruption.by_signal():
        interruption.look()
        with suppress(KeyboardInterrupt):  # as a finalizer does
            ask()
        with pytest.raises(KeyboardInterrupt):
            interruption.look()
        interruption.look()


def test_it_is_raised_at_once_and_the_handler_before_is_back() -> None:
    """If it failed, a command would not end, or one that runs within another program would change it."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruption.by_signal():
        ask()
    assert signal.getsignal(signal.SIGTERM) == before
    interruption.look()  # what was asked within it is over with it


def test_a_verb_that_ignores_the_end_of_its_terminal_outlives_it() -> None:
    """If it failed, `nohup` would protect no campaign, or a closed terminal would cut the clean-up off: the
    kernel sends SIGHUP, and then the shell."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruption.by_signal():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with interruption.by_signal():
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing() -> None:
    """If it failed, a command in a thread would end with an error of its own: signals belong to the main thread."""
    seen: list[object] = []

    def within() -> None:
        with interruption.by_signal():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
