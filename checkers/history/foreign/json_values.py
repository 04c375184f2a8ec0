"""Values of JSON one after the other, as Go's encoder writes them: on any number of lines, or in one array."""

from __future__ import annotations

import bisect
import json
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checkers.history.errors import NOT_JSON, HistoryError

_BETWEEN = re.compile(r"[\s,\[\]]*")


@dataclass(slots=True)
class Values:
    """The values of a file. `starts`: where in the text each begins; empty if the whole is one array."""

    values: list[Any]
    starts: list[int] = field(default_factory=list)
    torn: str | None = None
    _ends_of_lines: list[int] = field(default_factory=list)
    _text: str = ""

    def line_of(self, place: int) -> int:
        """The line of the value with that place; in an array, its place."""
        return self._line(self.starts[place]) if self.starts else place + 1

    def _line(self, start: int) -> int:
        if not self._ends_of_lines:
            self._ends_of_lines = [match.start() for match in re.finditer("\n", self._text)] or [
                len(self._text)
            ]
        return bisect.bisect_left(self._ends_of_lines, start) + 1


def parse(data: bytes, expected: str) -> Values:
    """The values in a file. `expected`: what each is, for messages. Raises HistoryError."""
    try:
        whole = msgspec.json.decode(data)
    except NOT_JSON:
        return _one_by_one(data, expected)
    return Values(whole if isinstance(whole, list) else [whole])


def _one_by_one(data: bytes, expected: str) -> Values:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise HistoryError(
            expected=f"{expected} in JSON",
            came=f"bytes that are no text ({error.reason} at byte {error.start})",
            attempt="check that the file was copied whole",
        ) from error
    found = Values([], _text=text)
    # It says where a value ends. What JSON is says msgspec: this one takes NaN and half a surrogate pair, too.
    scanned = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    at = _after(text, 0)
    while at < len(text):
        try:
            _, end = scanned(text, at)
            found.values.append(msgspec.json.decode(text[at:end]))
        except (json.JSONDecodeError, *NOT_JSON) as error:
            place = getattr(error, "pos", at)
            is_cut = place >= len(text.rstrip()) - 1 or str(error).startswith("Unterminated string")
            if is_cut and found.values:
                found.torn = f"the last value, from line {found._line(at)} on, was torn off and is left out"
                return found
            raise HistoryError(
                expected=f"{expected} in JSON",
                came=f"{text[at : at + 40]!r} ({str(error).split(': line')[0]})",
                attempt="check that the file was copied whole",
                line=found._line(place),
            ) from error
        found.starts.append(at)
        at = _after(text, end)
    return found


def _after(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    assert between is not None
    return between.end()
