"""Parts of the screens of `run`, `check`, `audit` and `cut`: the headline, and lines that begin with a word.

ANOMALY  Process 1 read 3, but no client ever asked to write 3.

  violation  linearizable: not linearizable: …
  note       …
"""

from __future__ import annotations

import textwrap

from harness.pages.terminal.colour import painted, printable

WIDTH = 100
INDENT = 13
BADGES = {
    "valid": ("VALID", "green"),
    "anomaly": ("ANOMALY", "red"),
    "unknown": ("UNKNOWN", "yellow"),
    "inconclusive": ("INCONCLUSIVE", "magenta"),
}
NO_BADGE = ("NO VERDICT", "magenta")
COLOURS = {
    "violation": "red",
    "missing": "magenta",
    "unknown": "yellow",
    "finding": "yellow",
    "by": "cyan",
}


def headline(outcome: object, sentence: object, *, colour: bool, lines_max: int | None = None) -> list[str]:
    """The outcome as a coloured word, then the sentence, in as many lines as it takes or in `lines_max`."""
    badge, tone = BADGES.get(str(outcome), NO_BADGE)
    lines = _wrapped(f"{badge}  {printable(str(sentence))}".rstrip(), WIDTH, lines_max)
    return [painted(badge, "bold", tone, on=colour) + lines[0].removeprefix(badge), *lines[1:]]


def entry(word: str, text: str, *, colour: bool = False, lines_max: int | None = None) -> list[str]:
    """A line that begins with a word; with `lines_max`, wrapped into at most so many."""
    shown = printable(text)
    lines = [shown] if lines_max is None else _wrapped(shown, WIDTH - INDENT, lines_max) or [""]
    painted_word = painted(f"{word:<9}", *([COLOURS[word]] if word in COLOURS else []), on=colour)
    return [f"  {painted_word}  {lines[0]}".rstrip(), *(" " * INDENT + line for line in lines[1:])]


def cut(text: str) -> str:
    """Not longer than a line."""
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _wrapped(text: str, width: int, lines_max: int | None) -> list[str]:
    return textwrap.wrap(text, width, max_lines=lines_max, placeholder=" …", break_on_hyphens=False)
