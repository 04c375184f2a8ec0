"""Whether to use colour, and the few colours there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

CODES = {"red": "31", "green": "32", "yellow": "33", "magenta": "35", "bold": "1", "dim": "2"}


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """True for a terminal that can, unless NO_COLOR is set to anything (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def painted(text: str, *colours: str, on: bool) -> str:
    """The text in these colours; as it is if colour is off."""
    return f"\x1b[{';'.join(CODES[colour] for colour in colours)}m{text}\x1b[0m" if on and colours else text


def printable(text: str) -> str:
    """The text on one line without control characters, because the words of a server must not steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
