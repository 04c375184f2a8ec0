"""A large history.jsonl as columns, read in pieces: the same history as `jsonl.parse` gives, or the same error.

The record stays open for as long as the history is there, so that it can give the objects that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy

from checkers.compiled import load
from checkers.history import line_kernels
from checkers.history.columns import VALUES_MAX, Events, paired
from checkers.history.errors import HistoryError
from checkers.history.history import Header, History, operations_of
from checkers.history.line_kernels import ABSENT, FINAL, LINE, NEW_WORD, OTHER, PAIR, PLAIN, POSITION, ROWS
from checkers.history.operation import Event, Operation
from checkers.history.operation import paired as paired_events
from checkers.history.segments import Record
from checkers.history.stored import StoredEvents, StoredOperations

Array = Any  # numpy's
Decode = Callable[[bytes, int, int], Event]
"""The event in a line, of this index and not before this time; HistoryError if it is not one."""
Torn = Callable[[bytes, int], str | None]
"""What is missing of the last line, of this number, which has no newline; None if that is all it lacks."""
PIECE_BYTES = 4 << 20
SHORTEST = 50  # bytes that an event's line has at least
ODD_MAX = 1_000  # clients' lines, beside one in sixteen, that the kernel may leave to us before columns are given up
NUMBERS = ("index", "time_ns", "process", "old", "new")
COLUMNS = ("index", "time_ns", "process", "info", "f", "key", "node", "role", "mode", "error", "old", "new")
TYPES = ("invoke", "ok", "fail", "info")


def read(record: Record, begin: int, header: Header, decode: Decode, torn_of: Torn) -> History | None:
    """The history in a record whose first event begins at `begin`. None if its operations are not columns' matter.

    Raises HistoryError of a line; if operations do not add up, the answer is None too.
    """
    reader = _Reader(record, begin, decode, torn_of)
    if not reader.read():
        return None
    events, lines = reader.events(), reader.lines()
    operations = paired(events)
    if operations is None:
        return None
    decoder = msgspec.json.Decoder(Event)

    def decoded(line: bytes) -> Event:
        try:
            return decoder.decode(line)
        except msgspec.DecodeError as error:
            raise HistoryError(
                expected="the lines that were read before",
                came=f"others ({error})",
                attempt="judge the file again: it has changed meanwhile",
            ) from error

    def walk() -> Iterator[Event]:
        return map(decoded, lines.all())

    stored = StoredEvents(
        len(lines), walk, tuple(reader.others), lambda index: decoded(lines.at(index)), lines.offsets
    )

    def some(places: Array) -> list[Operation]:
        found = []
        for invoke, complete in zip(
            operations.invoke[places].tolist(), operations.complete[places].tolist(), strict=True
        ):
            ended = None if complete < 0 else decoded(lines.at(complete))
            found.append(paired_events(decoded(lines.at(invoke)), ended))
        return found

    return History.stored(
        header,
        stored,
        StoredOperations(operations, lambda: operations_of(stored, 2), some),
        torn=reader.torn,
    )


class Lines:
    """The lines of a record, by number; line 0 is that of event 0."""

    def __init__(self, record: Record, offsets: Array) -> None:
        self._record = record
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def offsets(self) -> Array:
        """Where each line begins, in bytes, and where the last one ends."""
        return self._offsets

    def at(self, line: int) -> bytes:
        begin, end = int(self._offsets[line]), int(self._offsets[line + 1])
        return self._record.read(begin, end - begin).rstrip(b"\n")

    def all(self) -> Iterator[bytes]:
        begin = 0
        offsets = self._offsets
        while begin < len(self):
            end = int(numpy.searchsorted(offsets, offsets[begin] + PIECE_BYTES, side="right")) - 1
            end = min(max(end, begin + 1), len(self))
            piece = self._record.read(int(offsets[begin]), int(offsets[end] - offsets[begin]))
            yield from piece.split(b"\n")[: end - begin]
            begin = end


class _Reader:
    """One walk over the lines: what the kernel fills, and the lines that it leaves to us."""

    def __init__(self, record: Record, begin: int, decode: Decode, torn_of: Torn) -> None:
        self._record = record
        self._next = begin  # where the next piece begins
        self._decode = decode
        self._torn_of = torn_of
        most = (record.size - begin) // SHORTEST + 2
        self._kernels = load(line_kernels)
        self._regs = numpy.zeros(line_kernels.REGS, dtype=numpy.int64)
        self._offsets = numpy.empty(most + 1, dtype=numpy.int64)
        self._columns = {  # room that no line fills is never touched, and so takes no memory
            name: numpy.empty(most, dtype=numpy.int64 if name in NUMBERS else numpy.int32) for name in COLUMNS
        }
        self._buffer = bytearray(PIECE_BYTES)
        self._starts = numpy.zeros(1 << 12, dtype=numpy.int64)
        self._pool = numpy.zeros(1 << 16, dtype=numpy.uint8)
        self._table = numpy.full(1 << 13, -1, dtype=numpy.int64)
        self._regs[line_kernels.WORDS] = 1
        self._odd = 0
        self.others: list[Event] = []
        self.torn: str | None = None

    def read(self) -> bool:
        """Read all lines; whether that was worth it. Raises HistoryError."""
        while size := self._piece():
            data = numpy.frombuffer(self._buffer, dtype=numpy.uint8, count=size)
            self._regs[POSITION] = 0
            while (answer := self._read_lines(data)) != line_kernels.DONE:
                if answer == NEW_WORD:
                    self._grow(0)
                    continue
                at = int(self._regs[POSITION])
                end = self._buffer.index(b"\n", at)
                if not self._take(bytes(self._buffer[at:end]), self._next + at):
                    return False
                self._regs[POSITION] = end + 1
            self._next += size
        return self._take_last()

    def events(self) -> Events:
        """The clients' events."""
        count = int(self._regs[ROWS])
        columns = {name: column[:count] for name, column in self._columns.items()}
        return Events(**columns, words=self._words())

    def lines(self) -> Lines:
        """All lines, clients' or not."""
        return Lines(self._record, self._offsets[: int(self._regs[LINE]) + 1].copy())

    def _words(self) -> list[str | None]:
        count = int(self._regs[line_kernels.WORDS])
        text, starts = self._pool.tobytes(), self._starts[: count + 1].tolist()
        named = (text[starts[word] : starts[word + 1]] for word in range(1, count))
        return [None, *(each.decode("utf-8", "surrogatepass") for each in named)]

    def _piece(self) -> int:
        """Read whole lines from `_next` on into the buffer, at least one if there is one. Their bytes; 0 at the end."""
        while True:
            size = self._record.into(self._buffer, self._next)
            end = self._buffer.rfind(b"\n", 0, size) + 1
            if end or size < len(self._buffer):
                return end
            self._buffer = bytearray(4 * len(self._buffer))

    def _read_lines(self, data: Array) -> int:
        answer: int = self._kernels.read_lines(
            data, len(data), self._next, self._regs, self._offsets, *self._columns.values(), self._table, self._pool,
            self._starts,
        )  # fmt: skip
        return answer

    def _take_last(self) -> bool:
        """A last line without its newline is an event, or torn."""
        rest = self._record.read(self._next, self._record.size)
        if rest:
            self.torn = self._torn_of(rest, int(self._regs[LINE]) + 2)
        if rest and self.torn is None:
            if not self._take(rest, self._next):
                return False
            self._next += len(rest)
        self._offsets[int(self._regs[LINE])] = self._next
        return True

    def _take(self, line: bytes, offset: int) -> bool:
        """A line that the kernel does not read; False if there are too many of them."""
        number = int(self._regs[LINE])
        event = self._decode(line, number, int(self._regs[line_kernels.TIME]))
        if event.time_ns > VALUES_MAX:
            return False
        self._offsets[number] = offset
        self._regs[LINE] += 1
        self._regs[line_kernels.TIME] = event.time_ns
        if isinstance(event.process, str):
            self.others.append(event)
            return True
        self._odd += 1
        if self._odd > ODD_MAX + number // 16 or abs(event.process) > VALUES_MAX:
            return False
        kind, old, new = _value(event.value)
        row = int(self._regs[ROWS])
        info = TYPES.index(event.type) | kind << 2 | (FINAL if event.phase == "final" else 0)
        words = (event.f, event.key, event.node, event.role, event.mode, event.error)
        codes = [0 if word is None else self._code(word) for word in words]
        for column, each in zip(
            self._columns.values(),
            (number, event.time_ns, event.process, info, *codes, old, new),
            strict=True,
        ):
            column[row] = each
        self._regs[ROWS] += 1
        return True

    def _code(self, word: str) -> int:
        text = numpy.frombuffer(word.encode("utf-8", "surrogatepass"), dtype=numpy.uint8)
        while True:
            code: int = self._kernels.word_of(
                text, 0, len(text), self._regs, self._table, self._pool, self._starts
            )
            if code >= 0:
                return code
            self._grow(len(text))

    def _grow(self, at_least: int) -> None:
        """Room for more words."""
        self._pool = numpy.concatenate(
            (self._pool, numpy.zeros(len(self._pool) + PIECE_BYTES + at_least, numpy.uint8))
        )
        self._starts = numpy.concatenate((self._starts, numpy.zeros_like(self._starts)))
        self._table = numpy.full(2 * len(self._table), -1, dtype=numpy.int64)
        self._kernels.note_words(int(self._regs[line_kernels.WORDS]), self._table, self._pool, self._starts)


def _value(value: Any) -> tuple[int, int, int]:
    """(kind, old, new) of a value as `Columns` have it."""
    match value:
        case list([old, new]) if _is_number(old) and _is_number(new):
            return PAIR, ABSENT if old is None else old, ABSENT if new is None else new
        case _ if _is_number(value):
            return PLAIN, ABSENT, ABSENT if value is None else value
    return OTHER, ABSENT, ABSENT


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and abs(value) <= VALUES_MAX)
