"""A large history.parquet as columns: the same history as its rows make, or None if that takes objects.

The file stays open for as long as the history is there, so that it can give the objects that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import numpy

from checkers.history.columns import VALUES_MAX, Columns, Events, Pairing
from checkers.history.history import Header, History, operations_of
from checkers.history.line_kernels import ABSENT, FINAL, OTHER, PAIR, PLAIN, TRIPLE
from checkers.history.nesting import is_deep
from checkers.history.operation import Event, Operation, answers
from checkers.history.operation import paired as paired_events
from checkers.history.others import Others
from checkers.history.stored import StoredEvents, StoredOperations, without_collections

Array = Any  # numpy's
Arrow = Any  # pyarrow's
ToEvents = Callable[[Arrow], list[Event]]
"""The events of a table's rows."""
BATCH = 1 << 18  # rows
ODD_MAX = 1_000  # values, beside one in sixteen, that are no numbers before columns are given up
COUNTED = ("index", "time_ns", "process")
NUMBERS = (*COUNTED, "value")
WORDS = ("type", "f", "key", "node", "role", "mode", "error", "phase", "wait")
KEPT = ("f", "key", "node", "role", "mode", "error")
TYPES = ("invoke", "ok", "fail", "info")
_NUMBER = r"0|-?[1-9]\d{0,17}|null"
_PAIR = rf"^\[(?P<old>{_NUMBER}),(?P<new>{_NUMBER})\]$"
_TRIPLE = rf"^\[(?P<old>{_NUMBER}),(?P<new>{_NUMBER}),(?:{_NUMBER})\]$"
"""The value of a failed cas: behind the two, the value that was there."""


def read(
    file: Arrow, header: Header, to_events: ToEvents, guarded: Callable[[], AbstractContextManager[None]]
) -> History | None:
    """The history in an open `ParquetFile`. None if its rows are not in order, or do not add up.

    `guarded`: what objects are made within, later: it makes a HistoryError of pyarrow's errors.
    """
    reader = _Reader(file, to_events)
    if not reader.read():
        return None
    operations = reader.operations()
    if operations is None:
        return None
    rows = file.metadata.num_rows

    def walk() -> Iterator[Event]:
        for batch in range(file.num_row_groups):
            with guarded(), without_collections():
                events = to_events(file.read_row_group(batch))
            yield from events

    stored = StoredEvents(rows, walk, reader.others)

    def some(places: Array) -> list[Operation]:
        return [paired_events(asked, ended) for asked, ended in pairs(places)]

    def pairs(places: Array) -> Iterator[tuple[Event, Event | None]]:
        invoke, complete = operations.invoke[places], operations.complete[places]
        wanted = numpy.unique(numpy.concatenate((invoke, complete[complete >= 0])))
        with guarded():
            events = {event.index: event for event in _at(file, wanted, to_events)}
        for asked, ended in zip(invoke.tolist(), complete.tolist(), strict=True):
            yield events[asked], events.get(ended)

    untold = pairs(reader.untold)
    if not all(ended is not None and answers(asked, ended) for asked, ended in untold):
        return None
    made = StoredOperations(operations, lambda: operations_of(stored, 2), some)
    return History.of(header, stored, operations=made)


def _at(file: Arrow, rows: Array, to_events: ToEvents) -> list[Event]:
    """The events at these rows, in order: no row group is read without need."""
    events: list[Event] = []
    first = 0
    for group in range(file.num_row_groups):
        end = first + file.metadata.row_group(group).num_rows
        here = rows[(rows >= first) & (rows < end)]
        if len(here):
            events += to_events(file.read_row_group(group).take(here - first))
        first = end
    return events


class _Reader:
    """One walk over the row groups."""

    def __init__(self, file: Arrow, to_events: ToEvents) -> None:
        self._file = file
        self._to_events = to_events
        self._words = _Words()
        self._pairing = Pairing(file.metadata.num_rows)
        self._order = _Order()
        self._others_until = 0
        self._odd = 0
        self.others = Others()

    def read(self) -> bool:
        """Read all rows. False if they are not in order, have values beyond columns, or do not pair."""
        names = set(self._file.schema_arrow.names)
        needed = [name for name in (*NUMBERS, *WORDS) if name in names]
        if not {*COUNTED, "type", "f", "value"} <= names or not _counts(self._file):
            return False
        for group in range(self._file.num_row_groups):
            for batch in self._file.iter_batches(BATCH, row_groups=[group], columns=needed):
                if not self._take(group, batch):
                    return False
        return True

    def operations(self) -> Columns | None:
        return self._pairing.columns(tuple(self._words.numbers))

    @property
    def untold(self) -> Array:
        return self._pairing.untold

    def _take(self, group: int, table: Arrow) -> bool:
        import pyarrow
        from pyarrow import compute

        if not self._order.goes_on(table):
            return False
        if table["process"].null_count:
            self._take_others(group)
            table = table.filter(compute.is_valid(table["process"]))
        events = _events(table, self._words)
        if events is None:
            return False
        others = table["value"].take(pyarrow.array(numpy.flatnonzero(events.is_other)))
        self._odd += len(others)
        if self._odd > ODD_MAX + self._order.next // 16:
            return False
        if any(is_deep(msgspec.json.decode(text)) for text in others.to_pylist()):
            return False
        return self._pairing.take(events, len(self._words.numbers))

    def _take_others(self, group: int) -> None:
        """The events of this row group that are no client's, once."""
        from pyarrow import compute

        if self._others_until <= group:
            self._others_until = group + 1
            for batch in self._file.iter_batches(BATCH, row_groups=[group]):
                if batch["process"].null_count:
                    for event in self._to_events(batch.filter(compute.is_null(batch["process"]))):
                        self.others.add(event)


def _counts(file: Arrow) -> bool:
    """Whether the columns of whole numbers are such: a fraction or a text would become one here, unlike in a row."""
    from pyarrow import types

    return all(types.is_integer(file.schema_arrow.field(name).type) for name in COUNTED)


class _Order:
    """Whether rows that come some at a time are numbered from 0, and their times do not fall."""

    def __init__(self) -> None:
        self.next = 0
        self._last_ns = numpy.zeros(1, dtype=numpy.int64)

    def goes_on(self, table: Arrow) -> bool:
        if table["index"].null_count or table["time_ns"].null_count:
            return False
        index, times_ns = _int64(table["index"]), numpy.append(self._last_ns, _int64(table["time_ns"]))
        begin, self.next, self._last_ns = self.next, self.next + len(index), times_ns[-1:]
        is_numbered = numpy.array_equal(index, numpy.arange(begin, self.next))
        return is_numbered and not (times_ns[1:] < times_ns[:-1]).any()


def add_up(file: Arrow) -> bool:
    """Whether the rows of an open `ParquetFile` are in order, and no process has two open operations or an answer
    without one. So all of the file has to be seen; a worker that has some keys of it cannot tell.
    """
    import pyarrow
    from pyarrow import compute

    if not _counts(file):
        return False
    order, running = _Order(), numpy.zeros(0, dtype=numpy.int64)
    for table in file.iter_batches(BATCH, columns=["index", "time_ns", "process", "type"]):
        if not order.goes_on(table):
            return False
        clients = table.filter(compute.is_valid(table["process"]))
        if not len(clients):
            continue
        process = _int64(clients["process"])
        kind = clients["type"].cast(pyarrow.string())
        is_invoke = compute.equal(kind, "invoke").fill_null(False).to_numpy(zero_copy_only=False)
        place = numpy.argsort(process, kind="stable")
        process, is_invoke = process[place], is_invoke[place]
        is_first = numpy.append(True, process[1:] != process[:-1])
        is_last = numpy.append(is_first[1:], True)
        was_running = numpy.append(False, is_invoke[:-1])
        was_running[is_first] = numpy.isin(process[is_first], running)
        if (was_running == is_invoke).any():
            return False
        others = running[~numpy.isin(running, process)]
        running = numpy.concatenate((others, process[is_last & is_invoke]))
    return True


def operations_in(table: Arrow) -> Columns | None:
    """The operations of clients' events in a batch of rows, in order of their `index`, whatever is left out between.

    None if they do not add up, or have values that are neither whole numbers nor two of them.
    """
    words = _Words()
    pairing = Pairing(len(table))
    events = _events(table, words)
    if events is None or events.is_other.any() or not pairing.take(events, len(words.numbers)):
        return None
    operations = pairing.columns(tuple(words.numbers))
    return None if operations is None or len(pairing.untold) else operations


def _events(table: Arrow, known: _Words) -> Events | None:
    """The rows of clients' events, words by their numbers; None if a type, a phase or an f is none."""
    part = {name: _int64(table[name]).copy() for name in COUNTED}
    kind, part["old"], part["new"] = _values(table["value"])
    words = {name: known.of(table, name) for name in WORDS}
    numbers = known.numbers
    type_ = _translated(words["type"], [numbers.get(word, -1) for word in TYPES])
    phase = _translated(words["phase"], [numbers.get(word, -1) for word in ("load", "final")])
    if (type_ < 0).any() or ((phase < 0) & (words["phase"] != 0)).any() or (words["f"] == 0).any():
        return None
    part["info"] = (type_ | kind << 2 | numpy.where(phase == 1, FINAL, 0)).astype(numpy.int32)
    return Events(**part, **{name: words[name] for name in KEPT})


class _Words:
    """Words by their numbers, which are the same in all columns and groups."""

    def __init__(self) -> None:
        self.numbers: dict[str | None, int] = {None: 0}
        self._last: dict[str, tuple[Arrow, Array]] = {}
        """By column the last dictionary and its numbers: of many keys, the batches of a group share a large one."""

    def of(self, table: Arrow, name: str) -> Array:
        """The words of a column as numbers. Raises ArrowInvalid for a code without a word, as a damaged file has."""
        import pyarrow

        if name not in table.schema.names:
            return numpy.zeros(len(table), dtype=numpy.int32)
        column = table[name]
        if not hasattr(column, "dictionary"):
            column = column.dictionary_encode()
        words, known = self._last.get(name, (None, None))
        if words is None or not column.dictionary.equals(words):
            words, numbers = column.dictionary, self.numbers
            known = numpy.array(
                [*(numbers.setdefault(word, len(numbers)) for word in words.to_pylist()), 0],
                dtype=numpy.int32,
            )
            self._last[name] = words, known
        codes = column.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        try:
            return known[codes]
        except IndexError as error:
            raise pyarrow.ArrowInvalid(f"column {name} has a code without a word: {error}") from error


def _translated(codes: Array, known: Sequence[int]) -> Array:
    """The place in `known` of each code; -1 for others."""
    table = numpy.full(int(codes.max(initial=0)) + 1, -1, dtype=numpy.int8)
    for place, code in enumerate(known):
        if 0 <= code < len(table):
            table[code] = place
    return table[codes]


def _int64(column: Arrow) -> Array:
    return column.to_numpy(zero_copy_only=False).astype(numpy.int64, copy=False)


def _values(column: Arrow) -> tuple[Array, Array, Array]:
    """(kind, old, new) of JSON texts, as `Columns` have them."""
    import pyarrow
    from pyarrow import compute

    column = column.cast(pyarrow.string())  # another tool may have made a dictionary of it
    kind = numpy.full(len(column), OTHER, dtype=numpy.int32)
    old, new = (numpy.full(len(column), ABSENT, dtype=numpy.int64) for _ in range(2))
    plain = compute.fill_null(compute.match_substring_regex(column, r"^(null|0|-?[1-9]\d{0,17})$"), True)
    places = numpy.flatnonzero(plain.to_numpy(zero_copy_only=False))
    kind[places] = PLAIN
    new[places] = _cast(column if len(places) == len(column) else column.take(pyarrow.array(places)))
    for code, pattern in ((PAIR, _PAIR), (TRIPLE, _TRIPLE)):
        left = numpy.flatnonzero(kind == OTHER)
        sides = compute.extract_regex(column.take(pyarrow.array(left)), pattern) if len(left) else None
        if sides is not None and sides.null_count < len(left):
            matched = numpy.flatnonzero(sides.is_valid().to_numpy(zero_copy_only=False))
            left, sides = left[matched], sides.take(pyarrow.array(matched))
            kind[left] = code
            old[left], new[left] = (_cast(compute.struct_field(sides, name)) for name in ("old", "new"))
    assert VALUES_MAX > 10**18
    return kind, old, new


def _cast(texts: Arrow) -> Array:
    import pyarrow
    from pyarrow import compute

    numbers = compute.cast(compute.if_else(compute.equal(texts, "null"), None, texts), pyarrow.int64())
    return numbers.fill_null(ABSENT).to_numpy(zero_copy_only=False)
