"""Values of EDN by the shape of their text, which is the text without its whole numbers.

The lines of a history have few shapes. The first text of a shape is read as all EDN is. Of the second a *template* is
made: the values with a hole for each run of numbers. From then on only the numbers are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from checkers.history.errors import HistoryError

Read = Callable[[str], Sequence[Any]]
Build = Callable[[Sequence[str]], Any]

PLAIN: Final = r"[^{}\n;\"\\#^]*+"
"""A text without maps, strings, characters, comments and tags: it ends where its line ends."""
_RUN: Final = re.compile(r"(?<=[\s,\[{(])(-?[0-9]{1,30}(?:[ ,]+-?[0-9]{1,30})*)(?=[\s,\]})])")
_HOLE: Final = "\ue000"
_MOST: Final = 1 << 14


class NoTemplate(Exception):
    """Values depend on their numbers in another way than by holding them."""


class Shapes:
    """`read` gives the values of a text in the usual way."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[str, Build | None] = {}

    def values(self, text: str) -> list[Any] | None:
        """The values of a text that is PLAIN, or such a map; None if they must be read."""
        pieces = _RUN.split(text)
        shape = "\n".join(pieces[::2])
        if shape not in self._known:
            if len(self._known) < _MOST:
                self._known[shape] = None
            return None
        build = self._known[shape]
        try:
            if build is None:
                self._known[shape] = _none  # its template may have no hole, and so the same shape
                build = self._known[shape] = self._template(pieces)
            values: list[Any] = build(pieces)
        except (NoTemplate, ValueError):  # such as two numbers in the place of one
            return None
        return values

    def _template(self, pieces: Sequence[str]) -> Build:
        if any(_HOLE in piece for piece in pieces):
            return _none
        with_holes = (f":{_HOLE}{place}" if place % 2 else piece for place, piece in enumerate(pieces))
        try:
            return _list(list(self._read("".join(with_holes))))
        except (NoTemplate, HistoryError):
            return _none


def _none(pieces: Sequence[str]) -> list[Any]:
    raise NoTemplate


def _built(value: Any) -> Build | None:
    """None: the value has no numbers and is immutable."""
    if isinstance(value, dict):
        return _dict(value)
    return _list(value) if isinstance(value, list) else None


def _dict(value: dict[str, Any]) -> Build:
    if any(_HOLE in key for key in value):
        raise NoTemplate
    numbers = [(key, hole) for key, member in value.items() if (hole := _hole(member))]
    others = [(key, part) for key, member in value.items() if (part := _built(member)) is not None]

    def build(pieces: Sequence[str]) -> dict[str, Any]:
        made = value.copy()
        for key, hole in numbers:
            made[key] = int(pieces[hole])
        for key, other in others:
            made[key] = other(pieces)
        return made

    return build


def _list(values: list[Any]) -> Build:
    parts = [(_hole(value), _built(value), value) for value in values]

    def build(pieces: Sequence[str]) -> list[Any]:
        made: list[Any] = []
        for hole, other, constant in parts:
            if hole:
                made += _numbers(pieces[hole])
            else:
                made.append(constant if other is None else other(pieces))
        return made

    return build


def _hole(value: Any) -> int:
    """The place of a hole's numbers among the pieces; 0: the value is none."""
    return int(value[1:]) if isinstance(value, str) and value[:1] == _HOLE else 0


def _numbers(run: str) -> list[int]:
    return list(map(int, run.replace(",", " ").split()))
