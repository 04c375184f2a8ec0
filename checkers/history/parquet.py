"""history.parquet: the columnar copy of a record, for tools that read many runs at once.

One row an event. Values are JSON text, since what they hold depends on f; a client's number is in `process`,
the name of every other process in `actor` (clients: "client"). The header lies in the file's metadata as the JSON
line that it is in history.jsonl, and beside it what a torn record has lost. pyarrow is imported only when one of the
functions is called.

Every reader notices by the seal (`checkers.history.sealed_parquet`) that a file has changed. Files of earlier versions,
and of other tools, have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec

from checkers.compiled import why_plain
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.history import FORMAT, Header, History
from checkers.history.jsonl import header_line, parse_header
from checkers.history.nesting import is_deep, too_deep
from checkers.history.operation import Event
from checkers.history.sealed_parquet import SEALED, Changed, opened_sealed, seal
from checkers.history.stored import StoredEvents, without_collections

_METADATA = FORMAT.encode()
_TORN = b"qsync-torn"
_CLIENT = "client"
_AT_ONCE = 1 << 15
"""Events that are turned into columns at once, a part of a row group: their Python lists take much more memory than the
columns."""
_ROW_GROUP = 1 << 18  # events
LARGE = 20_000
"""Events from which on a file is read as columns; loading the code for that takes as long as reading so many."""
_WORDS = ("type", "actor", "f", "key", "node", "role", "mode", "error", "phase", "wait")
_NEEDED = ("index", "time_ns", "process", "type", "actor", "f", "key", "value")
"""Columns of the files of all versions."""


def schema() -> Any:
    """The columns of such a file, without its metadata."""
    import pyarrow

    integers = [(name, pyarrow.int64()) for name in ("index", "time_ns", "process")]
    word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    words = [(name, word) for name in _WORDS]
    texts = [(name, pyarrow.string()) for name in ("transaction", "value")]
    return pyarrow.schema([*integers, *words, *texts])


def write(path: Path, history: History) -> None:
    """Write the events and the header of `history`; an older copy is replaced."""
    import pyarrow
    import pyarrow.parquet

    torn = {} if history.torn is None else {_TORN: history.torn.encode()}
    columns = schema().with_metadata({_METADATA: header_line(history.header), **SEALED, **torn})
    options: Any = {"compression": "zstd", "write_page_checksum": True}
    # Opened here: pyarrow takes no path that is not UTF-8.
    with (
        path.open("wb") as opened,
        without_collections(),
        pyarrow.parquet.ParquetWriter(opened, columns, **options) as file,
    ):
        for table in _row_groups(_tables(history.events, columns)):
            file.write_table(table, row_group_size=_ROW_GROUP)
    pyarrow.default_memory_pool().release_unused()
    seal(path)


def read(path: Path) -> History:
    """Read such a copy back and pair it. Raises HistoryError if it is not one, or has changed since it was written.

    Of a large one the events and operations are `checkers.history.stored`.
    """
    with damage_refused(path):
        file = opened(path)
        header, torn = _header(path, file.schema_arrow), torn_of(file.schema_arrow)
        if file.metadata.num_rows >= LARGE and not why_plain():
            from checkers.history import tables

            history = tables.read(file, header, _events, lambda: damage_refused(path))
            if history is not None:
                return replace(history, torn=torn)
        with without_collections():
            events = _events(file.read())
            if events and (events[0].index, events[-1].index) != (0, len(events) - 1):
                raise _damaged(path, "rows are missing")
            return History.of(header, events, torn=torn)


def read_keys(path: Path, keys: Collection[str | None]) -> History:
    """The operations on these keys alone (None: on no key); events keep the indexes that they have in the file.

    Raises HistoryError as `read`, but for an answer without a key to which no operation on these keys is open: such an
    answer belongs to another key.
    """
    import pyarrow.dataset
    import pyarrow.parquet

    with damage_refused(path):
        about = opened(path).schema_arrow
        header = _header(path, about)
        key, type_, process = (pyarrow.dataset.field(name) for name in ("key", "type", "process"))
        is_on_keys = key.isin(pyarrow.array(keys, pyarrow.string()))
        may_be = is_on_keys | (key.is_null() & (type_ != "invoke"))
        table = pyarrow.parquet.read_table(
            path, filters=process.is_valid() & may_be, page_checksum_verification=True
        )
        return History.of(header, list(_on(keys, _events(table.sort_by("index")))), torn=torn_of(about))


def _on(keys: Collection[str | None], events: Sequence[Event]) -> Iterator[Event]:
    """The events of the operations on these keys. A completion may leave out the key of its invocation.

    `events`: all invocations on these keys, and all completions that are on these keys or on none.
    """
    running: set[int | str] = set()
    for event in events:
        if event.type == "invoke":
            running.add(event.process)
            yield event
        elif event.process in running or event.key is not None:
            running.discard(event.process)
            yield event


def read_others(path: Path) -> History:
    """All but the clients' events; events keep the indexes that they have in the file. Raises as `read`."""
    with damage_refused(path):
        file = opened(path)
        header = _header(path, file.schema_arrow)
        events: list[Event] = []
        for group in range(file.num_row_groups):
            if file.read_row_group(group, columns=["process"])["process"].null_count:
                table = file.read_row_group(group)
                events += _events(table.filter(table["process"].is_null()))
        return History.of(header, events, torn=torn_of(file.schema_arrow))


def opened(path: Path, *, read_dictionary: Sequence[str] = (), **options: Any) -> Any:
    """A `pyarrow.parquet.ParquetFile` with verified content; `options` are passed on.

    `read_dictionary`: the columns of words. Files of earlier versions do not have all of them.
    Raises HistoryError, which names the file, if it has changed since it was written; OSError if there is none.
    """
    import pyarrow.parquet

    with damage_refused(path):
        file = opened_sealed(path, **options)
        if words := [name for name in read_dictionary if name in file.schema_arrow.names]:
            options.update(metadata=file.metadata, page_checksum_verification=True)
            file = pyarrow.parquet.ParquetFile(path, read_dictionary=words, **options)
        return file


@contextmanager
def damage_refused(path: Path) -> Iterator[None]:
    """HistoryError for what a changed file without a seal makes of pyarrow and of the decoding of its texts.

    Errors of the system stay an OSError.
    """
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, *NOT_JSON, Changed, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, str(error)) from error


def _header(path: Path, schema: Any) -> Header:
    metadata = schema.metadata or {}
    if _METADATA not in metadata:
        raise _damaged(path, "a table without that metadata")
    if missing := [name for name in _NEEDED if name not in schema.names]:
        raise _damaged(path, f"a table without the columns {', '.join(missing)}")
    texts = [field for field in schema if field.name in (*_WORDS, "transaction", "value")]
    if odd := [field.name for field in texts if not _is_text(field.type)]:
        raise _damaged(path, f"a table without texts in the columns {', '.join(odd)}")
    return parse_header(metadata[_METADATA])


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


def torn_of(schema: Any) -> str | None:
    """The loss of the record, as the schema of its file tells it; None if nothing was lost."""
    torn: bytes | None = schema.metadata.get(_TORN)
    return None if torn is None else torn.decode()


def _row_groups(tables: Iterator[Any]) -> Iterator[Any]:
    """The same rows, a table for each row group. No table has rows of two row groups."""
    group: list[Any] = []
    for table in tables:
        group.append(table)
        rows = sum(map(len, group))
        assert rows <= _ROW_GROUP, rows
        if rows == _ROW_GROUP:
            yield _joined(group)
    if group:
        yield _joined(group)


def _joined(tables: list[Any]) -> Any:
    """The tables as one. `tables` is emptied, to give their memory back."""
    import pyarrow

    together = pyarrow.concat_tables(tables).unify_dictionaries()
    tables.clear()
    return together.combine_chunks()


def _tables(events: Sequence[Event], schema: Any) -> Iterator[Any]:
    """The events as tables, a few at a time, none of which is of two row groups."""
    if isinstance(events, StoredEvents) and events.scan is not None:
        from checkers.history import rows

        yield from rows.tables(events.scan(), len(events), schema, _ROW_GROUP, _CLIENT)
        return
    import pyarrow

    rest = iter(events)
    while batch := list(islice(rest, _AT_ONCE)):
        yield pyarrow.table(_columns(batch), schema=schema)


def _columns(events: Sequence[Event]) -> dict[str, list[Any]]:
    same = {"index", "time_ns", "transaction", *_WORDS} - {"actor"}
    columns: dict[str, list[Any]] = {name: [getattr(event, name) for event in events] for name in same}
    processes = [event.process for event in events]
    columns["process"] = [process if isinstance(process, int) else None for process in processes]
    columns["actor"] = [_CLIENT if isinstance(process, int) else process for process in processes]
    columns["value"] = [
        None if event.value is None else msgspec.json.encode(event.value).decode() for event in events
    ]
    return columns


def _events(table: Any) -> list[Event]:
    """The events of some rows. ValidationError if a row is none, or they are not in their order."""
    events = [_event(row) for row in table.to_pylist()]
    for before, event in pairwise(events):
        if event.index <= before.index or event.time_ns < before.time_ns:
            came = f"event {event.index} at {event.time_ns} ns behind event {before.index} at {before.time_ns} ns"
            raise msgspec.ValidationError(came)
    return events


def _event(row: dict[str, Any]) -> Event:
    fields = {name: word for name, word in row.items() if word is not None}
    fields.setdefault("process", fields.get("actor"))
    if "value" in fields:
        fields["value"] = msgspec.json.decode(fields["value"])
    event = msgspec.convert(fields, Event)
    if is_deep(event.value):
        raise too_deep(event.index + 2)  # its line in history.jsonl
    return event


def _damaged(path: Path, why: str) -> HistoryError:
    return HistoryError(
        expected=f"a parquet file with metadata {FORMAT!r}, as it was written",
        came=f"{path.name}: {' '.join(why.split())}",
        attempt="read the history.jsonl beside it",
    )
