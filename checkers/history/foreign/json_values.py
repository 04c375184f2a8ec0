"""Values of JSON one after the other, as Go's encoder writes them: on any number of lines, or in one array."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checkers.history.errors import NOT_JSON, HistoryError

_BETWEEN = re.compile(r"[\s,\[\]]*")
_BLANKS = re.compile(r"\s*")
_STRING = r'"(?:[^"\\]|\\.)*+"'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}},]")
_NAME = re.compile(rf"({_STRING})\s*:\s*")
_OF_WORDS = f"{string.ascii_letters}{string.digits}-+."


@dataclass(slots=True)
class Values:
    """The values of a file, which has a `name` if it is one of several. `array`: the name of the array that holds them,
    if the whole is an object.

    `starts`: where in the text each begins; of an array they are looked for when a line is asked for.
    """

    values: list[Any]
    data: bytes
    array: str | None = None
    starts: list[int] = field(default_factory=list)
    torn: str | None = None
    name: str = ""

    def line_of(self, place: int) -> int:
        """The line on which the value with that place begins."""
        text = self.data.decode()
        if not self.starts:
            at = 0
            for item in _items(text, 0) if self.array is not None else ():
                name = _NAME.match(text, item)
                assert name is not None
                if msgspec.json.decode(name[1]) == self.array:  # of equal names the last one holds
                    at = name.end()
            self.starts = list(_items(text, at))
        return _line(text, self.starts[place])


def _items(text: str, at: int) -> Iterator[int]:
    """Where the items begin of the array or object at `at`, or behind the blanks there, in text that is JSON."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if (sign := token[0]) in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
            if not depth:
                return
        if depth == 1 and sign in "[{,":
            yield _end(_BLANKS, text, token.end())


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def parse(data: bytes, expected: str, array: str | None = None) -> Values:
    """The values in a file. `expected`: what each is, for messages. `array`: the name of an array of them that an
    object may hold, which then is the whole file. Raises HistoryError.
    """
    try:
        whole = msgspec.json.decode(data)
    except NOT_JSON:
        return _one_by_one(data, expected)
    if isinstance(whole, list):
        return Values(whole, data)
    if isinstance(whole, dict) and isinstance(held := whole.get(array), list):
        return Values(held, data, array)
    return Values([whole], data, starts=[_after(data.decode(), 0)])


def _one_by_one(data: bytes, expected: str) -> Values:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data" and error.start:
            return _one_by_one(data[: error.start], expected)
        raise HistoryError(
            expected=f"{expected} in JSON",
            came=f"bytes that are no text ({error.reason} at byte {error.start})",
            attempt="check that the file was copied whole",
        ) from error
    found = Values([], data)
    # It says where a value ends. What JSON is says msgspec: this one takes NaN and half a surrogate pair, too.
    scanned = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    at = _after(text, 0)
    while at < len(text):
        try:
            _, end = scanned(text, at)
            found.values.append(msgspec.json.decode(text[at:end]))
        except (json.JSONDecodeError, *NOT_JSON) as error:
            place = getattr(error, "pos", at)
            if found.values and _is_cut(text, at, error):
                found.torn = f"the last value, from line {_line(text, at)} on, was torn off and is left out"
                return found
            raise HistoryError(
                expected=f"{expected} in JSON",
                came=f"{text[at : at + 40]!r} ({str(error).split(': line')[0]})",
                attempt="check that the file was copied whole",
                line=_line(text, place),
            ) from error
        found.starts.append(at)
        at = _after(text, end)
    if text.lstrip().startswith("[") and not text.rstrip().endswith("]"):
        found.torn = "the array was torn off behind its last value"
    return found


def _is_cut(text: str, at: int, error: Exception) -> bool:
    """Whether the value at `at` is the beginning of an object: nothing but the end of the text is wrong with it."""
    if text[at] != "{" or not isinstance(error, json.JSONDecodeError):
        return False
    last_word = len(text.rstrip().rstrip(_OF_WORDS))
    return error.pos >= last_word or error.msg.startswith("Unterminated string")


def _after(text: str, at: int) -> int:
    return _end(_BETWEEN, text, at)


def _end(skipped: re.Pattern[str], text: str, at: int) -> int:
    match = skipped.match(text, at)
    assert match is not None
    return match.end()
