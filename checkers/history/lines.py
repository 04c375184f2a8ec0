"""A large history.jsonl as columns, read in pieces: the same history as `jsonl.parse` gives, or the same error.

The record stays open for as long as the history is there, so that it can give the objects that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy

from checkers.compiled import load
from checkers.history import line_kernels
from checkers.history.columns import VALUES_MAX, Events, Pairing
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.history import Header, History, operations_of
from checkers.history.line_kernels import (
    ABSENT,
    FINAL,
    LEFT,
    LINE,
    NEW_WORD,
    NO_CLIENT,
    OTHER,
    PAIR,
    PLAIN,
    POSITION,
    ROWS,
    TIME,
    WORDS,
    Beside,
    Words,
)
from checkers.history.operation import Event, Operation, answers
from checkers.history.operation import paired as paired_events
from checkers.history.others import Others
from checkers.history.record_lines import Lines
from checkers.history.segments import Record
from checkers.history.spilled import Rooms
from checkers.history.stored import StoredEvents, StoredOperations

Array = Any  # numpy's
Decode = Callable[[bytes, int, int], Event]
"""The event in a line, of this index and not before this time; HistoryError if it is not one."""
Torn = Callable[[bytes, int], str | None]
"""The missing part of the last line, of this number, which has no newline; None if it lacks only the newline."""
PIECE_BYTES = 4 << 20
ROWS_MAX = 1 << 15  # lines that are read at once
SHORTEST = 50  # bytes that an event's line has at least
ODD_MAX = 1_000  # clients' lines, beside one in sixteen, that the kernel may leave to us before columns are given up
NUMBERS = ("index", "time_ns", "process", "old", "new")
TYPES = ("invoke", "ok", "fail", "info")
WORDS_OF_A_LINE = ("f", "key", "node", "role", "mode", "error", "wait")


def read(record: Record, begin: int, header: Header, decode: Decode, torn_of: Torn) -> History | None:
    """The history in a record whose first event begins at `begin`. None if its operations are not columns' matter.

    Raises HistoryError of a line; if operations do not add up, the answer is None too.
    """
    scan = Scan(record, begin, decode, torn_of)
    pairing = Pairing(scan.lines_max)
    offsets = Rooms(scan.lines_max).empty(scan.lines_max + 1, numpy.uint32)
    others = Others()
    for batch in scan.batches():
        if not pairing.take(batch.events, scan.words_count):
            return None
        offsets[batch.first : batch.first + len(batch.offsets)] = batch.offsets
        for event in batch.odd.values():
            if isinstance(event.process, str):
                others.add(event)
    if not scan.is_whole:
        return None
    operations = pairing.columns(scan.words())
    if operations is None:
        return None
    offsets[scan.firsts[-1]] = 0
    lines = Lines(record, scan.firsts, scan.bases, offsets[: scan.firsts[-1] + 1])
    decoder = msgspec.json.Decoder(Event)

    def decoded(line: bytes) -> Event:
        try:
            return decoder.decode(line)
        except NOT_JSON as error:
            raise changed(f"others ({error})") from error

    for place in pairing.untold.tolist():  # `columns` has set it
        invoke, complete = int(operations.invoke[place]), int(operations.complete[place])
        if not answers(decoded(lines.at(invoke)), decoded(lines.at(complete))):
            return None

    def walk() -> Iterator[Event]:
        return map(decoded, lines.all())

    def again() -> Scan:
        known = {event.index: event for event in others.rare}
        return Scan(
            record,
            begin,
            lambda line, index, time_ns: known.get(index) or decode(line, index, time_ns),
            torn_of,
        )

    stored = StoredEvents(len(lines), walk, others, lambda index: decoded(lines.at(index)), lines, again)

    def some(places: Array) -> list[Operation]:
        made = []
        for invoke, complete in zip(
            operations.invoke[places].tolist(), operations.complete[places].tolist(), strict=True
        ):
            ended = None if complete < 0 else decoded(lines.at(complete))
            made.append(paired_events(decoded(lines.at(invoke)), ended))
        return made

    made = StoredOperations(operations, lambda: operations_of(stored, 2), some)
    return History.of(header, stored, operations=made, torn=scan.torn)


def changed(came: str) -> HistoryError:
    """The record has changed since it was read."""
    return HistoryError(
        expected="the lines that were read before",
        came=came,
        attempt="judge the file again: it has changed meanwhile",
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines, a row each, until the next batch is asked for.

    `first`: the number of the first line; `offsets`: where each begins in its piece. `odd`: the events of lines that
    the kernel left to us, by row; clients' have their row filled. `texts`: where in `data` the value begins and ends,
    and where the transaction does; all 0 in an odd row.
    """

    first: int
    offsets: Array
    events: Events
    wait: Array
    texts: Array
    data: Array
    odd: dict[int, Event]


class Scan:
    """One walk over the lines: what the kernel fills, and the lines that it leaves to us."""

    def __init__(self, record: Record, begin: int, decode: Decode, torn_of: Torn) -> None:
        self._record = record
        self._next = begin  # where the next piece begins
        self._decode = decode
        self._torn_of = torn_of
        self.lines_max = (record.size - begin) // SHORTEST + 2
        self._kernels = load(line_kernels)
        self._regs = numpy.zeros(line_kernels.REGS, dtype=numpy.int64)
        self.firsts: list[int] = []
        self.bases: list[int] = []
        """Of the pieces, as `Lines` has them."""
        self._events = Events(
            **{
                name: numpy.empty(ROWS_MAX, dtype=numpy.int64 if name in NUMBERS else numpy.int32)
                for name in Events._fields
            }
        )
        self._beside = Beside(
            offsets=numpy.empty(ROWS_MAX, dtype=numpy.uint32),
            wait=numpy.empty(ROWS_MAX, dtype=numpy.int32),
            texts=numpy.empty((4, ROWS_MAX), dtype=numpy.int32),
        )
        self._buffer = bytearray(PIECE_BYTES)
        self._words = Words(
            table=numpy.full(1 << 13, -1, dtype=numpy.int64),
            pool=numpy.zeros(1 << 16, dtype=numpy.uint8),
            starts=numpy.zeros(1 << 12, dtype=numpy.int64),
        )
        self._regs[WORDS] = 1
        self.codes = _Codes(self._noted)
        self._odd = 0
        self.is_whole = False
        """Whether all lines were read, and were worth it."""
        self.torn: str | None = None

    def batches(self, group: int = 0) -> Iterator[Batch]:
        """All lines; no batch has lines on both sides of a multiple of `group`. Raises HistoryError."""
        while size := self._piece():
            data = numpy.frombuffer(self._buffer, dtype=numpy.uint8, count=size)
            yield from self._batches(data, group)
            if self._regs[POSITION] < size:
                return
            self._next += size
        rest = self._record.read(self._next, self._record.size)
        if rest:
            self.torn = self._torn_of(rest, int(self._regs[LINE]) + 2)
        if rest and self.torn is None:  # it lacks its newline alone
            yield from self._batches(numpy.frombuffer(bytearray(rest + b"\n"), dtype=numpy.uint8), group)
            if self._regs[POSITION] <= len(rest):
                return
            self._next += len(rest)
        self._begin_piece()
        self.is_whole = True

    @property
    def words_count(self) -> int:
        """How many words there are, the first of which is None."""
        return int(self._regs[WORDS])

    def words(self, begin: int = 0) -> list[str | None]:
        """The words from this code on."""
        count, first = self.words_count, max(begin, 1)
        starts = self._words.starts[first : count + 1].tolist()
        text = self._words.pool[starts[0] : starts[-1]].tobytes()
        named = [
            text[start - starts[0] : end - starts[0]].decode("utf-8", "surrogatepass")
            for start, end in pairwise(starts)
        ]
        return [None, *named] if begin == 0 else [*named]

    def _begin_piece(self) -> None:
        self.firsts.append(int(self._regs[LINE]))
        self.bases.append(self._next)

    def _piece(self) -> int:
        """Read whole lines from `_next` on into the buffer, at least one if there is one. Their bytes; 0 at the end."""
        while True:
            size = self._record.read_into(self._buffer, self._next)
            end = self._buffer.rfind(b"\n", 0, size) + 1
            if end or size < len(self._buffer):
                return end
            self._buffer = bytearray(4 * len(self._buffer))

    def _batches(self, data: Array, group: int) -> Iterator[Batch]:
        """The batches of a piece. It ends early at a line that columns cannot hold."""
        self._begin_piece()
        self._regs[POSITION] = 0
        while self._regs[POSITION] < len(data):
            self._regs[ROWS] = 0
            begin, before_ns = int(self._regs[POSITION]), int(self._regs[TIME])
            room = group - int(self._regs[LINE]) % group if group else ROWS_MAX
            self._read_lines(data, min(ROWS_MAX, room))
            odd = self._odd_events(data, before_ns)
            if odd is None:
                self._regs[POSITION] = begin
                return
            rows = int(self._regs[ROWS])
            yield Batch(
                first=int(self._regs[LINE]) - rows,
                offsets=self._beside.offsets[:rows],
                events=Events(*(column[:rows] for column in self._events)),
                wait=self._beside.wait[:rows],
                texts=self._beside.texts[:, :rows],
                data=data,
                odd=odd,
            )

    def _read_lines(self, data: Array, stop: int) -> None:
        while (
            self._kernels.read_lines(
                data, len(data), self._regs, self._events, self._beside, self._words, stop
            )
            == NEW_WORD
        ):
            self._grow(0)

    def _odd_events(self, data: Array, before_ns: int) -> dict[int, Event] | None:
        """The events of the rows that are left, which have their numbers then; None if columns are to be given up.

        The kernel compared the times of the other lines with each other alone.
        """
        rows, times_ns = int(self._regs[ROWS]), self._events.time_ns
        first = int(self._regs[LINE]) - rows
        begins = [*self._beside.offsets[:rows].tolist(), int(self._regs[POSITION])]
        is_left = self._events.info[:rows] == LEFT
        left = numpy.flatnonzero(is_left)
        self._beside.texts[:, left], self._events.index[left] = 0, first + left
        self._events.process[left], self._events.info[left] = 0, NO_CLIENT
        odd: dict[int, Event] = {}
        for row in left.tolist():
            line = data[begins[row] : begins[row + 1] - 1].tobytes()
            event = self._decode(line, first + row, int(times_ns[row - 1]) if row else before_ns)
            if event.time_ns > VALUES_MAX or (isinstance(event.process, int) and not self._put(row, event)):
                return None
            times_ns[row] = event.time_ns
            if row + 1 < rows and not is_left[row + 1] and times_ns[row + 1] < event.time_ns:
                line = data[begins[row + 1] : begins[row + 2] - 1].tobytes()
                self._decode(line, first + row + 1, event.time_ns)
            odd[row] = event
        self._regs[TIME] = times_ns[rows - 1]
        return odd

    def _put(self, row: int, event: Event) -> bool:
        """Fill the row of a client's event; False if columns are to be given up."""
        assert isinstance(event.process, int), event
        self._odd += 1
        if self._odd > ODD_MAX + event.index // 16 or abs(event.process) > VALUES_MAX:
            return False
        kind, old, new = _value(event.value)
        info = TYPES.index(event.type) | kind << 2 | (FINAL if event.phase == "final" else 0)
        words = (event.f, event.key, event.node, event.role, event.mode, event.error)
        codes = map(self.codes.__getitem__, words)
        numbers = (event.index, event.time_ns, event.process, info, *codes, old, new)
        for column, number in zip(self._events, numbers, strict=True):
            column[row] = number
        self._beside.wait[row] = self.codes[event.wait]
        return True

    def _noted(self, word: str) -> int:
        text = numpy.frombuffer(word.encode("utf-8", "surrogatepass"), dtype=numpy.uint8)
        while True:
            code: int = self._kernels.word_of(text, 0, len(text), self._regs, self._words)
            if code >= 0:
                return code
            self._grow(len(text))

    def _grow(self, at_least: int) -> None:
        """Room for more words."""
        table, pool, starts = self._words
        self._words = Words(
            table=numpy.full(2 * len(table), -1, dtype=numpy.int64),
            pool=numpy.concatenate((pool, numpy.zeros(len(pool) + PIECE_BYTES + at_least, numpy.uint8))),
            starts=numpy.concatenate((starts, numpy.zeros_like(starts))),
        )
        self._kernels.note_words(self.words_count, self._words)


class _Codes(dict[str | None, int]):
    """The codes of words; a new word is noted."""

    def __init__(self, noted: Callable[[str], int]) -> None:
        super().__init__({None: 0})
        self._noted = noted

    def __missing__(self, word: str) -> int:
        code = self[word] = self._noted(word)
        return code


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
