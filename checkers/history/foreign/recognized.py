"""Finds out what a file is, by its content, never by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from checkers.history import jsonl, parquet, segments
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.foreign import (
    dbcop,
    edn,
    isolation_text,
    jepsen_store,
    jepsen_text,
    json_maps,
    porcupine_json,
)
from checkers.history.foreign.folders import reader_of
from checkers.history.foreign.kinds import Kinds, text
from checkers.history.foreign.operation_maps import Maps
from checkers.history.foreign.sessions import Sessions
from checkers.history.history import FORMAT, Header, History, Origin
from checkers.history.nesting import is_deep
from checkers.history.start import Start
from checkers.history.stored import without_collections

_BEFORE = r"(?:[\s,]|;[^\n]*\n)*+"  # possessive: else three of them take quadratic time over blanks
_OURS = re.compile(rb'\s*\{[^{}\n]{0,200}"format"\s*:\s*"' + FORMAT.encode() + b'"')
_JSON = re.compile(rb'[\s\[,]*\{\s*"')
_EMPTY = re.compile(rf"{_BEFORE}(?:[\[(]{_BEFORE}[\])])?{_BEFORE}")
_EDN = re.compile(rf"{_BEFORE}(?:[\[(]{_BEFORE})?(?:#[\w.$-]+\s*)?(?:\{{{_BEFORE}:[a-z]|#_)")
_PARQUET = b"PAR1"
_LOOKED_AT = 1 << 12


def read(path: Path, *, initial: str | None = None) -> History:
    """Read any file that we know. Raises HistoryError in one line, or OSError if it cannot be read at all.

    `initial`: what the objects held before, in JSON or EDN, by key if it is a map (see `history.start`).
    """
    if (of_folder := reader_of(path)) is not None:
        return _history(of_folder(path), "folder", initial)
    with segments.stream(path) as file:
        begins = file.read(_LOOKED_AT)
        is_ours = _OURS.match(begins) and path.is_file()  # a pipe gives no byte twice
        if not begins.startswith(_PARQUET) and not is_ours:
            return parse(begins + file.read(), initial=initial)
    if begins.startswith(_PARQUET):
        return beginning(replace(parquet.read(path), origin="parquet"), initial)
    return beginning(jsonl.read(path), initial)


def parse(data: bytes, *, initial: str | None = None) -> History:
    """The history in the bytes of a file that is no Parquet. Raises HistoryError."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if _OURS.match(data):
        return beginning(jsonl.parse(data), initial)
    for origin, belongs, parsed in _KINDS:
        if belongs(data):
            return _history(parsed(data), origin, initial)
    raise _unknown(repr(_text(data)[:40].strip()))


def _history(maps: Maps | Sessions, origin: Origin, initial: str | None) -> History:
    with without_collections():
        history = maps.history(UNSET if initial is None else given(initial))
    return replace(history, origin=origin)


def beginning(history: History, initial: str | None) -> History:
    """One of ours: its texts are of one kind, and a map is by key if there are keys."""
    if initial is None:
        return history
    value, kinds = given(initial), Kinds()
    if not isinstance(value, dict) or not ("txn" in history.names or history.keys() - {None}):
        return history.starting_at(Start(value=kinds.value(value)))
    return history.starting_at(Start(by_key={text(key): kinds.value(each) for key, each in value.items()}))


def given(initial: str) -> Any:
    """A start value that a person wrote, in JSON or EDN. Raises HistoryError."""
    with suppress(*NOT_JSON, UnicodeEncodeError):
        if not is_deep(value := msgspec.json.decode(initial)):
            return value
    with suppress(HistoryError, UnicodeEncodeError):
        initial.encode()  # an argument that is no UTF-8
        forms = edn.read(f"{initial} nil")  # nil keeps a lone list from being unwrapped
        if len(forms.values) == 2 and forms.torn_at is None:
            return forms.values[0]
    raise HistoryError(
        expected="one value in JSON or EDN as what objects held before (--initial)",
        came=repr(initial)[:60],
        attempt="give --initial 0, or --initial '{:x 0, :y 1}' for single keys",
    )


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _unknown(f"bytes that are no text ({error.reason} at byte {error.start})") from error


def _parse_edn(data: bytes) -> Maps:
    text = _text(data)
    forms = edn.read(text)
    torn = None
    if forms.torn_at is not None:
        torn = f"line {edn.line_of(text, forms.torn_at)} was torn off and is left out"
    return Maps(
        forms.values,
        lambda place: edn.line_of(text, forms.starts[place]),
        Header(system="foreign"),
        torn,
        are_flat=True,
    )


def _is_log(text: str) -> bool:
    return jepsen_text.LOG.match(text) is not None or jepsen_text.LINE.search(text) is not None


def _parse_nothing(data: bytes) -> Maps:
    raise HistoryError(
        expected="a history",
        came="an empty file: no operations",
        attempt="check that the file was copied whole",
    )


_KINDS: tuple[tuple[Origin, Callable[[bytes], object], Callable[[bytes], Maps | Sessions]], ...] = (
    ("binary", dbcop.is_bincode, dbcop.from_bincode),
    ("binary", jepsen_store.BEGINS.match, jepsen_store.parse),
    ("text", isolation_text.PLUME.match, lambda data: isolation_text.plume(_text(data))),
    ("text", isolation_text.AWDIT.match, lambda data: isolation_text.awdit(_text(data))),
    ("text", isolation_text.DBCOP.match, lambda data: isolation_text.dbcop(_text(data))),
    ("json", dbcop.JSON.match, dbcop.from_json),
    ("json", porcupine_json.BEGINS.match, porcupine_json.parse),
    ("json", _JSON.match, json_maps.parse),
    ("edn", lambda data: _EMPTY.fullmatch(_text(data)), _parse_nothing),
    ("edn", lambda data: _EDN.match(_text(data)), _parse_edn),
    ("log", lambda data: _is_log(_text(data)), lambda data: jepsen_text.parse(_text(data))),
)


def _unknown(came: str) -> HistoryError:
    return HistoryError(
        expected="a history.jsonl or .parquet of this project, Jepsen's EDN, log or test.jepsen, Porcupine's key-value "
        "file or JSON, elle-cli's JSON, a report of etcd's robustness tests, or a history of Plume, PolySI, AWDIT, "
        "dbcop or Cobra",
        came=came,
        attempt="give one of these",
    )
