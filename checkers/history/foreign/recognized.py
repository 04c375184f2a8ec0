"""Finds out what a file is, by its content, never by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkers.history import jsonl, parquet, segments
from checkers.history.errors import HistoryError
from checkers.history.foreign import edn, jepsen_text, json_maps
from checkers.history.foreign.operation_maps import history_of
from checkers.history.history import FORMAT, Header, History

_BEFORE = r"(?:[\s,]|;[^\n]*\n)*"
_OURS = re.compile(rb'\s*\{[^{}\n]{0,200}"format"\s*:\s*"' + FORMAT.encode() + b'"')
_JSON = re.compile(rb'[\s\[,]*\{\s*"')
_EMPTY = re.compile(rf"{_BEFORE}(?:[\[(]{_BEFORE}[\])])?{_BEFORE}")
_EDN = re.compile(rf"{_BEFORE}(?:[\[(]{_BEFORE})?(?:#[\w.$-]+\s*)?(?:\{{{_BEFORE}:[a-z]|#_)")
_PARQUET = b"PAR1"
_LOOKED_AT = 1 << 12


@dataclass(frozen=True, slots=True)
class Recognized:
    """A history, and what kind of file it came from: ours, parquet, edn, json or log."""

    kind: str
    history: History


def read(path: Path) -> Recognized:
    """Read any file that we know. Raises HistoryError in one line, or OSError if it cannot be read at all."""
    with segments.stream(path) as file:
        begins = file.read(_LOOKED_AT)
    if begins.startswith(_PARQUET):
        return Recognized("parquet", parquet.read(path))
    if _OURS.match(begins):
        return Recognized("ours", jsonl.read(path))
    return parse(path.read_bytes())


def parse(data: bytes) -> Recognized:
    """The history in the bytes of a file that is no Parquet. Raises HistoryError."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if _OURS.match(data):
        return Recognized("ours", jsonl.parse(data))
    if _JSON.match(data):
        return Recognized("json", _parse_json(data))
    text = _text(data)
    for kind, belongs, parsed in _TEXTS:
        if belongs(text):
            return Recognized(kind, parsed(text))
    raise _unknown(repr(text[:40].strip()))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _unknown(f"bytes that are no text ({error.reason} at byte {error.start})") from error


def _parse_json(data: bytes) -> History:
    try:
        return json_maps.parse(data)
    except RecursionError as error:
        raise _unknown("values nested without end") from error


def _parse_edn(text: str) -> History:
    forms = edn.read(text)
    torn = None
    if forms.torn_at is not None:
        torn = f"line {edn.line_of(text, forms.torn_at)} was torn off and is left out"
    return history_of(
        forms.values, lambda place: edn.line_of(text, forms.starts[place]), Header(system="foreign"), torn
    )


def _parse_nothing(text: str) -> History:
    raise HistoryError(
        expected="a history",
        came="an empty file: no operations",
        attempt="check that the file was copied whole",
    )


_TEXTS: tuple[tuple[str, Callable[[str], object], Callable[[str], History]], ...] = (
    ("empty", _EMPTY.fullmatch, _parse_nothing),
    ("edn", _EDN.match, _parse_edn),
    ("log", jepsen_text.LINE.search, jepsen_text.parse),
)


def _unknown(came: str) -> HistoryError:
    return HistoryError(
        expected="a history.jsonl or .parquet of this project, Jepsen's EDN or log, Porcupine's key-value file or "
        "elle-cli's JSON",
        came=came,
        attempt="give one of these",
    )
