"""The rows of xlog files as columns: usual blocks are read by a kernel, the others one by one.

The same records as `harness.systems.qsync.logs` gives as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy

from checkers.compiled import load
from checkers.logs.wal import row_kernels
from checkers.logs.wal.plain import Builder, Part, StoredRecords, StoredTuples, Tuples
from checkers.logs.wal.record import NotPlain
from checkers.logs.wal.row_kernels import (
    BEHIND,
    COUNT,
    DONE,
    FULL,
    HELD,
    LSN,
    NO_ROOM,
    POSITION,
    REGISTERS,
    PackedRows,
)
from harness.systems.qsync.log_reader import LogReader, LogRow, Shared, read_block, records_of
from harness.systems.qsync.log_rows import data_of
from nodes.iproto import xlog
from nodes.iproto.messages import Row
from nodes.iproto.transactions import flaw_of

Array = Any  # numpy's
SHORTEST: Final = 19 + 15
"""Bytes that a block of one row has at least: its own, and a row's."""
SHORTEST_TUPLE: Final = 1 + 6 + 3
"""Bytes that a row of a snapshot has at least: the header, the body but for the tuple, and that."""
_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C, its bits from the last to the first."""


class Table(Builder):
    """The rows of all logs as columns. `size`: bytes of these logs; it grows if packed blocks hold more rows."""

    def __init__(self, size: int) -> None:
        super().__init__(size // SHORTEST + 1)
        self._registers = numpy.zeros(REGISTERS, dtype=numpy.int64)
        self._checksums = numpy.array([_checksum_of(byte) for byte in range(256)], dtype=numpy.int64)
        self._bits = numpy.zeros(1, dtype=numpy.int64)

    def decoded(self, data: bytes, oddly: Callable[[bytes], Sequence[Any]]) -> xlog.Xlog[Any]:
        """Put all rows of a file into the table. `oddly` puts those of unusual blocks; the answer has only these rows.

        Raises XlogError if it is no xlog, NotPlain if a transaction is not whole in its block.
        """
        begin = xlog.rows_at(data)
        if begin < 0:
            return xlog.decode(data, oddly)
        header = data[:begin]
        meta = xlog.decode(header, oddly).meta
        assert meta is not None
        rows: list[Any] = []
        while (begin := self._read(data, begin)) < len(data):
            plain = xlog.plain_block(data, begin)
            if plain is None:
                break
            block, end = plain
            if self._read(block, 0) < len(block):
                odd = xlog.decode(_HEADER + block, oddly)
                if odd.damage is not None:
                    break
                if flaw_of(odd.rows, meta) is not None:
                    raise NotPlain  # perhaps a transaction that goes on in the next block
                rows += odd.rows
            begin = end
        rest = xlog.decode(header + data[begin:], oddly)
        rows += rest.rows
        if rest.damage is None:
            return xlog.Xlog(rest.meta, tuple(rows), len(data), rest.finished, None)
        whole = xlog.decode(data, read_block)  # only so is it known what is wrong, and how many rows are good
        return replace(whole, rows=tuple(rows))

    def ends(self, begin: int) -> dict[int, int]:
        """Origin → the last lsn of its rows from a place in the table on."""
        at = self.at[begin : self.held]
        origins, lsns = self.columns["origin"][at], self.columns["lsn"][at]
        return {int(origin): int(lsns[origins == origin].max()) for origin in numpy.unique(origins)}

    def _read(self, data: bytes, begin: int) -> int:
        """Put usual blocks from `begin` on into the table; return where the first unusual one begins, or the end."""
        padded = numpy.zeros(len(data) - begin + BEHIND, dtype=numpy.uint8)
        padded[:-BEHIND] = numpy.frombuffer(data, dtype=numpy.uint8, offset=begin)
        registers = self._registers
        registers[POSITION], registers[COUNT], registers[HELD] = 0, self.count, self.held
        while (answer := self._read_blocks(padded)) in (NO_ROOM, FULL):
            if answer == FULL:
                self.grow()
            else:
                self.make_room(int(registers[LSN]))
        self.count, self.held = int(registers[COUNT]), int(registers[HELD])
        return begin + int(registers[POSITION])

    def _read_blocks(self, padded: Array) -> int:
        answer: int = load(row_kernels).read_blocks(
            padded, len(padded) - BEHIND, self._registers, self._checksums, self.at, self.seen, self._bits,
            self._bits.view(numpy.float64), PackedRows(**self.columns),
        )  # fmt: skip
        return answer


class InColumns(Shared):
    """Reads logs of so many bytes into one table."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = Table(size)
        rows_of_others = self.snapshots
        self.snapshots = lambda payload: rows_of_others(_read_tuples(payload)[1])

    def reader(self) -> LogReader:
        return _ColumnReader(self, self.table)


class _ColumnReader(LogReader):
    """Reads a log into a table of rows. Raises NotPlain."""

    def __init__(self, shared: Shared, table: Table) -> None:
        super().__init__(shared)
        self._table = table
        self._from = self._last = table.held
        self._parts: list[Part] = []

    def _tuples(self, rows: Sequence[Row], load: Callable[[], bytes]) -> StoredTuples:
        odd = Tuples.of(pair for row in rows if (pair := data_of(row)) is not None)

        def again() -> Tuples:
            parts = [odd]

            def take(payload: bytes) -> Sequence[Row]:
                parts.append(_read_tuples(payload)[0])
                return ()

            xlog.decode(load(), take)
            return Tuples.joined(parts)

        return StoredTuples(again)

    def _decoded(self, data: bytes) -> xlog.Xlog[LogRow]:
        self._last = self._table.held
        return self._table.decoded(data, self._read_oddly)

    def _flaw_in(self, log: xlog.Xlog[LogRow]) -> None:
        """None: the kernel and `Table.decoded` take only whole transactions."""

    def _read_oddly(self, payload: bytes) -> Sequence[LogRow]:
        rows = read_block(payload)
        for row in rows:
            if row.record is not None:
                self._table.put(row.record)
        return rows

    def _forget(self) -> None:
        self._from = self._last
        self._parts.clear()

    def _take(self, name: str, log: xlog.Xlog[LogRow], load: Callable[[], bytes], *, has_flags: bool) -> None:
        if not has_flags:
            raise NotPlain
        self._parts.append((self._table.held - self._last, lambda: records_of(name, load())))
        for origin, lsn in self._table.ends(self._last).items():
            self.vclock[origin] = max(lsn, self.vclock.get(origin, 0))
        for row in log.rows:
            self._pass(row)

    def taken(self) -> StoredRecords:
        return StoredRecords(self._table, self._from, self._table.held, self._parts)


def _read_tuples(payload: bytes) -> tuple[Tuples, bytes]:
    """The tuples that a block of a snapshot inserts into users' spaces, and the bytes of all other rows."""
    size = len(payload)
    padded = numpy.zeros(size + BEHIND, dtype=numpy.uint8)
    padded[:size] = numpy.frombuffer(payload, dtype=numpy.uint8)
    registers = numpy.zeros(REGISTERS, dtype=numpy.int64)
    columns = [numpy.empty(size // SHORTEST_TUPLE + 1, dtype=numpy.int64) for _ in range(4)]
    is_odd = numpy.zeros(size, dtype=bool)
    if load(row_kernels).read_tuples(padded, size, registers, *columns, is_odd) != DONE:
        return Tuples.of(()), payload
    tuples = Tuples(*(column[: registers[COUNT]].copy() for column in columns))
    return tuples, padded[:size][is_odd].tobytes()


_HEADER = xlog.encode_header("XLOG", "00000000-0000-0000-0000-000000000000", {})


def _checksum_of(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte
