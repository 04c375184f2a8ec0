"""history.jsonl: the record as it is written while the run goes on.

The first line is the header, every other line one event, in the order in which things happened. The lines of a long
run lie in segments (`checkers.history.segments`). A process that is killed while writing leaves a torn last line: it is
dropped and reported. A line in the middle that cannot be read means that something else is wrong with the file: it is
refused, with its number.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from checkers.compiled import stays_plain, why_plain
from checkers.history import line_kernels, segments
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.history import FORMAT, MOST, VERSION, Header, History
from checkers.history.nesting import DEPTH_MAX, is_deep, too_deep
from checkers.history.operation import Event, EventType, Phase, Process
from checkers.history.stored import without_collections

_KNOWN = frozenset(Header.__struct_fields__) - {"extra"}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode

LARGE = 8 << 20
"""Bytes that are read as objects before the code that reads columns is loaded, which takes as long. Files of less than
half of it are always read as objects."""
HEADER_MAX = 1 << 20  # bytes


def header_line(header: Header) -> bytes:
    """The header as the file's first line, without its newline."""
    fields = {name: getattr(header, name) for name in Header.__struct_fields__ if name != "extra"}
    return _encode({"format": FORMAT, "version": VERSION, **fields, **header.extra})


def parse_header(line: bytes) -> Header:
    """The header of a file's first line. Raises HistoryError if it is not one that this version can read."""
    try:
        fields = msgspec.json.decode(line)
    except NOT_JSON as error:
        raise _no_header(f"{_shortened(line)} ({error})") from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise _no_header(_shortened(line))
    if fields.get("version") != VERSION:
        raise HistoryError(
            expected=f"version {VERSION} of the format",
            came=f"version {fields.get('version')!r}",
            attempt="read it with the release that wrote it, or a newer one",
            line=1,
        )
    extra = {name: value for name, value in fields.items() if name not in _KNOWN | {"format", "version"}}
    known = {name: value for name, value in fields.items() if name in _KNOWN and value is not None}
    try:
        return msgspec.convert({**known, "extra": extra}, Header)
    except msgspec.ValidationError as error:
        raise _no_header(str(error)) from error


class Writer:
    """Appends events. The file is buffered: what a kill leaves behind is a prefix of the record, up to
    `flush`.
    """

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self._file = file
        self._write = file.write
        self._index = 0
        self.time_ns = 0
        """Of the last event."""
        file.write(header_line(header) + b"\n")

    @classmethod
    def create(cls, path: Path, header: Header) -> Writer:
        """A new file; one that is there already is never overwritten (FileExistsError)."""
        return cls(path.open("xb", buffering=1 << 18), header)

    def record(
        self,
        type_: EventType,
        process: Process,
        f: str,
        /,
        *,
        time_ns: int,
        key: str | None = None,
        value: Any = None,
        node: str | None = None,
        role: str | None = None,
        mode: str | None = None,
        error: str | None = None,
        phase: Phase = "load",
        wait: str | None = None,
        transaction: str | None = None,
    ) -> Event:
        """Append one event with the next index. `time_ns` may not be less than that of the one before."""
        assert time_ns >= self.time_ns, (time_ns, self.time_ns)
        event = Event(
            index=self._index,
            time_ns=time_ns,
            type=type_,
            process=process,
            f=f,
            key=key,
            value=value,
            node=node,
            role=role,
            mode=mode,
            error=error,
            phase=phase,
            wait=wait,
            transaction=transaction,
        )
        self._write(_encode(event) + b"\n")
        self._index += 1
        self.time_ns = time_ns
        return event

    def flush(self) -> None:
        """Hand what was appended to the operating system, so that a kill of this process cannot lose it."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write(path: Path, header: Header, events: Iterable[Event]) -> None:
    """Write a whole record at once. The events keep the indexes and times that they have."""
    with path.open("xb") as file:
        file.write(header_line(header) + b"\n")
        file.writelines(_encode(event) + b"\n" for event in events)


def read(path: Path) -> History:
    """Read and pair a record. Raises HistoryError, or OSError if the file cannot be read at all.

    Of a large one the events and operations are `checkers.history.stored`.
    """
    record = segments.record(path)
    stored = _stored(record)
    return parse(record.read(0, record.size)) if stored is None else stored


def read_stored(path: Path) -> History | None:
    """The history of a large record that can be read as columns; None for any other. Raises as `read`."""
    return _stored(segments.record(path))


def _stored(record: segments.Record) -> History | None:
    if record.size < LARGE // 2 or stays_plain(line_kernels, record.size, LARGE - 1) or why_plain():
        return None
    line = record.read(0, HEADER_MAX)
    line = line[: line.find(b"\n") + 1]
    if not line.startswith(b"{"):
        return None
    from checkers.history import lines

    with without_collections():
        return lines.read(record, len(line), parse_header(line[:-1]), _event, _torn)


def parse(data: bytes) -> History:
    """The history in the bytes of a file. Raises HistoryError."""
    if not data.strip():
        raise HistoryError(
            expected="a header and at least one line",
            came="an empty file: no operations",
            attempt="run again: nothing was recorded",
        )
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
        whole = True
    else:
        whole = False
    header = parse_header(lines[0])
    torn = None if whole or len(lines) == 1 else _torn(lines[-1], len(lines))
    if torn is not None:
        lines.pop()
    with without_collections():
        return History.of(header, _events(lines), torn=torn)


def _events(lines: list[bytes]) -> list[Event]:
    events: list[Event] = []
    time_ns = 0
    for index in range(len(lines) - 1):
        event = _event(lines[index + 1], index, time_ns)
        time_ns = event.time_ns
        events.append(event)
    return events


def _event(line: bytes, index: int, time_ns: int) -> Event:
    """The event of a line, which must have this index and be no earlier than this."""
    try:
        event = _decode(line)
    except NOT_JSON as error:
        raise _garbage(line, str(error), index + 2) from error
    if line.count(b"[") + line.count(b"{") > DEPTH_MAX and is_deep(event.value):
        raise too_deep(index + 2)
    if event.index != index:
        raise _out_of_line(f"index {index}", f"index {event.index}", index + 2)
    if not time_ns <= event.time_ns < MOST:
        expected = f"a time_ns of at least {time_ns}{' that 64 bits hold' * (event.time_ns >= MOST)}"
        raise _out_of_line(expected, f"time_ns {event.time_ns}", index + 2)
    return event


def _torn(line: bytes, number: int) -> str | None:
    """The missing part of the last line; None if it lacks only its newline. A cut JSON object is never a whole one."""
    try:
        msgspec.json.decode(line)
    except NOT_JSON:
        return f"line {number} was torn off after {len(line)} bytes and is left out"
    return None


def _shortened(line: bytes) -> str:
    text = line[:60].decode("utf-8", errors="replace")
    return repr(text + "…" if len(line) > 60 else text)


def _no_header(came: str) -> HistoryError:
    return HistoryError(
        expected=f'a header {{"format":"{FORMAT}","version":{VERSION},…}}',
        came=came,
        attempt="give the history.jsonl of a run's folder, with the folder history beside it if there is one",
        line=1,
    )


def _garbage(line: bytes, why: str, number: int) -> HistoryError:
    return HistoryError(
        expected="an event as a JSON object",
        came=f"{_shortened(line)} ({why})",
        attempt="restore the file from a copy, or cut it before this line to check what came first",
        line=number,
    )


def _out_of_line(expected: str, came: str, number: int) -> HistoryError:
    return HistoryError(
        expected=expected,
        came=came,
        attempt="a line was lost, moved or added: restore the file from a copy",
        line=number,
    )
