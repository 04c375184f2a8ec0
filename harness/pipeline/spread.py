"""Registers of one big history.parquet, spread over workers by key: pairing, latencies, linearizability.

One task for each row group of the file splits its events by the hash of their key, as columns. The shuffle moves few
rows with many events each, packed by Arrow, and never unpacks them. A second task for each
hash has all events of its keys, and reads and decides them with the same compiled code as
`checkers.linearizable.check`. It only names the keys that it does not find valid: these are judged again in this
process, so verdict and witnesses are the same as without Spark.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.history import parquet, tables
from checkers.history.sealed_parquet import says_sealed
from checkers.linearizable import check, merging
from checkers.verdict import Verdict
from harness.judge.time_limit import Elsewhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from checkers.history import History
    from checkers.history.columns import Columns

EVENTS_A_TASK = 1_000_000
NEEDED = ("index", "time_ns", "process", "type", "f", "key", "role", "mode", "error", "value")
WORDS = ("type", "f", "key", "role", "mode", "error")
_SPLIT = "part int, events binary"
BUCKETS_A_DECADE = 200
"""A quantile is reported as the upper edge of its bucket: at most 1.2 % too much."""
ANSWER = "answer string"
"""JSON; null if columns do not suffice for what a worker has."""
Quantiles = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The combined answers of the workers. The quantiles are for each `f`, of the operations that ended ok.

    `torn`: what the file says that its record has lost.
    """

    verdict: Verdict
    torn: str | None
    quantiles_ms: Quantiles
    tasks: int


def check_parquet(
    spark: SparkSession,
    path: Path,
    *,
    failed_cas_observes: bool = True,
) -> Spread | None:
    """The verdict on all registers in such a file; None if columns do not suffice to read it, or it does not add up.

    The limits of the scope hold in each task. Reads are judged as `promised_linearizable` says. A task may decide
    a key that one process gives up on, because fewer keys share the steps of a search; never the other way round.
    HistoryError if the file has changed since it was written: the driver verifies all of it, the workers the pages that
    they read.
    """
    import msgspec

    began_s = time.monotonic()
    file = parquet.opened(path)
    if not (says_sealed(file) or tables.add_up(file)):
        return None
    about = file.metadata
    tasks = max(spark.sparkContext.defaultParallelism, math.ceil(about.num_rows / EVENTS_A_TASK))
    worker = _Worker(Elsewhere.now(), failed_cas_observes)
    groups = spark.range(about.num_row_groups, numPartitions=about.num_row_groups)
    split = groups.mapInArrow(_Splitter(str(path.absolute()), tasks), _SPLIT)
    rows = split.repartitionById(tasks, "part").mapInArrow(worker, ANSWER).collect()
    answers = [msgspec.json.decode(row.answer) for row in rows]
    if None in answers:
        return None
    verdicts = [Verdict.from_json(answer["verdict"]) for answer in answers]
    again = {key for answer in answers for key in answer["keys"]}
    rest = None
    # Without any operation there is no answer: that is judged here, too.
    if again or not answers:
        rest = check(parquet.read_keys(path, again), failed_cas_observes=failed_cas_observes)
    whole = merging.merged(verdicts, rest)
    return Spread(
        verdict=replace(whole, seconds=round(time.monotonic() - began_s, 6)),
        torn=parquet.torn_of(file.schema_arrow),
        quantiles_ms=_quantiles(answers),
        tasks=tasks,
    )


@dataclass(frozen=True, slots=True)
class _Splitter:
    """Called in Spark's Python workers with numbers of row groups: gives their clients' events, by hash of the key."""

    path: str
    parts: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(
            self.path, read_dictionary=list(WORDS), page_checksum_verification=True
        )
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for part, events in self._split(file.read_row_group(number, columns=list(NEEDED))):
                    yield pyarrow.RecordBatch.from_arrays(
                        [
                            pyarrow.array([part], pyarrow.int32()),
                            pyarrow.array([packed(events)], pyarrow.binary()),
                        ],
                        names=["part", "events"],
                    )

    def _split(self, table: Any) -> Iterator[tuple[int, Any]]:
        import numpy
        import pyarrow
        import pyarrow.compute

        table = table.filter(pyarrow.compute.is_valid(table["process"])).combine_chunks()
        keys = table["key"].combine_chunks()
        words = [*keys.dictionary.to_pylist(), None]
        codes = keys.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
        part = numpy.array([zlib.crc32(str(word).encode()) % self.parts for word in words])[codes]
        order = numpy.argsort(part, kind="stable")
        bounds = numpy.searchsorted(part[order], numpy.arange(self.parts + 1))
        table = table.take(pyarrow.array(order))
        for number in range(self.parts):
            first, end = int(bounds[number]), int(bounds[number + 1])
            if first < end:
                yield number, table.slice(first, end - first)


def packed(events: Any) -> bytes:
    """A table as Arrow's own bytes, compressed; its dictionary has only the keys that occur."""
    import pyarrow

    place = events.schema.get_field_index("key")
    keys = events["key"].combine_chunks().dictionary_decode().dictionary_encode()
    events = events.set_column(place, "key", keys)
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    with pyarrow.ipc.new_stream(sink, events.schema, options=options) as writer:
        writer.write_table(events)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class _Worker:
    """Called in Spark's Python workers with all events of some keys, packed, in any order."""

    limits: Elsewhere
    failed_cas_observes: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import msgspec
        import pyarrow

        packs = [events for batch in batches for events in batch.column("events")]
        if packs:
            text = msgspec.json.encode(self._answer(packs)).decode()
            yield pyarrow.RecordBatch.from_pylist([{"answer": text}])

    def _answer(self, packs: list[Any]) -> dict[str, Any] | None:
        import numpy

        columns = tables.operations_in(unpacked(packs))
        if columns is None or not columns.names <= {"read", "write", "cas"}:
            return None
        with self.limits.held():
            verdict = check(_history(columns), failed_cas_observes=self.failed_cas_observes)
        named = {*verdict.details["keys_invalid"], *verdict.details["keys_undecided"]}
        # A missing key and the key "None" have the same name there: if one is to be judged again, so is the other.
        again = [key for key in columns.keys(slice(None)) if str(key) in named]
        if again:  # counted without them: they are decided, and counted, in process
            is_left = numpy.array([word not in again for word in columns.words])[columns.key]
            left = columns.at(numpy.flatnonzero(is_left))
            verdict = check(_history(left), failed_cas_observes=self.failed_cas_observes)
        f, bucket, many = _histogram(columns)
        return {"verdict": verdict.to_json(), "f": f, "bucket": bucket, "many": many, "keys": again}


def _history(columns: Columns) -> History:
    from checkers.history import Header, History
    from checkers.history.columns import operations_at
    from checkers.history.stored import StoredOperations

    def at_places(places: Any) -> list[Any]:
        return operations_at(columns, places)

    operations = StoredOperations(columns, lambda: operations_at(columns, slice(None)), at_places)
    return History(header=Header(), events=(), operations=operations)


def unpacked(packs: list[Any]) -> Any:
    """The events in their order, one batch. `packs` is emptied, so that the events are in memory only once."""
    import numpy
    import pyarrow

    table = pyarrow.concat_tables([pyarrow.ipc.open_stream(pack.as_buffer()).read_all() for pack in packs])
    packs.clear()
    table = table.unify_dictionaries().combine_chunks()
    table = table.take(pyarrow.array(numpy.argsort(table["index"].to_numpy(), kind="stable")))
    (batch,) = table.combine_chunks().to_batches()
    return batch


def _histogram(columns: Columns) -> tuple[list[str], list[int], list[int]]:
    """Counts of operations that ended ok, as three lists: f, latency bucket, count."""
    import numpy

    from checkers.history.line_kernels import OK

    is_ok = columns.type == OK
    took_ns = numpy.maximum((columns.complete_ns - columns.invoke_ns)[is_ok], 1)
    bucket = numpy.ceil(numpy.log10(took_ns) * BUCKETS_A_DECADE).astype(numpy.int64)
    together = columns.f[is_ok].astype(numpy.int64) * 10_000 + bucket
    different, many = numpy.unique(together, return_counts=True)
    f = [str(columns.words[int(code) // 10_000]) for code in different]
    return f, [int(code) % 10_000 for code in different], many.tolist()


def _quantiles(answers: Iterable[dict[str, Any]]) -> Quantiles:
    """The histograms of all workers, added up."""
    counts: dict[str, dict[int, int]] = {}
    for answer in answers:
        for f, bucket, many in zip(answer["f"], answer["bucket"], answer["many"], strict=True):
            of_f = counts.setdefault(f, {})
            of_f[bucket] = of_f.get(bucket, 0) + many
    return {f: _of_histogram(of_f) for f, of_f in sorted(counts.items())}


def _of_histogram(counts: dict[int, int]) -> dict[str, float]:
    whole = sum(counts.values())
    quantiles: dict[str, float] = {}
    for name, share in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        left = math.ceil(share * whole)
        for bucket in sorted(counts):
            left -= counts[bucket]
            if left <= 0:
                quantiles[name] = 10 ** (bucket / BUCKETS_A_DECADE) / 1e6
                break
    return {**quantiles, "count": whole}
