"""All operations of a run as columns, and the way back from a row to its lines in history.jsonl.

Values and errors stay in the file: a million of them would not fit into memory beside the rest. A row has the places of
its two lines, and `operations_at` reads them again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy
from numpy.typing import NDArray

from checkers.history import Event, HistoryError, Operation, segments
from checkers.history.columns import Columns
from checkers.history.errors import NOT_JSON
from checkers.history.operation import Outcome, paired
from checkers.history.record_lines import Lines

OK, FAIL, INFO = 0, 1, 2
OUTCOMES: tuple[Outcome, ...] = ("ok", "fail", "info")
READS = frozenset({"read", "dump"})
EXACT = 2**53
"""JavaScript counts exactly up to here; no history has such indexes or processes."""
AT_ONCE = 1 << 18
"""Rows handled at a time, so that temporary arrays stay small."""


@dataclass(frozen=True, slots=True)
class RunColumns:
    """In the order of invocation. `index` is the event of the invocation, `complete` that of the end (-1: none).

    `end_ns` is -1 without an end. `key` is a place in `keys`, -1 without a key. `places` gives where the two lines of
    some rows begin in the file, in bytes; that of the end is -1 without an end.
    """

    index: NDArray[numpy.int64]
    complete: NDArray[numpy.int64]
    start_ns: NDArray[numpy.int64]
    end_ns: NDArray[numpy.int64]
    process: NDArray[numpy.int64] | NDArray[numpy.int32]
    outcome: NDArray[numpy.int8]
    node: NDArray[numpy.int32]
    key: NDArray[numpy.int32]
    writes: NDArray[numpy.bool_]
    """True for every operation that is not a read."""
    final: NDArray[numpy.bool_]
    places: Callable[[NDArray[numpy.int64]], tuple[NDArray[numpy.int64], NDArray[numpy.int64]]]
    nodes: tuple[str, ...]
    keys: tuple[str, ...]
    kinds: Counter[tuple[str, Outcome]]
    """How many operations of each f ended how, before the final phase."""
    reads: Counter[tuple[str, str, str]]
    """How many answered reads each (node, role, read mode) served, before the final phase."""

    def __len__(self) -> int:
        return len(self.index)

    def of_keys(self, names: Iterable[str]) -> NDArray[numpy.bool_]:
        """Whether each operation is on one of these keys."""
        wanted = set(names)
        chosen = numpy.array([name in wanted for name in self.keys] + [False], dtype=bool)
        return chosen[self.key]


def parts(rows: int) -> Iterator[slice]:
    """Slices that cover so many rows, AT_ONCE in each."""
    return (slice(first, min(first + AT_ONCE, rows)) for first in range(0, rows, AT_ONCE))


def slices_of(times_ns: NDArray[numpy.int64], end_ns: int, slices: int) -> NDArray[numpy.int64]:
    """The number of the slice in which each time lies, if the time up to `end_ns` is cut into so many."""
    part = times_ns / max(end_ns, 1)  # a product of whole numbers would leave 64 bits after a month
    return numpy.minimum((part * slices).astype(numpy.int64), slices - 1)


def of_completion(columns: Columns, places: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """These operations in the order of completion; those without an end come last."""
    return places[numpy.argsort(_ends(columns)[places], kind="stable")]


def _ends(columns: Columns) -> NDArray[numpy.int64]:
    """The places of operations in the order of completion, with gaps."""
    open_ones = numpy.flatnonzero(columns.complete < 0)
    ends: NDArray[numpy.int64] = columns.complete.copy()
    ends[open_ones] = numpy.iinfo(numpy.int64).max - len(columns) + open_ones
    return ends


def run_columns(columns: Columns, lines: Lines) -> RunColumns:
    """As `Gathered.columns`, from operations that were read as columns. `lines`: where their lines begin."""
    outcome = (columns.type - 1).astype(numpy.int8)
    ends = _ends(columns)
    node, nodes = _in_order_met(columns.node, ends, columns.words)
    key, keys = _in_order_met(columns.key, ends, columns.words)
    is_read = numpy.isin(columns.f, [columns.code(name) for name in READS])
    has_key = numpy.array([word is not None for word in keys], dtype=numpy.bool_)
    number_of_key = numpy.where(has_key, numpy.cumsum(has_key) - 1, -1).astype(numpy.int32)
    load = ~columns.is_final
    answered = load & (outcome == OK) & (columns.f == columns.code("read"))
    kinds = _counted(columns.f[load], outcome[load])
    reads = _counted(*(codes[answered] for codes in (columns.node, columns.role, columns.mode)))
    words = columns.words

    def places(rows: NDArray[numpy.int64]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        complete = columns.complete[rows]
        return lines.begins(columns.invoke[rows]), numpy.where(complete < 0, -1, lines.begins(complete))

    return RunColumns(
        index=columns.invoke,
        complete=columns.complete,
        start_ns=columns.invoke_ns,
        end_ns=columns.complete_ns,
        process=columns.process,
        outcome=outcome,
        node=node,
        key=number_of_key[key] if len(keys) else key,
        writes=~is_read,
        final=columns.is_final,
        places=places,
        nodes=tuple(node or "" for node in nodes),
        keys=tuple(key for key in keys if key is not None),
        kinds=Counter({(str(words[f]), OUTCOMES[how]): many for (f, how), many in kinds.items()}),
        reads=Counter(
            {
                (words[at] or "", words[role] or "", words[mode] or ""): many
                for (at, role, mode), many in reads.items()
            }
        ),
    )


def _in_order_met(
    codes: NDArray[Any], order: NDArray[numpy.int64], words: Sequence[str | None]
) -> tuple[NDArray[numpy.int32], tuple[str | None, ...]]:
    """(a new number for each row, the word of each number). Codes are numbered as they first occur in `order`."""
    never = numpy.iinfo(numpy.int64).max
    first = numpy.full(len(words), never)
    numpy.minimum.at(first, codes, order)
    met = numpy.argsort(first, kind="stable")[: int((first < never).sum())]
    number = numpy.zeros(len(words), dtype=numpy.int32)
    number[met] = numpy.arange(len(met), dtype=numpy.int32)
    return number[codes], tuple(words[code] for code in met.tolist())


def _counted(*codes: NDArray[Any]) -> dict[tuple[int, ...], int]:
    """Combination of codes → how many rows have it."""
    if not len(codes[0]):
        return {}
    sizes = tuple(int(column.max()) + 1 for column in codes)
    together = codes[0].astype(numpy.int64)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        together = together * size + column
    rows, many = numpy.unique(together, return_counts=True)
    combinations = zip(*(column.tolist() for column in numpy.unravel_index(rows, sizes)), strict=True)
    return dict(zip(combinations, many.tolist(), strict=True))


@dataclass(slots=True)
class Gathered:
    """The columns while the file is read: in the order of completion."""

    whole: dict[str, array[int]] = field(
        default_factory=lambda: {
            name: array("q")
            for name in ("index", "complete", "start_ns", "end_ns", "process", "at", "end_at")
        }
    )
    outcome: array[int] = field(default_factory=lambda: array("b"))
    node: array[int] = field(default_factory=lambda: array("i"))
    key: array[int] = field(default_factory=lambda: array("i"))
    writes: array[int] = field(default_factory=lambda: array("b"))
    final: array[int] = field(default_factory=lambda: array("b"))
    nodes: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    kinds: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    reads: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def take(self, operation: Operation, at: int, end_at: int) -> None:
        complete = -1 if operation.complete_index is None else operation.complete_index
        if max(abs(operation.invoke_index), abs(complete), abs(operation.process)) >= EXACT:
            return
        whole, end_ns = self.whole, operation.complete_ns
        whole["index"].append(operation.invoke_index)
        whole["complete"].append(complete)
        whole["start_ns"].append(operation.invoke_ns)
        whole["end_ns"].append(-1 if end_ns is None else max(end_ns, operation.invoke_ns))
        whole["process"].append(operation.process)
        whole["at"].append(at)
        whole["end_at"].append(end_at)
        self.outcome.append(OUTCOMES.index(operation.type))
        self.node.append(self.nodes.setdefault(operation.node or "", len(self.nodes)))
        key = operation.key
        self.key.append(-1 if key is None else self.keys.setdefault(key, len(self.keys)))
        self.writes.append(operation.f not in READS)
        self.final.append(operation.phase == "final")
        if operation.phase != "final":
            self.kinds[operation.f, operation.type] += 1
            if operation.f == "read" and operation.type == "ok":
                self.reads[operation.node or "", operation.role or "", operation.mode or ""] += 1

    def columns(self) -> RunColumns:
        order = numpy.argsort(numpy.array(self.whole["index"], dtype=numpy.int64), kind="stable")
        whole = {name: numpy.array(values, dtype=numpy.int64)[order] for name, values in self.whole.items()}
        at, end_at = whole.pop("at"), whole.pop("end_at")
        return RunColumns(
            **whole,
            outcome=numpy.array(self.outcome, dtype=numpy.int8)[order],
            node=numpy.array(self.node, dtype=numpy.int32)[order],
            key=numpy.array(self.key, dtype=numpy.int32)[order],
            writes=numpy.array(self.writes, dtype=numpy.bool_)[order],
            final=numpy.array(self.final, dtype=numpy.bool_)[order],
            places=lambda rows: (at[rows], end_at[rows]),
            nodes=tuple(self.nodes),
            keys=tuple(self.keys),
            kinds=self.kinds,
            reads=self.reads,
        )


def operations_at(
    history: Path, columns: RunColumns, rows: NDArray[numpy.int64]
) -> Iterator[tuple[int, Operation]]:
    """(row, its operation) in the order of `rows`. A line that cannot be read any more is left out."""
    if not len(rows):
        return
    decode = msgspec.json.Decoder(Event).decode
    try:
        with segments.stream(history) as file:
            for row, at, end_at in zip(
                rows.tolist(), *map(numpy.ndarray.tolist, columns.places(rows)), strict=True
            ):
                try:
                    invoke = decode(_line(file, at))
                    yield row, paired(invoke, None if end_at < 0 else decode(_line(file, end_at)))
                except (*NOT_JSON, AssertionError):
                    continue
    except (OSError, HistoryError):
        return


def _line(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.readline()
