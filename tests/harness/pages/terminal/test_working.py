"""The line of work that takes long: on a terminal, in a pipe, and not at all where it would disturb."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
import threading

import pytest

from harness.doing import doing, now
from harness.pages.terminal import working as them
from harness.pages.terminal.colour import on_one_line
from harness.pages.terminal.working import working

HERE = {"TERM": "xterm"}


class Told(io.StringIO):
    """A stream that says when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        super().flush()
        self.written.set()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE_S", "BETWEEN_DRAWINGS_S", "FIRST_GAP_S", "LAST_GAP_S"):
        monkeypatch.setattr(them, name, 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_pipe_gets_a_line_with_what_is_done() -> None:
    stream = Told()
    with working("judging", stream=stream, environ=HERE):
        doing("check 3 of 9: linearizable")
        stream.written.clear()
        assert stream.written.wait(60)
    assert stream.getvalue().splitlines()[-1] == "qsync: judging, 0 s: check 3 of 9: linearizable"
    assert now() == ""


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_one_line_which_is_gone_at_the_end() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        with working("judging", stream=terminal, environ=HERE):
            seen = b""
            while b"judging" not in seen:
                seen += os.read(ours, 1000)
        while not seen.endswith(b"\r\x1b[K"):
            seen += os.read(ours, 1000)
    os.close(ours)
    assert b"\n" not in seen


@pytest.mark.usefixtures("impatient")
def test_a_line_that_stays_is_no_part_of_the_moving_one() -> None:
    """A night tells of each run while its line moves."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        with working("running the night", stream=terminal, environ=HERE) as shown:
            seen = b""
            while b"night" not in seen:
                seen += os.read(ours, 1000)
            shown.say("qsync: one run is\x1bvalid")  # as a server may write it
        while not seen.endswith(b"\r\x1b[K"):
            seen += os.read(ours, 1000)
    os.close(ours)
    assert b"\r\x1b[Kqsync: one run is valid\r\n" in seen


def test_short_work_shows_nothing() -> None:
    stream = io.StringIO()
    with working("judging", stream=stream, environ=HERE):
        pass
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_json_in_a_pipe_stays_alone() -> None:
    stream = io.StringIO()
    before = threading.active_count()
    with working("judging", stream=stream, environ=HERE, is_quiet=True):
        assert threading.active_count() == before
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_a_reader_that_went_away_does_not_end_the_work() -> None:
    class Closed(Told):
        def write(self, text: str) -> int:
            self.written.set()
            raise BrokenPipeError

    stream = Closed()
    with working("judging", stream=stream, environ=HERE):
        assert stream.written.wait(60)


@pytest.mark.usefixtures("impatient")
def test_the_error_of_the_work_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError), working("judging", stream=Told(), environ=HERE):
        _ = 1 / 0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("columns", "longest"), [(40, 39), (0, 78), (200, 78)])
def test_a_line_never_wraps(columns: int, longest: int) -> None:
    """If it failed, each drawing on a narrow terminal would leave a line behind, and push the results away."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w") as terminal, working("judging", stream=terminal, environ=HERE):
        doing("x" * 300)
        seen = b""
        while b"x" not in seen or not seen.endswith(b"\x1b[K"):
            seen += os.read(ours, 1)
    os.close(ours)
    assert longest in {len(line) for line in seen.split(b"\r\x1b[K")}


def test_a_wide_character_takes_two_columns() -> None:
    """If it failed, the line of a file with a Chinese name would wrap, and a part of it stay at each drawing."""
    assert on_one_line("試" * 100, io.StringIO()) == "試" * 39
    assert on_one_line("x" * 77 + "試", io.StringIO()) == "x" * 77
    assert on_one_line("試", io.StringIO()) == "試"
