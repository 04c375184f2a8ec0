"""Parquet histories of any size over many registers, linearizable by construction, made in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

from checkers.history import Header
from checkers.history.jsonl import header_line

PROCESSES = 64
CHUNK = 1_000_000
READS = 0.5
SLOT_NS = 20_000
WORDS = {
    "type": ["invoke", "ok"],
    "f": ["read", "write"],
    "actor": ["client"],
    "node": ["n1"],
    "role": ["owner"],
    "mode": ["read-confirmed"],
    "phase": ["load"],
}


def write(path: Path, operations: int, keys: int, seed: int = 1) -> None:
    """`operations` reads and writes on `keys` registers by PROCESSES clients; each takes effect when it is asked."""
    chance = numpy.random.default_rng(seed)
    names = pyarrow.array([f"r{key}" for key in range(keys)])
    last = numpy.full(keys, -1, dtype=numpy.int64)
    open_events: dict[str, numpy.ndarray] = {}
    schema = _schema()
    written = 0
    metadata = {b"qsync-history": header_line(Header(system="bench", workload="register"))}
    with pyarrow.parquet.ParquetWriter(path, schema.with_metadata(metadata), compression="zstd") as file:
        for first in range(0, operations, CHUNK):
            count = min(CHUNK, operations - first)
            events = _events(chance, first, count, keys, last)
            events = _together(open_events, events)
            order = numpy.argsort(events["slot"], kind="stable")
            whole = first + count == operations
            ready = (
                len(order) if whole else int(numpy.searchsorted(events["slot"][order], 2 * (first + count)))
            )
            now, later = order[:ready], order[ready:]
            file.write_table(
                _table({name: column[now] for name, column in events.items()}, written, names, schema)
            )
            written += ready
            open_events = {name: column[later] for name, column in events.items()}


def _events(
    chance: numpy.random.Generator, first: int, count: int, keys: int, last: numpy.ndarray
) -> dict[str, numpy.ndarray]:
    number = numpy.arange(first, first + count, dtype=numpy.int64)
    key = chance.integers(0, keys, count)
    is_write = chance.random(count) >= READS
    value = _values(key, is_write, number, last)
    lasts = chance.integers(0, PROCESSES - 1, count)
    asked = {"slot": 2 * number, "is_end": numpy.zeros(count, dtype=bool)}
    ended = {"slot": 2 * (number + lasts) + 1, "is_end": numpy.ones(count, dtype=bool)}
    same = {"key": key, "is_write": is_write, "process": number % PROCESSES, "value": value}
    return _together({**asked, **same}, {**ended, **same})


def _values(
    key: numpy.ndarray, is_write: numpy.ndarray, number: numpy.ndarray, last: numpy.ndarray
) -> numpy.ndarray:
    """The value of each operation: a write's own number; for a read, that of the write before it on its key.

    `last`: the newest write of each key; it is updated.
    """
    order = numpy.argsort(key, kind="stable")
    sorted_key, writes = key[order], is_write[order]
    places = numpy.where(writes, numpy.arange(len(key)), -1)
    starts = numpy.flatnonzero(numpy.r_[True, sorted_key[1:] != sorted_key[:-1]])
    newest = numpy.maximum.accumulate(places)
    group_start = numpy.repeat(starts, numpy.diff(numpy.r_[starts, len(key)]))
    inside = newest >= group_start
    seen = numpy.where(inside, number[order][numpy.maximum(newest, 0)], last[sorted_key])
    value = numpy.empty(len(key), dtype=numpy.int64)
    value[order] = seen
    ends = numpy.r_[starts[1:], len(key)] - 1
    last[sorted_key[ends]] = seen[ends]
    return value


def _together(one: dict[str, numpy.ndarray], other: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    return {name: numpy.concatenate((one[name], other[name])) for name in other} if one else other


def _schema() -> pyarrow.Schema:
    word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    names = ("type", "actor", "f", "key", "node", "role", "mode", "error", "phase")
    return pyarrow.schema(
        [
            *((name, pyarrow.int64()) for name in ("index", "time_ns", "process")),
            *((name, word) for name in names),
            ("value", pyarrow.string()),
        ]
    )


def _table(
    events: dict[str, numpy.ndarray], first: int, keys: pyarrow.Array, schema: pyarrow.Schema
) -> pyarrow.Table:
    count = len(events["slot"])

    def words(name: str, codes: numpy.ndarray) -> pyarrow.Array:
        return pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(codes.astype(numpy.int32)), pyarrow.array(WORDS[name])
        )

    same = numpy.zeros(count, dtype=numpy.int32)
    is_end, is_write = events["is_end"], events["is_write"]
    has_value = (is_write | is_end) & (events["value"] >= 0)
    values = pyarrow.array(events["value"], mask=~has_value).cast(pyarrow.string())
    columns = {
        "index": pyarrow.array(numpy.arange(first, first + count, dtype=numpy.int64)),
        "time_ns": pyarrow.array(events["slot"] * SLOT_NS),
        "process": pyarrow.array(events["process"]),
        "type": words("type", is_end),
        "f": words("f", is_write),
        "key": pyarrow.DictionaryArray.from_arrays(pyarrow.array(events["key"].astype(numpy.int32)), keys),
        "error": pyarrow.nulls(count, schema.field("error").type),
        "value": values,
        **{name: words(name, same) for name in ("actor", "node", "role", "mode", "phase")},
    }
    return pyarrow.table([columns[name] for name in schema.names], schema=schema)
