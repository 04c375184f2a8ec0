"""Blocks of xlog files: the kernel reads the usual ones itself, and takes nothing from an odd one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy
import pytest

from checkers.history.line_kernels import ABSENT
from checkers.logs.wal import row_kernels
from checkers.logs.wal.plain import Builder, packed
from checkers.logs.wal.row_kernels import (
    BEHIND,
    COUNT,
    DONE,
    FULL,
    HELD,
    LSN,
    NO_ROOM,
    ODD,
    POSITION,
    PackedRows,
)
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
from nodes.iproto.packing import pack
from nodes.iproto.rows import packed_row

SPACE_ID, KEY, TUPLE, INDEX = 0x10, 0x20, 0x21, 0x11
WRITE, NOP, CONFIRM = range(3)


def _checksum(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CHECKSUMS: Final = numpy.array([_checksum(byte) for byte in range(256)], dtype=numpy.int64)


class Reader:
    """The kernel with all that it needs."""

    def __init__(self, most: int = 50) -> None:
        self.builder = Builder(most)
        self.registers = numpy.zeros(row_kernels.REGISTERS, dtype=numpy.int64)

    def read(self, data: bytes) -> int:
        """The answer; `registers` say the rest. Every log begins at the place 0."""
        self.registers[POSITION] = 0
        padded = numpy.zeros(len(data) + BEHIND, dtype=numpy.uint8)
        padded[: len(data)] = numpy.frombuffer(data, dtype=numpy.uint8)
        bits = numpy.zeros(1, dtype=numpy.int64)
        return int(
            row_kernels.read_blocks(
                padded, len(data), self.registers, CHECKSUMS, self.builder.at, self.builder.seen, bits,
                bits.view(numpy.float64), PackedRows(**self.builder.columns),
            )
        )  # fmt: skip

    @property
    def rows(self) -> list[dict[str, Any]]:
        count = int(self.registers[COUNT])
        return [
            {name: column[row].item() for name, column in self.builder.columns.items()}
            for row in range(count)
        ]

    @property
    def held(self) -> list[int]:
        return self.builder.at[: self.registers[HELD]].tolist()


def write(lsn: int, key: str = "k", value: int = 7, **fields: Any) -> Row:
    body = {SPACE_ID: 512, TUPLE: (key, value)}
    usual = Row(Type.REPLACE, 1, lsn, 1.5, lsn, body=body, wait_sync=True, wait_ack=True)
    return replace(usual, **fields)


def block(*rows: Row) -> bytes:
    return xlog.encode_block(rows)


NUMBERS = (0, 1, 127, 128, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, 1 << 60)
USUAL: dict[str, tuple[Row, dict[str, Any]]] = {
    **{f"value {value}": (write(1, value=value), {"value": value}) for value in NUMBERS},
    **{f"{size} bytes": (write(1, size * "q"), {"key": size * "q"}) for size in (0, 7, 8, 9, 15)},
    **{f"lsn {lsn}": (write(lsn), {"lsn": lsn, "first": lsn}) for lsn in (127, 128, 65_535)},
    "insert": (write(1, type=Type.INSERT), {}),
    "asynchronous": (write(1, wait_ack=False), {"bits": 1}),
    "space": (write(1, body={SPACE_ID: 70_000, TUPLE: ("k", 7)}), {"space": 70_000}),
    "replica": (write(1, replica_id=31), {"origin": 31}),
    "time": (write(1, timestamp=1_700_000_000.25), {"time": int(1_700_000_000.25 * 1e9)}),
    "deletion": (write(1, type=Type.DELETE, body={SPACE_ID: 512, KEY: ("k",)}), {"value": ABSENT}),
    "deletion by index": (
        write(1, type=Type.DELETE, body={SPACE_ID: 512, INDEX: 0, KEY: ("k",)}),
        {"value": ABSENT},
    ),
    "no time": (write(1, timestamp=0.0), {"time": 0}),
    "another group": (write(1, group_id=2), {}),
    "nop": (
        Row(Type.NOP, 1, 1, 1.5, 1, wait_ack=True),
        {"kind": NOP, "space": 0, "value": ABSENT, "key": None},
    ),
    "confirm": (
        Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 3, 3: 300}),
        {
            "kind": CONFIRM,
            "lsn": 9,
            "first": 9,
            "owner": 3,
            "until": 300,
            "bits": 1,
            "space": 0,
            "value": ABSENT,
            "key": None,
        },
    ),
}
COLUMNS = {
    "kind": WRITE,
    "bits": 3,
    "waits": -1,
    "origin": 1,
    "owner": 0,
    "space": 512,
    "lsn": 1,
    "first": 1,
    "until": 0,
    "term": 0,
    "value": 7,
    "time": 1_500_000_000,
    "key": "k",
}


@pytest.mark.parametrize("name", USUAL)
def test_a_usual_row_is_read_by_the_kernel(name: str) -> None:
    """Broken, all large logs would be read as objects, in minutes, and all verdicts would be the same."""
    row, differing = USUAL[name]
    reader = Reader()
    assert reader.read(block(write(1, replica_id=30)) + block(row)) == DONE
    _, columns = reader.rows
    expected = COLUMNS | differing
    key = expected.pop("key")
    expected["head"], expected["tail"] = (0, 0) if key is None else packed(key)
    body = packed_row(row).removeprefix(packed_row(replace(row, body={})).removesuffix(b"\x80"))
    assert columns.pop("body") == row_kernels.hash_of(numpy.frombuffer(body, numpy.uint8), 0, len(body))
    assert columns == expected
    assert reader.held == [0, 1]


FIRST = write(1, tsn=1, is_commit=False)
LAST = write(2, tsn=1)
ODD_ROWS: dict[str, tuple[Row, ...]] = {
    "a text as value": (write(1, body={SPACE_ID: 512, TUPLE: ("k", "v")}),),
    "a number below 0": (write(1, value=-1),),
    "a number beyond 2^60": (write(1, value=(1 << 60) + 1),),
    "a number beyond 63 bits": (write(1, value=1 << 63),),
    "a number as key": (write(1, body={SPACE_ID: 512, TUPLE: (1, 7)}),),
    "a long key": (write(1, key=16 * "q"),),
    "three fields": (write(1, body={SPACE_ID: 512, TUPLE: ("k", 7, 7)}),),
    "a key of two parts": (write(1, type=Type.DELETE, body={SPACE_ID: 512, KEY: ("k", 7)}),),
    "a system space": (write(1, body={SPACE_ID: 511, TUPLE: ("k", 7)}),),
    "a space beyond 31 bits": (write(1, body={SPACE_ID: 1 << 31, TUPLE: ("k", 7)}),),
    "no tuple": (write(1, body={SPACE_ID: 512}),),
    "a key beside the tuple": (write(1, body={SPACE_ID: 512, TUPLE: ("k", 7), KEY: ("k",)}),),
    "an index of a replace": (write(1, body={SPACE_ID: 512, INDEX: 0, TUPLE: ("k", 7)}),),
    "an update": (write(1, type=Type.UPDATE, body={SPACE_ID: 512, KEY: ("k",), TUPLE: ("k", 7)}),),
    "a local row": (write(1, group_id=1),),
    "no replica": (write(1, replica_id=0),),
    "a replica beyond 31": (write(1, replica_id=32),),
    "a lsn beyond 31 bits": (write(1 << 31),),
    "a time before 1970": (write(1, timestamp=-1.5),),
    "a time beyond 63 bits": (write(1, timestamp=9.3e9),),
    "an owner beyond 31": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 32, 3: 1}),),
    "a confirm beyond 31 bits": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 1, 3: 1 << 31}),),
    "a confirm with a term": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 1, 3: 1, 0x53: 1}),),
    "a confirm without an owner": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={4: 1, 3: 1}),),
    "a confirm without an lsn": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 1, 4: 1}),),
    "a text as owner": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: "k", 3: 1}),),
    "a text as what is confirmed": (Row(Type.CONFIRM, 1, 9, 1.5, 9, body={2: 1, 3: "k"}),),
    "a rollback": (Row(Type.ROLLBACK, 1, 9, 1.5, 9, body={2: 1, 3: 1}),),
    "no first row": (LAST,),
    "no last row": (FIRST,),
    "a gap in a transaction": (FIRST, write(3, tsn=1)),
    "a row of another replica in it": (FIRST, replace(LAST, replica_id=2)),
    "a transaction in it": (FIRST, write(2)),
    "a confirm in it": (FIRST, Row(Type.CONFIRM, 1, 2, 1.5, 1, body={2: 1, 3: 1})),
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_of_an_odd_block_no_row_stays(name: str) -> None:
    """Broken, a row would be read wrongly, or twice, as the block is read again as objects."""
    reader = Reader()
    good = block(write(5), write(6))
    assert reader.read(good + block(write(7), *ODD_ROWS[name])) == ODD
    assert reader.registers[POSITION] == len(good)
    assert [row["lsn"] for row in reader.rows] == [5, 6]
    assert reader.held == [0, 1]
    assert {tuple(place) for place in numpy.argwhere(reader.builder.seen).tolist()} == {(1, 5), (1, 6)}


def test_a_transaction_of_several_rows_is_whole() -> None:
    reader = Reader()
    assert reader.read(block(FIRST, LAST) + block(write(3))) == DONE
    assert [(row["lsn"], row["first"], row["bits"]) for row in reader.rows] == [
        (1, 1, 2),
        (2, 1, 3),
        (3, 3, 3),
    ]


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (write(1), 1),
        (write(1, value=8), 2),
        (write(1, timestamp=1.75), 2),
        (write(1, wait_ack=False), 2),
        (write(1, type=Type.INSERT), 1),
        (Row(Type.CONFIRM, 1, 1, 1.5, 1, body={2: 1, 3: 1}), 2),
        (write(1, replica_id=2), 2),
    ],
)
def test_a_row_that_another_log_has_is_the_same_one(other: Row, count: int) -> None:
    """Broken, two logs with other rows at one lsn agree, or memory grows with the number of logs."""
    reader = Reader()
    assert [reader.read(block(row)) for row in (write(1), other, write(1))] == [DONE] * 3
    assert len(reader.rows) == count
    assert reader.held == [0, count - 1, 0]


def test_without_room_the_block_is_read_again() -> None:
    """Broken, a row would stand at a place that no array has: machine code does not check."""
    reader = Reader(most=2)
    first, second = block(write(1)), block(write(2), write(3))
    assert reader.read(first + second) == FULL
    assert (reader.registers[POSITION], len(reader.rows), reader.held) == (len(first), 1, [0])
    reader = Reader()
    beyond = reader.builder.seen.shape[1]
    assert reader.read(first + block(write(beyond))) == NO_ROOM
    assert (reader.registers[LSN], len(reader.rows)) == (beyond, 1)
    assert reader.read(block(write(beyond - 1))) == DONE


def test_a_block_with_any_other_byte_is_odd() -> None:
    """Broken, damage would be read as rows."""
    good = block(write(1))
    for place in range(len(good)):
        for bit in range(8):
            spoilt = bytearray(good)
            spoilt[place] ^= 1 << bit
            assert Reader().read(bytes(spoilt)) == ODD, (place, bit)
    for size in range(1, len(good)):
        assert Reader().read(good[:size]) == ODD


def test_no_row_ends_behind_its_block() -> None:
    """Broken, a row that is cut off would take its value from the next block."""
    cut = packed_row(write(1))[:-1]
    assert Reader().read(xlog.encode_packed([cut]) + block(write(2))) == ODD
    assert Reader().read(xlog.encode_packed([pack({})])) == ODD


@pytest.mark.parametrize("header", [{4: 1}, {4: 1.5, 5: 2}, {4: 1.5, 9: "k"}, {4: None}])
def test_an_odd_header_is_not_read(header: dict[int, object]) -> None:
    """Broken, a row would lose a field, or get another time."""
    body = pack({SPACE_ID: 512, TUPLE: ("k", 7)})
    usual = {0: Type.REPLACE.value, 2: 1, 3: 1}
    assert Reader().read(xlog.encode_packed([pack({**usual, 4: 1.5}) + body])) == DONE
    assert Reader().read(xlog.encode_packed([pack({**usual, **header}) + body])) == ODD
