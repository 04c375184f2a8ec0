"""The live view where there is no terminal (a pipe, a CI log): a line now and then, and one at every change.

5.0 s   1,034 ok  3 fail  5 info   206/s   owner n1 term 2  limbo 3   faults: isolate-owner
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import TextIO

from harness.pages.terminal.colour import printable
from harness.pages.terminal.snapshot import Snapshot

EVERY_NS = 5_000_000_000


class PlainView:
    """Writes a line about every five seconds of the run, and one when a fault or a phase begins or ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_ns = 0
        self._faults: Counter[str] = Counter()
        self._message = ""
        self._read = True

    def __enter__(self) -> PlainView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, snapshot: Snapshot) -> None:
        """Write the changes since the last snapshot, and the whole state if it is due."""
        lines = [*self._changes(snapshot)]
        if snapshot.time_ns >= self._next_ns:
            lines.append(state_line(snapshot))
            self._next_ns = (snapshot.time_ns // EVERY_NS + 1) * EVERY_NS
        if lines and self._read:
            at = f"{snapshot.time_ns / 1e9:6.1f} s"
            self._write("".join(f"{at}   {printable(line)}\n" for line in lines))

    def _write(self, text: str) -> None:
        """A reader that went away (`… | head`) ends the view, never the run."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._read = False

    def _changes(self, snapshot: Snapshot) -> list[str]:
        faults, before = Counter(snapshot.faults), self._faults
        lines = [f"fault ends: {name}" for name in (before - faults).elements()]
        lines += [f"fault begins: {name}" for name in (faults - before).elements()]
        if snapshot.message and snapshot.message != self._message:
            lines.append(snapshot.message)
        self._faults, self._message = faults, snapshot.message
        return lines


def state_line(snapshot: Snapshot) -> str:
    """All of a snapshot in one line, without unknown values."""
    counts = f"{snapshot.ok:,} ok  {snapshot.fail:,} fail  {snapshot.info:,} info"
    owner = "" if snapshot.owner is None else f"owner {snapshot.owner}"
    owner_words = " ".join(word for word in (owner, *map(printable, snapshot.owner_state)) if word)
    away = ", ".join(f"{node.name} {node.condition}" for node in snapshot.nodes if node.condition != "up")
    faults = f"faults: {', '.join(snapshot.faults)}" if snapshot.faults else ""
    return "   ".join(
        word for word in (counts, f"{snapshot.rate_per_s:,.0f}/s", owner_words, away, faults) if word
    )
