"""history.parquet: the columnar copy of a record, for whoever reads many runs at once.

One row an event. Values are JSON text, since what they hold depends on f; a client's number is in `process`,
the word of everybody else in `actor` (clients: "client"). The header lies in the file's metadata as the JSON
line that it is in history.jsonl. pyarrow is imported only when one of the two functions is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.history import FORMAT, History
from checkers.history.jsonl import header_line, parse_header
from checkers.history.operation import Event

_METADATA = FORMAT.encode()
_CLIENT = "client"
_WORDS = ("type", "actor", "f", "key", "node", "role", "mode", "error", "phase", "wait")


def _schema() -> Any:
    import pyarrow

    integers = [(name, pyarrow.int64()) for name in ("index", "time_ns", "process")]
    word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    words = [(name, word) for name in _WORDS]
    return pyarrow.schema([*integers, *words, ("value", pyarrow.string())])


def write(path: Path, history: History) -> None:
    """Write the events and the header of `history`; an older copy is replaced."""
    import pyarrow
    import pyarrow.parquet

    schema = _schema()
    table = pyarrow.table(_columns(history.events), schema=schema)
    table = table.replace_schema_metadata({_METADATA: header_line(history.header)})
    pyarrow.parquet.write_table(table, path, compression="zstd")


def read(path: Path) -> History:
    """Read such a copy back and pair it. Raises HistoryError if it is not one."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise _not_ours(str(error)) from error
    metadata = table.schema.metadata or {}
    if _METADATA not in metadata:
        raise _not_ours("a table without that metadata")
    rows = table.to_pylist()
    return History.of(parse_header(metadata[_METADATA]), [_event(row) for row in rows])


def read_keys(path: Path, keys: Sequence[str]) -> History:
    """The operations on these keys alone; events keep the indexes that they have in the file. Raises as `read`."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path, filters=[("key", "in", list(keys))])
    except pyarrow.ArrowInvalid as error:
        raise _not_ours(str(error)) from error
    metadata = pyarrow.parquet.read_schema(path).metadata or {}
    if _METADATA not in metadata:
        raise _not_ours("a table without that metadata")
    rows = sorted(table.to_pylist(), key=lambda row: int(row["index"]))
    return History.of(parse_header(metadata[_METADATA]), [_event(row) for row in rows])


def _columns(events: Sequence[Event]) -> dict[str, list[Any]]:
    same = ("index", "time_ns", "type", "f", "key", "node", "role", "mode", "error", "phase", "wait")
    columns: dict[str, list[Any]] = {name: [getattr(event, name) for event in events] for name in same}
    processes = [event.process for event in events]
    columns["process"] = [process if isinstance(process, int) else None for process in processes]
    columns["actor"] = [_CLIENT if isinstance(process, int) else process for process in processes]
    columns["value"] = [
        None if event.value is None else msgspec.json.encode(event.value).decode() for event in events
    ]
    return columns


def _event(row: dict[str, Any]) -> Event:
    value = row["value"]
    fields: dict[str, Any] = {  # columns that a later version added are not there
        name: row.get(name) for name in Event.__struct_fields__ if name not in ("process", "value")
    }
    return Event(
        **fields,
        process=row["actor"] if row["process"] is None else row["process"],
        value=None if value is None else msgspec.json.decode(value),
    )


def _not_ours(came: str) -> HistoryError:
    return HistoryError(
        expected=f"a parquet file with metadata {FORMAT!r}",
        came=came,
        attempt="read the history.jsonl beside it",
    )
