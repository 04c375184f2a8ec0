"""trace.parquet: the columns of a trace, for millions of messages.

One row an event, in the order of `Trace`: lives one after the other. Transactions stand there by name. Lives, words,
cuts and colour changes lie in the metadata as JSON. The file has a seal (`checkers.history.sealed_parquet`); those of
earlier versions have none. pyarrow is imported by the functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy

from checkers.cuts.trace import CUT_MARK, LIFE, MARK, NOT_RECORDED, RECEIVE, SEND, Life, Trace
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.sealed_parquet import SEALED, opened_sealed, seal

FORMAT = b"qsync-trace"
_COLUMNS = {
    "kind": numpy.int8,
    "seq": numpy.int32,
    "peer": numpy.int32,
    "what": numpy.int32,
    "time_ns": numpy.int64,
}
_XID = "xid"
_OF_VERDICTS = ("kind", "seq", "peer")
_GROUP_ROWS = 1 << 20
_OF_DAMAGE = (*NOT_JSON, LookupError, TypeError, ValueError, OverflowError, OSError)


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    lives: list[tuple[str, int, int, int, int, int, str]]
    """Node, life, number of rows, wall_ns, time_ns, over_ns, torn."""
    words: tuple[str, ...]
    cuts: tuple[str, ...]
    peers: tuple[str, ...]
    marks: list[tuple[int, int, int]]
    """Row, cut, time_ns."""
    absent: tuple[tuple[int, str, int], ...]
    fields: dict[int, dict[str, Any]]
    is_one_clock: bool


def write(path: Path, trace: Trace) -> None:
    """Write the trace; an older file is replaced."""
    import pyarrow
    import pyarrow.parquet

    marks = zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), trace.mark_ns.tolist(), strict=True)
    plain = {row for row in trace.mark_row.tolist() if _is_plain(trace.fields.get(row, {}))}
    head = _Head(
        lives=[
            (life.node, life.life, life.end - life.first, life.wall_ns, life.time_ns, life.over_ns, life.torn)
            for life in trace.lives
        ],
        words=trace.words,
        cuts=trace.cuts,
        peers=trace.peers,
        marks=list(marks),
        absent=trace.absent,
        fields={row: dict(fields) for row, fields in trace.fields.items() if row not in plain},
        is_one_clock=trace.is_one_clock,
    )
    rows = len(trace)
    columns = {name: column for name in _COLUMNS if len(column := getattr(trace, name)) == rows}
    if len(trace.xid) == rows:
        codes = pyarrow.array(trace.xid, mask=trace.xid < 0)
        names = pyarrow.array(trace.xids, pyarrow.string())
        columns[_XID] = pyarrow.DictionaryArray.from_arrays(codes, names)
    table = pyarrow.table(columns).replace_schema_metadata({FORMAT: msgspec.json.encode(head), **SEALED})
    ascending = {name: "DELTA_BINARY_PACKED" for name in ("seq", "time_ns") if name in columns}
    pyarrow.parquet.write_table(
        table,
        path,
        compression="zstd",
        row_group_size=_GROUP_ROWS,
        use_dictionary=[name for name in columns if name not in ascending],
        column_encoding=ascending,
        write_page_checksum=True,
    )
    seal(path)


def read(path: Path, *, whole: bool = True) -> Trace:
    """The trace in such a file; `whole` False leaves out words, transactions and times, which verdicts can do without.

    Raises HistoryError if it is no such file or has changed, OSError if there is none.
    """
    with _damage_refused(path):
        file = opened_sealed(path)
        metadata = file.schema_arrow.metadata or {}
        if FORMAT not in metadata:
            raise ValueError("a table without that metadata")
        head = msgspec.json.decode(metadata[FORMAT], type=_Head)
        names = [name for name in (_COLUMNS if whole else _OF_VERDICTS) if name in file.schema_arrow.names]
        columns = _read(file, names)
        xid, xids = _transactions(file) if whole else (numpy.zeros(0, numpy.int32), ())
        marks = numpy.array(head.marks, numpy.int64).reshape(-1, 3)
        trace = Trace(
            lives=tuple(_lives(head)),
            **columns,
            xid=xid,
            xids=xids,
            mark_row=numpy.ascontiguousarray(marks[:, 0]),
            mark_cut=numpy.ascontiguousarray(marks[:, 1].astype(numpy.int32)),
            mark_ns=numpy.ascontiguousarray(marks[:, 2]),
            words=head.words,
            cuts=head.cuts,
            peers=head.peers,
            absent=head.absent,
            fields={**{int(row): {"cut": head.cuts[cut]} for row, cut, _ in head.marks}, **head.fields},
            is_one_clock=head.is_one_clock,
        )
        _check(trace)
        return trace


def _check(trace: Trace) -> None:
    """Raise ValueError if a code stands for nothing."""
    sends, receives = (trace.peer[trace.kind == kind] for kind in (SEND, RECEIVE))
    for name, codes, first, end in (
        ("kind", trace.kind, SEND, MARK + 1),
        ("seq", trace.seq, 0, 1 << 31),
        ("what", trace.what, -1, len(trace.words)),
        ("peer", sends, 0, len(trace.peers)),
        ("peer", receives, NOT_RECORDED, len(trace.lives)),
        ("mark", trace.mark_row, 0, len(trace)),
        ("kind of the mark of a cut", trace.kind[trace.mark_row], MARK, MARK + 1),
        ("cut", trace.mark_cut, 0, len(trace.cuts)),
    ):
        if len(codes) and not first <= codes.min() <= codes.max() < end:
            raise ValueError(f"{codes.max()} is no {name}")
    if len(trace.what) and {trace.words[code] for code in trace.what[trace.mark_row]} - {CUT_MARK}:
        raise ValueError("a colour change in a row that is no mark of a cut")


def _read(file: Any, names: list[str]) -> dict[str, Any]:
    """The columns, row group by row group, so that no second copy of all of them is there."""
    rows = file.metadata.num_rows
    columns = {name: numpy.empty(rows if name in names else 0, wanted) for name, wanted in _COLUMNS.items()}
    first = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=names)
        for name in names:
            columns[name][first : first + len(table)] = table.column(name).to_numpy()
        first += len(table)
    return columns


def _transactions(file: Any) -> tuple[Any, tuple[str, ...]]:
    """The codes of transactions by row, and their names."""
    if _XID not in file.schema_arrow.names:
        return numpy.zeros(0, numpy.int32), ()
    column = file.read(columns=[_XID]).column(_XID).dictionary_encode().unify_dictionaries().combine_chunks()
    if hasattr(column, "chunks"):  # a column without rows has no chunk
        return numpy.zeros(0, numpy.int32), ()
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False), tuple(column.dictionary.to_pylist())


def _lives(head: _Head) -> Iterator[Life]:
    first = 0
    for node, life, rows, *rest in head.lives:
        known: dict[str, Any] = dict(zip(LIFE, (node, life, *rest), strict=True))
        yield Life(first=first, end=first + rows, **known)
        first += rows


def _is_plain(fields: Mapping[str, Any]) -> bool:
    """Whether a colour change tells no more than the id of its cut."""
    return len(fields) == 1 and isinstance(fields.get("cut"), str)


@contextmanager
def _damage_refused(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, *_OF_DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise HistoryError(
            expected="a trace.parquet as it was written",
            came=f"{path.name}: {' '.join(str(error).split())}",
            attempt="read the trace files that it was made of",
        ) from error
