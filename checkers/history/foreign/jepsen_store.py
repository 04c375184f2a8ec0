"""Jepsen's binary record of a test, `test.jepsen`: its history, and what its checkers said.

    "JEPSEN" | u32 version | u64 offset of the index | block | block | …
    block:   u64 length, with these 28 bytes | u32 CRC-32 | u16 type | 14 bytes | data

| type | data |
|---|---|
| 1 index | u32 the root's block, then u32 block and u64 offset of each |
| 2 Fressian | one value; the root is the test, a map with references to the blocks of `:history` and `:results` |
| 3 partial map | u32 the block with the rest of the map (0: none), a map in Fressian |
| 4 stream | values in Fressian, one after the other |
| 5 big vector | u64 count, then u64 number of the first element and u32 block of each chunk |

All numbers are big-endian. The checksum is of the data, then of the 28 bytes with 0 as checksum. Version 0 has no types
4 and 5: its history is one value of type 2. A test that did not finish has as much history as its index knows.

Older tests have the whole test as one value of Fressian (`test.fressian`).

Source: github.com/jepsen-io/jepsen, `jepsen/store/format.clj`.
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from checkers.history.errors import HistoryError
from checkers.history.foreign.fressian import Buffer, Damaged, Values
from checkers.history.foreign.fressian_tags import BlockRef
from checkers.history.foreign.operation_maps import Maps, no_operations
from checkers.history.history import Header

_MAGIC: Final = b"JEPSEN"
_FILE: Final = struct.Struct(">6sIQ")
_BLOCK: Final = struct.Struct(">QIH14x")
_U32, _INDEX, _COUNT, _CHUNK = (struct.Struct(form) for form in (">I", ">IQ", ">Q", ">QI"))
_VERSIONS: Final = (0, 1)
_INDEX_TYPE, _FRESSIAN, _PARTIAL, _STREAM, _VECTOR = range(1, 6)
_TYPES: Final = ("index", "Fressian", "partial map", "stream", "big vector")


BEGINS: Final = re.compile(rb"JEPSEN\0|\xc0[\xe4-\xee]")
"""test.jepsen, or a map in Fressian (its code, then that of a list); no text has the byte C0."""


def parse(data: bytes) -> Maps:
    """The operation maps of such a test. Raises HistoryError."""
    try:
        operations = _operations(data)
    except (Damaged, RecursionError) as error:
        raise _damaged(error) from error
    if not isinstance(operations, list) or not operations:
        raise no_operations(
            "the test has no history (it is written at the end of a test, or every 16,384 operations)"
        )
    return Maps(operations, lambda place: place + 1, Header(system="jepsen"))


def results(path: Path) -> Any:
    """What the checkers of Jepsen said, as in results.edn; None if the test has no results.

    Raises HistoryError if the file is damaged, OSError or ValueError if it cannot be read at all.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _results(data)
        except (Damaged, RecursionError) as error:
            raise _damaged(error) from error


def _damaged(error: Damaged | RecursionError) -> HistoryError:
    return HistoryError(
        expected="a whole test.jepsen (Jepsen's store/format, version 0 or 1)",
        came=str(error) if isinstance(error, Damaged) else "values or blocks in each other without end",
        attempt="check that the file was copied whole, or give the history.edn or jepsen.log beside it",
    )


def _operations(data: Buffer) -> Any:
    if data[:6] != _MAGIC:
        return _test(Values(data, 0, len(data)).value()).get("history")
    blocks = _Blocks(data)
    history = blocks.test().get("history")
    return list(blocks.elements(history.block)) if isinstance(history, BlockRef) else history


def _results(data: Buffer) -> Any:
    if data[:6] != _MAGIC:
        return None  # a test.fressian would be read whole for its results
    blocks = _Blocks(data)
    found = blocks.test().get("results")
    return blocks.value(found.block) if isinstance(found, BlockRef) else found


def _test(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Damaged(f"{value!r:.40} in the place of the map of a test")
    return value


class _Blocks:
    """The blocks of a file. Each is read once at most, so that no file takes longer than its bytes."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        if len(data) < _FILE.size:
            raise Damaged(f"{len(data):,} bytes, which end before the first block")
        _, version, index = _FILE.unpack_from(data[: _FILE.size])
        if version not in _VERSIONS:
            raise Damaged(f"version {version:,} of the format")
        if index == 0:
            raise Damaged("no index of its blocks: the test ended before it was written")
        self._left = len(data)
        at, end = self._checked(index, {_INDEX_TYPE})[1:]
        self._offsets: dict[int, int] = dict(_INDEX.iter_unpack(self._whole(at + _U32.size, end, _INDEX)))
        (self._root,) = _U32.unpack(data[at : at + _U32.size])

    def test(self) -> dict[str, Any]:
        """The map of the test."""
        return _test(self.value(self._root))

    def value(self, block: int) -> Any:
        """The value in a block; of a partial map all of it."""
        kind, at, end = self._checked(self._offset(block), {_FRESSIAN, _PARTIAL})
        if kind == _FRESSIAN:
            return Values(self._data, at, end).value()
        (rest,) = _U32.unpack(self._bytes(at, end, _U32.size))
        found = Values(self._data, at + _U32.size, end).value()
        return found if rest == 0 else {**_test(self.value(rest)), **_test(found)}

    def elements(self, block: int) -> Iterator[Any]:
        """The values of a list: of a block with a list, a stream, or a vector of these."""
        kind, at, end = self._checked(self._offset(block), {_FRESSIAN, _STREAM, _VECTOR})
        if kind == _VECTOR:
            yield from self._chunks(at, end)
        elif kind == _STREAM:
            yield from Values(self._data, at, end)
        else:
            value = Values(self._data, at, end).value()
            if not isinstance(value, list | None):
                raise Damaged(f"{value!r:.40} in the place of a list")
            yield from value or ()

    def _chunks(self, at: int, end: int) -> Iterator[Any]:
        (count,) = _COUNT.unpack(self._bytes(at, end, _COUNT.size))
        found = 0
        for first, block in _CHUNK.iter_unpack(self._whole(at + _COUNT.size, end, _CHUNK)):
            if first != found:
                raise Damaged(f"a vector whose chunk begins with element {first:,} behind {found:,} elements")
            for value in self.elements(block):
                found += 1
                yield value
        if found != count:
            raise Damaged(f"a vector with {found:,} of its {count:,} elements")

    def _offset(self, block: int) -> int:
        if block not in self._offsets:
            raise Damaged(f"block {block:,}, which its index does not have")
        return self._offsets[block]

    def _checked(self, offset: int, kinds: set[int]) -> tuple[int, int, int]:
        """(type, where its data begin, where they end) of a block whose checksum is right."""
        if offset + _BLOCK.size > len(self._data):
            raise Damaged(f"{len(self._data):,} bytes, with a block at byte {offset:,}")
        header = self._data[offset : offset + _BLOCK.size]
        length, checksum, kind = _BLOCK.unpack(header)
        if not _BLOCK.size <= length <= len(self._data) - offset:
            raise Damaged(f"{len(self._data):,} bytes, with a block of {length:,} bytes at byte {offset:,}")
        self._left -= length
        if self._left < 0:
            raise Damaged("blocks that lie in each other")
        at, end = offset + _BLOCK.size, offset + length
        of_data = zlib.crc32(self._data[at:end])
        if zlib.crc32(header[:8] + bytes(4) + header[12:], of_data) != checksum:
            raise Damaged(f"a block at byte {offset:,} whose checksum does not fit")
        if kind not in kinds:
            name = _TYPES[kind - 1] if 0 < kind <= len(_TYPES) else f"type {kind}"
            raise Damaged(f"a block of {name} at byte {offset:,}, where it does not belong")
        return kind, at, end

    def _bytes(self, at: int, end: int, size: int) -> bytes:
        if end - at < size:
            raise Damaged(f"a block that ends at byte {end:,}, in the middle of a number")
        return self._data[at : at + size]

    def _whole(self, at: int, end: int, row: struct.Struct) -> bytes:
        """The bytes of a table of such rows."""
        if at > end or (end - at) % row.size:
            raise Damaged(f"a table that ends at byte {end:,}, in the middle of a row")
        return self._data[at:end]
