"""Histories as data frames, out and in: an operation a row, for polars, pandas, DuckDB and all that reads Arrow.

    polars.DataFrame(history)                     # by History.__arrow_c_stream__
    checkers.linearizable(frame)                  # a frame in place of a history
    checkers.read(frame)                          # the history in it

| column | content |
|---|---|
| type | ok, fail or info |
| process, f, key | who asked, for what, about which object |
| value | the answer's if it was ok and had one, else the question's; as JSON text |
| invoke_index, complete_index | places in the order of all events; complete_index is null if no end was recorded |
| invoke_ns, complete_ns | times in nanoseconds |
| node, role, mode, error, phase, wait, transaction | as in `Operation` |
| refusal_observed | whether a refusal observed the state (`History.failed_cas_observes`) |

A frame that is given needs type, process, f, value, invoke_index and complete_index; or a row for each event with type,
process, f and value, as `foreign.operation_maps` has them, in their order. A value column of strings is JSON text, any
other is taken as it stands. What objects held before the first operation is in no frame: see `History.starting_at`.
pyarrow is imported only when one of the functions is called.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.operation import ASKED, Event, Operation, Outcome, Phase

if TYPE_CHECKING:
    from checkers.history.history import History

Arrow = Any  # pyarrow's
_AT_ONCE = 1 << 15
_NUMBERS = ("process", "invoke_index", "complete_index", "invoke_ns", "complete_ns")
_WORDS = ("type", "f", "key", "node", "role", "mode", "error", "phase", "wait", "transaction")
_COLUMNS = (
    *("type", "process", "f", "key", "value", "invoke_index", "complete_index", "invoke_ns", "complete_ns"),
    *("node", "role", "mode", "error", "phase", "wait", "transaction", "refusal_observed"),
)
_OF_OPERATIONS = ("type", "process", "f", "value", "invoke_index", "complete_index")
_OF_EVENTS = ("type", "process", "f", "value")
_TOLD = ("key", "node", "role", "mode", "wait")
_REFUSALS = "refusal_observed"
_MAY_BE_FLOATS = (*_NUMBERS, "index", "time", "time_ns")


def reader(history: History) -> Arrow:
    """A `pyarrow.RecordBatchReader` over the operations in order of invocation; some objects are made at a time."""
    import pyarrow

    kinds = dict.fromkeys(_NUMBERS, pyarrow.int64()) | {_REFUSALS: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in _COLUMNS])
    observes = history.failed_cas_observes

    def batches() -> Iterator[Arrow]:
        for some in _some(history):
            fields = {name: [getattr(each, name) for each in some] for name in (*_NUMBERS, *_WORDS)}
            values = [
                None if each.value is None else msgspec.json.encode(each.value).decode() for each in some
            ]
            told = {**fields, "value": values, _REFUSALS: [observes] * len(some)}
            yield pyarrow.RecordBatch.from_pydict(told, schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def _some(history: History) -> Iterator[list[Operation]]:
    import numpy

    from checkers.history.as_columns import operations_at

    for first in range(0, len(history.operations), _AT_ONCE):
        end = min(first + _AT_ONCE, len(history.operations))
        yield [*operations_at(history, numpy.arange(first, end))]


def history_in(source: Any) -> Any:
    """The history in a file or a data frame; anything else as it is. Raises HistoryError, OSError."""
    if isinstance(source, str | os.PathLike):
        from checkers.history import foreign

        return foreign.read(Path(source))
    return history_of(source) if is_frame(source) else source


def is_frame(source: object) -> bool:
    """Whether it is a table for all that reads Arrow."""
    return hasattr(source, "__arrow_c_stream__") and not hasattr(source, "operations")


def history_of(frame: Any) -> History:
    """The history in a frame. Raises HistoryError if its columns, or its rows, make none."""
    import pyarrow

    table = pyarrow.table(frame)
    names = set(table.column_names)
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
    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    is_text |= pyarrow.types.is_string_view(kind) or pyarrow.types.is_dictionary(kind)
    rows: list[dict[str, Any]] = table.to_pylist()
    for place, row in enumerate(rows):
        for name in _MAY_BE_FLOATS:  # pandas has no whole numbers where some are missing
            if isinstance(number := row.get(name), float):
                row[name] = int(number) if number.is_integer() else None
        if is_text and row["value"] is not None:
            try:
                row["value"] = msgspec.json.decode(row["value"])
            except msgspec.DecodeError as error:
                raise HistoryError(
                    expected="JSON text in the column value",
                    came=f"{row['value']!r:.60} in row {place}",
                    attempt="write each value with json.dumps, or give a column of numbers or lists",
                ) from error
    return rows


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    type: Outcome
    process: int
    f: str
    invoke_index: int
    complete_index: int | None = None
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


def _of_operations(rows: list[dict[str, Any]]) -> History:
    from checkers.history.history import OBSERVING, Header, History

    events: list[Event] = []
    observes = False
    for place, each in enumerate(rows):
        try:
            row = msgspec.convert(each, _Row)
        except msgspec.ValidationError as error:
            raise HistoryError(
                expected="an operation in each row of the frame",
                came=f"{error} in row {place}",
                attempt="checkers.history.frames says what each column holds",
            ) from error
        events += _events(row)
        observes |= row.refusal_observed is True
    header = Header(system="frame", extra={OBSERVING: True} if observes else {})
    return replace(History.of(header, sorted(events, key=_index), first_line=0), origin="json")


def _events(row: _Row) -> list[Event]:
    same: dict[str, Any] = {name: getattr(row, name) for name in ("process", "f", *_TOLD)}
    same["phase"] = row.phase or "load"
    asked = row.value if row.type != "ok" else _asked(row.f, row.value)
    begun_ns = row.invoke_index if row.invoke_ns is None else row.invoke_ns
    events = [Event(index=row.invoke_index, time_ns=begun_ns, type="invoke", value=asked, **same)]
    if row.complete_index is not None:
        ended_ns = row.complete_index if row.complete_ns is None else row.complete_ns
        told: dict[str, Any] = {"error": row.error, "transaction": row.transaction}
        events.append(
            Event(index=row.complete_index, time_ns=ended_ns, type=row.type, value=row.value, **same, **told)
        )
    return events


def _index(event: Event) -> int:
    return event.index


def _asked(f: str, value: Any) -> Any:
    """What was asked, as far as an answer tells."""
    if f in ASKED:
        return value
    if f == "txn" and isinstance(value, list):
        return [[*micro[:2], None] if micro[0] in ("r", "read") else micro for micro in value]
    return None


def _of_events(rows: list[dict[str, Any]]) -> History:
    from checkers.history.foreign.operation_maps import Maps
    from checkers.history.history import Header

    maps: list[Mapping[str, Any]] = []
    for row in rows:
        told = {name: value for name, value in row.items() if value is not None}
        if "actor" in told:
            told.setdefault("process", told["actor"])
        if "time_ns" in told:
            told.setdefault("time", told["time_ns"])
        maps.append(told)
    return replace(Maps(maps, lambda place: place, Header(system="frame")).history(), origin="json")
