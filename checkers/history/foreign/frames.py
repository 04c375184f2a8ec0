"""Data frames that are given in place of a history: `checkers.history.frames` has their columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import isnan
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.foreign.operation_maps import Maps, no_operations, paired
from checkers.history.foreign.recognized import read
from checkers.history.frames import NUMBERS
from checkers.history.history import OBSERVING, TIMELESS, Header, History
from checkers.history.nesting import is_deep, too_deep
from checkers.history.operation import ASKED, Event, Outcome, Phase

Arrow = Any  # pyarrow's
_OF_OPERATIONS = ("type", "process", "f", "value", "invoke_index", "complete_index")
_OF_EVENTS = ("type", "process", "f", "value")
_WORDS = ("key", "node", "role", "mode", "wait")
_MAY_BE_FLOATS = (*NUMBERS, "index", "time", "time_ns")


def history_in(source: Any) -> Any:
    """The history in a file or a data frame; anything else as it is. Raises HistoryError, OSError."""
    if isinstance(source, str | os.PathLike):
        return read(Path(source))
    return history_of(source) if is_frame(source) else source


def is_frame(source: object) -> bool:
    """Whether it is a table for every reader of Arrow."""
    return hasattr(source, "__arrow_c_stream__") and not hasattr(source, "operations")


def history_of(frame: Any) -> History:
    """The history in a frame. Raises HistoryError if its columns, or its rows, make none."""
    import pyarrow

    table = pyarrow.table(frame)
    names = {name for name in table.column_names if table.column_names.count(name) == 1}
    if names >= {*_OF_OPERATIONS}:
        return _of_operations(_rows(table))
    if names >= {*_OF_EVENTS}:
        return _of_events(_rows(table))
    raise HistoryError(
        expected=f"a frame with the columns {', '.join(_OF_OPERATIONS)}, or {', '.join(_OF_EVENTS)}",
        came=f"the columns {', '.join(table.column_names)[:200]}",
        attempt="rename the columns; checkers.history.frames says what each holds",
    )


def _rows(table: Arrow) -> list[dict[str, Any]]:
    import pyarrow

    kind = table.schema.field("value").type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    is_text |= pyarrow.types.is_string_view(kind)
    rows: list[dict[str, Any]] = table.to_pylist()
    for place, row in enumerate(rows):
        for name in _MAY_BE_FLOATS:  # pandas has no whole numbers where some are missing
            if isinstance(number := row.get(name), float):
                row[name] = None if isnan(number) else int(number) if number.is_integer() else number
        if is_text and row["value"] is not None:
            try:
                row["value"] = msgspec.json.decode(row["value"])
            except NOT_JSON as error:
                raise HistoryError(
                    expected="JSON text in the column value",
                    came=f"{row['value']!r:.60} in row {place}",
                    attempt="write each value with json.dumps, or give a column of numbers or lists",
                ) from error
            if is_deep(row["value"]):
                raise too_deep(place)
    return rows


_Index = Annotated[int, msgspec.Meta(ge=0)]


class _OperationRow(msgspec.Struct, frozen=True, kw_only=True):
    type: Outcome
    process: int
    f: str
    invoke_index: _Index
    complete_index: _Index | None = None
    invoke_ns: int | None = None
    complete_ns: int | None = None
    key: str | None = None
    value: Any = None
    node: str | None = None
    role: str | None = None
    mode: str | None = None
    error: str | None = None
    phase: Phase | None = None
    wait: str | None = None
    transaction: str | None = None
    refusal_observed: bool | None = None
    real_time: bool | None = None


def _of_operations(rows: list[dict[str, Any]]) -> History:
    if not rows:
        raise no_operations("a frame without rows")
    events: list[Event] = []
    extra: dict[str, Any] = {}
    for place, cells in enumerate(rows):
        try:
            row = msgspec.convert(cells, _OperationRow)
        except msgspec.ValidationError as error:
            raise _no_operation(f"{error} in row {place}") from error
        if row.type != "info" and row.complete_index is None:
            raise _no_operation(f"type {row.type} without a complete_index in row {place}")
        events += _events(row)
        if row.refusal_observed:
            extra[OBSERVING] = True
        if row.real_time is False:
            extra[TIMELESS] = True
    events.sort(key=attrgetter("index"))
    for one, other in pairwise(events):
        if one.index == other.index:
            raise _no_operation(f"two events with index {one.index}")
    return replace(paired(Header(system="frame", extra=extra), events), origin="json")


def _no_operation(came: str) -> HistoryError:
    return HistoryError(
        expected="an operation in each row of the frame, with places in one order of all events",
        came=came,
        attempt="checkers.history.frames says what each column holds",
    )


def _events(row: _OperationRow) -> list[Event]:
    same: dict[str, Any] = {name: getattr(row, name) for name in ("process", "f", *_WORDS)}
    same["phase"] = row.phase or "load"
    asked = row.value if row.type != "ok" else _asked(row.f, row.value)
    begun_ns = row.invoke_index if row.invoke_ns is None else row.invoke_ns
    events = [Event(index=row.invoke_index, time_ns=begun_ns, type="invoke", value=asked, **same)]
    if row.complete_index is not None:
        ended_ns = row.complete_index if row.complete_ns is None else row.complete_ns
        outcome: dict[str, Any] = {"error": row.error, "transaction": row.transaction}
        events.append(
            Event(
                index=row.complete_index, time_ns=ended_ns, type=row.type, value=row.value, **same, **outcome
            )
        )
    return events


def _asked(f: str, value: Any) -> Any:
    """The value of the invocation, as far as the answer shows it."""
    if f in ASKED:
        return value
    if f == "txn" and isinstance(value, list):
        return [
            [*micro[:2], None] if isinstance(micro, list) and micro[:1] in (["r"], ["read"]) else micro
            for micro in value
        ]
    return None


def _of_events(rows: list[dict[str, Any]]) -> History:
    maps: list[Mapping[str, Any]] = []
    for row in rows:
        fields = {name: value for name, value in row.items() if value is not None}
        if "actor" in fields:
            fields.setdefault("process", fields["actor"])
        if "time_ns" in fields:
            fields.setdefault("time", fields["time_ns"])
        maps.append(fields)
    return replace(Maps(maps, lambda place: place, Header(system="frame")).history(), origin="json")
