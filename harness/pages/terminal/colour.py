"""Abilities of a terminal: to redraw a line, and to show the few colours there are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import accumulate
from typing import TextIO
from unicodedata import east_asian_width

WIDTH = 78

CODES = {"red": "31", "green": "32", "yellow": "33", "magenta": "35", "bold": "1", "dim": "2"}


def can_redraw(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """True for a terminal on which the next line can stand in the place of the last one."""
    return stream.isatty() and environ.get("TERM") not in ("dumb", "unknown")


def on_one_line(text: str, stream: TextIO) -> str:
    """The text as far as it fits: of a line that wraps a part would stay when it is drawn again."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    room = min(columns - 1, WIDTH) if columns else WIDTH
    ends = accumulate(1 + (east_asian_width(character) in "WF") for character in text)
    return text[: sum(end <= room for end in ends)]


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """True for a terminal that can, unless NO_COLOR is set to anything (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def painted(text: str, *colours: str, on: bool) -> str:
    """The text in these colours; as it is if colour is off."""
    return f"\x1b[{';'.join(CODES[colour] for colour in colours)}m{text}\x1b[0m" if on and colours else text


def printable(text: str) -> str:
    """The text on one line without control characters, because the words of a server must not steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
