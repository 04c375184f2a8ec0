"""Operation maps in JSON, as elle-cli reads them: one array, or an object a line (a comma may end it)."""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.foreign.operation_maps import Maps, no_operations
from checkers.history.history import Header


def parse(data: bytes) -> Maps:
    """The operation maps in such a file. Raises HistoryError."""
    whole, why = _decoded(data)
    if isinstance(whole, dict) and isinstance(whole.get("history"), list):
        whole = whole["history"]
    if isinstance(whole, list):
        return Maps(whole, lambda place: place + 1, Header(system="foreign"))
    if data.count(b"\n", 0, len(data.rstrip())) == 0 and why:
        raise _garbage(data, why, 1)
    return _by_line(data)


def _decoded(data: bytes) -> tuple[Any, str]:
    """The value, or None and why there is none."""
    try:
        return msgspec.json.decode(data), ""
    except NOT_JSON as error:
        return None, str(error)


def _by_line(data: bytes) -> Maps:
    maps: list[Any] = []
    lines: list[int] = []
    torn = None
    texts = data.split(b"\n")
    last = max((number for number, text in enumerate(texts) if text.strip()), default=-1)
    for number, text in enumerate(texts):
        stripped = text.strip().strip(b",")
        if not stripped or stripped in (b"[", b"]"):
            continue
        try:
            maps.append(msgspec.json.decode(stripped.removeprefix(b"[") if not maps else stripped))
        except NOT_JSON as error:
            if number != last or not maps:
                raise _garbage(text, str(error), number + 1) from error
            torn = f"line {number + 1} was torn off and is left out"
        else:
            lines.append(number + 1)
    if not maps:
        raise no_operations("an empty file")
    if torn is None and texts[0].lstrip().startswith(b"[") and not texts[last].rstrip().endswith(b"]"):
        torn = "the array was torn off behind its last operation"
    return Maps(maps, lines.__getitem__, Header(system="foreign"), torn)


def _garbage(text: bytes, why: str, line: int) -> HistoryError:
    return HistoryError(
        expected="an array of operations, or one a line, in JSON",
        came=f"{text[:40].decode('utf-8', errors='replace')!r} ({why})",
        attempt="give the history as elle-cli takes it",
        line=line,
    )
