"""The rows of history.parquet from the lines of a record, without making an object of a client's line.

The same tables as `checkers.history.parquet` makes of the events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy
import pyarrow

from checkers.compiled import load
from checkers.history import row_kernels
from checkers.history.line_kernels import FINAL, NO_CLIENT
from checkers.history.lines import TYPES, WORDS_OF_A_LINE, Batch, Scan, changed
from checkers.history.operation import Event

Array = Any  # numpy's
Arrow = Any  # pyarrow's
_PHASES = ("load", "final")


def tables(scan: Scan, count: int, schema: Arrow, row_group: int, client: str) -> Iterator[Arrow]:
    """All rows, some at a time; no table has rows on both sides of a multiple of `row_group`. `client`: their actor.

    Raises HistoryError if the lines are not those that were read before: `count` of them.
    """
    words: list[str | None] = []
    rows = 0
    for batch in scan.batches(row_group):
        actors = numpy.ones(len(batch.wait), dtype=numpy.int32)
        others = {row: event for row, event in batch.odd.items() if isinstance(event.process, str)}
        names = (None, client, *dict.fromkeys(str(event.process) for event in others.values()))
        _put_words(batch, others, scan)
        actors[list(others)] = [names.index(event.process) for event in others.values()]
        more = _put_texts(batch)
        words += scan.words(len(words))
        columns = _columns(batch, words, more)
        yield pyarrow.table({**columns, "actor": _dictionary(actors, names)}, schema=schema)
        rows += len(actors)
    if rows != count:
        raise changed(f"{rows} of {count} that can be read")


def _put_words(batch: Batch, others: Mapping[int, Event], scan: Scan) -> None:
    """Those of events that are no client's, by rows."""
    rows, events = list(others), others.values()
    batch.events.info[rows] = [
        NO_CLIENT | TYPES.index(event.type) | (FINAL if event.phase == "final" else 0) for event in events
    ]
    for name in WORDS_OF_A_LINE:
        _words(batch, name)[rows] = [*map(scan.codes.__getitem__, map(attrgetter(name), events))]


def _words(batch: Batch, name: str) -> Array:
    return batch.wait if name == "wait" else getattr(batch.events, name)


def _put_texts(batch: Batch) -> Array:
    """Note the places of the texts of odd rows, which begin at the end of the data; gives these texts."""
    events = batch.odd.values()
    values = [None if event.value is None else msgspec.json.encode(event.value) for event in events]
    transactions = [None if event.transaction is None else event.transaction.encode() for event in events]
    texts = [*values, *transactions]
    lengths = numpy.array([0 if text is None else len(text) for text in texts], dtype=numpy.int64)
    is_there = numpy.array([text is not None for text in texts], dtype=numpy.bool_)
    ends = len(batch.data) + numpy.cumsum(lengths)
    places = numpy.where(is_there, (ends - lengths, ends), 0).reshape(2, 2, len(events))
    batch.texts[:, list(batch.odd)] = places.swapaxes(0, 1).reshape(4, len(events))
    return numpy.frombuffer(bytearray(b"".join(text or b"" for text in texts)), dtype=numpy.uint8)


def _columns(batch: Batch, words: Sequence[str | None], more: Array) -> dict[str, Arrow]:
    events = batch.events
    phase = 1 + (events.info & FINAL != 0)
    return {
        "index": pyarrow.array(events.index.copy()),
        "time_ns": pyarrow.array(events.time_ns.copy()),
        "process": pyarrow.array(events.process.copy(), mask=events.info & NO_CLIENT != 0),
        **{name: _dictionary(_words(batch, name), words) for name in WORDS_OF_A_LINE},
        "type": _dictionary(1 + (events.info & 3), (None, *TYPES)),
        "phase": _dictionary(phase.astype(numpy.int32), (None, *_PHASES)),
        "value": _texts(batch.data, more, *batch.texts[:2], has_blanks=False),
        "transaction": _texts(batch.data, more, *batch.texts[2:], has_blanks=True),
    }


def _dictionary(codes: Array, words: Sequence[str | None]) -> Arrow:
    """A column of words by their codes, of which 0 is none."""
    places = numpy.full(len(words), -1, dtype=numpy.int32)
    met, numbers = numpy.empty(len(words), dtype=numpy.int32), numpy.empty(len(codes), dtype=numpy.int32)
    count = load(row_kernels).renumber(codes, places, met, numbers)
    named = pyarrow.array([words[code] for code in met[:count].tolist()], pyarrow.string())
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers, mask=codes == 0), named)


def _texts(data: Array, more: Array, begins: Array, ends: Array, *, has_blanks: bool) -> Arrow:
    """A column of texts that stand between these places; of a text that begins at 0 there is none. `has_blanks`: those
    of a line's text belong to it."""
    offsets = numpy.empty(len(begins) + 1, dtype=numpy.int32)
    text = numpy.empty(int((ends - begins).sum()), dtype=numpy.uint8)
    load(row_kernels).copy_texts(data, more, begins, ends, has_blanks, offsets, text)
    is_there = numpy.packbits(begins > 0, bitorder="little")
    return pyarrow.StringArray.from_buffers(
        len(begins),
        pyarrow.py_buffer(offsets),
        pyarrow.py_buffer(text[: offsets[-1]]),
        pyarrow.py_buffer(is_there),
    )
