"""The run in progress: a few lines that are redrawn in place, at most four times a second.

    with live.view(sys.stderr, os.environ) as view:
        view.show(snapshot)          # as often as one likes; it is cheap when nothing is drawn

`view` gives the plain one (`plain.PlainView`) where there is no terminal. Nothing here runs in the background: no
thread and no timer. It draws only when `show` is called, and it restores the terminal even if the run fails.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

from harness.pages.terminal.colour import can_redraw, printable
from harness.pages.terminal.plain import PlainView
from harness.pages.terminal.snapshot import Snapshot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BETWEEN_DRAWINGS_S = 0.25
BAR_WIDTH = 24
CONDITION_STYLES = {"up": "green", "paused": "yellow", "dead": "red", "unknown": "dim"}


class View(Protocol):
    """Shows a run; a context manager, so that the terminal is always restored."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...


def view(stream: TextIO, environ: Mapping[str, str]) -> View:
    """The live view if the stream is a terminal that can be redrawn, else plain lines."""
    return LiveView(_console(stream, environ)) if can_redraw(stream, environ) else PlainView(stream)


def _console(stream: TextIO, environ: Mapping[str, str]) -> Console:
    from rich.console import Console

    class Patient(Console):
        """Raises BrokenPipeError where its parent exits with 1, which here would mean an anomaly."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Patient(file=stream, no_color=bool(environ.get("NO_COLOR")), highlight=False)


class LiveView:
    """Redraws in place. `clock` (seconds, monotonic) only decides whether it is too early to draw again."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.live import Live

        # Without redirection: what is printed to stdout for a machine must not land in the stream of the view.
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._clock = clock
        self._next_s = float("-inf")

    def __enter__(self) -> LiveView:
        with suppress(OSError):
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + BETWEEN_DRAWINGS_S
            with suppress(OSError):  # a terminal that went away ends the view, never the run
                self._live.update(picture(snapshot), refresh=True)


def picture(snapshot: Snapshot) -> Text:
    """Five lines: progress, operations, faults, the owner and its state, the nodes."""
    from rich.text import Text

    filled = round(snapshot.part_done * BAR_WIDTH)
    parts: list[tuple[str, str]] = [
        ("━" * filled, "cyan"),
        ("━" * (BAR_WIDTH - filled), "dim"),
        (f"  {snapshot.left_s:.0f} s left", "bold"),
        (f"  {printable(snapshot.message)}" if snapshot.message else "", "dim"),
        ("\noperations  ", "dim"),
        (f"{snapshot.ok:,} ok", "green"),
        (f"  {snapshot.fail:,} fail", "magenta"),
        (f"  {snapshot.info:,} info", "yellow"),
        (f"   {snapshot.rate_per_s:,.0f}/s", ""),
        ("\nfaults      ", "dim"),
        _faults(snapshot),
    ]
    if snapshot.owner is not None or snapshot.owner_state:  # a store without a leader has neither
        parts += [
            ("\nowner       ", "dim"),
            (printable(snapshot.owner or "?"), "bold"),
            *((f"   {printable(word)}", "") for word in snapshot.owner_state),
        ]
    parts.append(("\nnodes       ", "dim"))
    for node in snapshot.nodes:
        parts += [
            (f"{printable(node.name)} ", ""),
            (f"{node.condition}   ", CONDITION_STYLES[node.condition]),
        ]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _faults(snapshot: Snapshot) -> tuple[str, str]:
    if not snapshot.faults:
        return "none", "dim"
    counted = Counter(snapshot.faults)
    return ", ".join(
        printable(name if many == 1 else f"{name} ×{many}") for name, many in counted.items()
    ), "bold red"
