"""The live view: what it shows, how rarely it draws, and what it does where there is no terminal."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from harness.pages.terminal.colour import wants_colour
from harness.pages.terminal.live import BETWEEN_DRAWINGS_S, LiveView, picture, view
from harness.pages.terminal.plain import PlainView
from harness.pages.terminal.snapshot import NodeCondition, Snapshot

SECOND = 10**9
SNAPSHOT = Snapshot(
    time_ns=8 * SECOND,
    end_ns=20 * SECOND,
    ok=1034,
    fail=3,
    info=5,
    rate_per_s=206.4,
    faults=("isolate-owner",),
    owner="n1",
    owner_state=("term 2", "limbo 3"),
    nodes=(NodeCondition("n1", "up"), NodeCondition("n2", "paused")),
)


@pytest.fixture(autouse=True)
def a_terminal_that_can_be_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests themselves run in: rich looks at the environment."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_it_writes_a_line_every_five_seconds_and_at_every_fault() -> None:
    """If it failed, a CI log would be empty, flooded, or silent about the faults."""
    stream = io.StringIO()
    with view(stream, {}) as plain:
        for tenth in range(121):
            faults = ("kill", "kill") if 70 <= tenth < 90 else ("kill",) if 63 <= tenth < 90 else ()
            plain.show(replace(SNAPSHOT, time_ns=tenth * SECOND // 10, faults=faults, nodes=()))
    assert stream.getvalue().splitlines() == [
        "   0.0 s   1,034 ok  3 fail  5 info   206/s   owner n1 term 2 limbo 3",
        "   5.0 s   1,034 ok  3 fail  5 info   206/s   owner n1 term 2 limbo 3",
        "   6.3 s   fault begins: kill",
        "   7.0 s   fault begins: kill",
        "   9.0 s   fault ends: kill",
        "   9.0 s   fault ends: kill",
        "  10.0 s   1,034 ok  3 fail  5 info   206/s   owner n1 term 2 limbo 3",
    ]


def test_plain_lines_name_what_the_run_is_doing_and_who_is_away() -> None:
    """If it failed, one could not tell a run that waits from one that hangs."""
    stream = io.StringIO()
    plain = PlainView(stream)
    plain.show(replace(SNAPSHOT, message="waiting until\x1b[2J settled"))
    assert "   waiting until [2J settled\n" in stream.getvalue()
    assert "n2 paused" in stream.getvalue()


def test_the_live_view_draws_at_most_four_times_a_second() -> None:
    """If it failed, drawing would eat the time of the loop that measures the cluster."""
    now_s, drawn = 0.0, 0
    stream = Terminal()
    with LiveView(Console(file=stream, force_terminal=True), clock=lambda: now_s) as live:
        for millisecond in range(1_000):
            now_s, before = millisecond / 1_000, stream.tell()
            live.show(replace(SNAPSHOT, ok=millisecond))
            drawn += stream.tell() != before
    assert drawn == int(1 / BETWEEN_DRAWINGS_S) == 4


def test_the_picture_says_all_of_the_snapshot() -> None:
    """If it failed, whoever watches the run would miss what the issue asks to be seen."""
    text = picture(replace(SNAPSHOT, faults=("kill", "pause", "kill"), message="load")).plain
    for words in (
        "12 s left",
        "load",
        "1,034 ok",
        "3 fail",
        "5 info",
        "206/s",
        "kill ×2, pause",
        "n1",
        "term 2",
    ):
        assert words in text
    assert "limbo 3" in text
    assert "n2 paused" in text
    assert text.count("\n") == 4


def test_the_terminal_is_given_back_when_the_run_breaks() -> None:
    """If it failed, a traceback would leave the user without a cursor."""
    stream = Terminal()

    def run_that_breaks() -> None:
        with view(stream, {"TERM": "xterm"}) as live:
            live.show(SNAPSHOT)
            raise RuntimeError("broke")

    with pytest.raises(RuntimeError, match="broke"):
        run_that_breaks()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")


class Gone(Terminal):
    """A stream whose reader has gone away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_reader_that_goes_away_does_not_break_the_run(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, `qsync run | head` would end in exit 70 and no verdict."""
    stream = Gone()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    with view(stream, {"TERM": "xterm"}) as shown:
        assert isinstance(shown, LiveView if terminal else PlainView)
        shown.show(SNAPSHOT)
        shown.show(replace(SNAPSHOT, time_ns=19 * SECOND))


def test_no_color_is_respected() -> None:
    """If it failed, people who asked for no colour would get it."""
    stream = Terminal()
    with view(stream, {"NO_COLOR": "1", "TERM": "xterm"}) as live:
        live.show(SNAPSHOT)
    assert "1,034 ok" in stream.getvalue()
    assert "\x1b[3" not in stream.getvalue()
    assert not wants_colour(stream, {"NO_COLOR": "1"})
    assert wants_colour(stream, {"TERM": "xterm"})
    assert not wants_colour(io.StringIO(), {})


def test_rich_is_not_loaded_before_it_is_needed() -> None:
    """If it failed, `--help` and `--json` would pay for a library that they do not use."""
    program = (
        "import sys, io; from pathlib import Path; from harness.pages.terminal import live, last_screen;"
        "live.view(io.StringIO(), {}); last_screen.last_screen({}, Path('x')); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
