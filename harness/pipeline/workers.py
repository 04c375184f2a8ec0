"""The functions that run in Spark's Python workers: they read the files that only our own code can read.

Each function takes and yields Arrow batches and touches no Spark: `mapInArrow` calls it where the data is. A node's
file that a disk fault damaged gives rows up to the damage, and stops no other run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from checkers.history.errors import HistoryError
from harness.errors import HarnessError

Batches = Iterable[Any]

FINGERPRINTS = "run string, checker string, number int, fingerprint string, shape string"
DOCUMENTS = "run string, plan string, verdict string"
WAL = (
    "run string, node string, place string, kind string, origin long, lsn long, first_lsn long, "
    "is_synchronous boolean, owner long, until_lsn long, term long, space long, key string, value string"
)
NODE_LOG = "run string, node string, number long, line string"


def documents(batches: Batches) -> Iterator[Any]:
    """run, path → plan.json and verdict.json as text."""
    return _rows(batches, _documents, DOCUMENTS)


def _documents(run: str, path: Path) -> Iterator[tuple[Any, ...]]:
    yield run, _text(path / "plan.json"), _text(path / "verdict.json")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def fingerprints(batches: Batches) -> Iterator[Any]:
    """run, path of runs with an invalid check → one row for each witness."""
    return _rows(batches, _fingerprints, FINGERPRINTS)


def _fingerprints(run: str, path: Path) -> Iterator[tuple[Any, ...]]:
    import msgspec

    from checkers.history import jsonl
    from harness.campaigns.fingerprint import sightings

    verdict = msgspec.json.decode((path / "verdict.json").read_bytes())
    for sighting in sightings(verdict, jsonl.read(path / "history.jsonl")):
        yield run, sighting.checker, sighting.number, sighting.fingerprint, sighting.shape


def node_log(batches: Batches) -> Iterator[Any]:
    """run, path → the lines of its nodes' logs."""
    return _rows(batches, _node_log, NODE_LOG)


def _node_log(run: str, path: Path) -> Iterator[tuple[Any, ...]]:
    for log in sorted(path.glob("nodes/*/log.jsonl")):
        yield from _until_unreadable(_lines(run, log))


def _lines(run: str, log: Path) -> Iterator[tuple[Any, ...]]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            yield run, log.parent.name, number, line.rstrip("\n")


def wal(batches: Batches) -> Iterator[Any]:
    """run, path → the records of its nodes' write-ahead logs."""
    return _rows(batches, _wal, WAL)


def _wal(run: str, path: Path) -> Iterator[tuple[Any, ...]]:
    from harness.systems import plans, system_of

    system = system_of(plans.read(path / "plan.json").system)
    for log in system.logs.read(path / "nodes") or ():
        for record in log.records:
            key, value = _key_and_value(record.tuple)
            yield (
                run, log.node, record.place, record.kind, record.origin, record.lsn, record.first,
                record.is_synchronous, record.owner, record.until, record.term, record.space,
                key, value,
            )  # fmt: skip


def _key_and_value(row: tuple[object, ...]) -> tuple[str | None, str | None]:
    """The first field of a tuple, and the second as JSON; None for a deletion."""
    import msgspec

    if not row:
        return None, None
    value = row[1] if len(row) > 1 else None
    return str(row[0]), msgspec.json.encode(value, enc_hook=str).decode()


ROWS_A_BATCH = 20_000
UNREADABLE = (
    *(OSError, ArithmeticError, ValueError, LookupError, TypeError, RecursionError),
    *(HarnessError, HistoryError),
)
"""Errors of files that went away, or have bytes that are not rows: a number may be too large for a column."""


def _rows(
    batches: Batches, read: Callable[[str, Path], Iterator[tuple[Any, ...]]], ddl: str
) -> Iterator[Any]:
    """The rows that `read` gives for every run, in batches of bounded size."""
    for batch in batches:
        for row in batch.to_pylist():
            records = _until_unreadable(read(row["run"], Path(row["path"])))
            with suppress(*UNREADABLE):
                while rows := list(islice(records, ROWS_A_BATCH)):
                    yield from _sound(rows, ddl)


def _until_unreadable(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    with suppress(*UNREADABLE):
        yield from rows


def _sound(rows: list[tuple[Any, ...]], ddl: str) -> Iterator[Any]:
    """The rows as a batch; those before the first that fits no column, and then its error."""
    try:
        yield _batch(rows, ddl)
    except UNREADABLE:
        for place, row in enumerate(rows):
            with suppress(*UNREADABLE):
                _batch([row], ddl)
                continue
            if place:
                yield _batch(rows[:place], ddl)
            raise


def _batch(rows: list[tuple[Any, ...]], ddl: str) -> Any:
    import pyarrow

    types = {
        "string": pyarrow.string(), "int": pyarrow.int32(), "long": pyarrow.int64(), "boolean": pyarrow.bool_()
    }  # fmt: skip
    fields = [field.split() for field in ddl.split(", ")]
    columns = [
        pyarrow.array(column, types[kind])
        for column, (_, kind) in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=[name for name, _ in fields])
