"""Records in files: `[length, crc32, msgpack]`, the numbers in four bytes each.

The end of a file can be torn by a crash: an incomplete or wrong record with nothing whole behind it is cut off. A wrong
record before a whole one is damage, and refused: what it held may have been answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from nodes.iproto.errors import MalformedFrame
from nodes.iproto.packing import pack, unpack
from nodes.kernel.errors import StartRefused

Record = list[Any]
"""[kind, …]"""
Read = Callable[[str, bytes], tuple[list[Record], int]]
"""`records_of`, or a cache of it. Callers do not change a record."""

HEAD_BYTES = 8


def framed(record: Record) -> bytes:
    body = pack(record)
    return len(body).to_bytes(4) + crc32(body).to_bytes(4) + body


def records_of(name: str, data: bytes) -> tuple[list[Record], int]:
    """The whole records of a file, and where they end. Raises StartRefused."""
    records: list[Record] = []
    at = 0
    while at < len(data):
        found = _record_at(data, at)
        if found is None:
            if any(_record_at(data, later) for later in range(at + 1, len(data) - HEAD_BYTES)):
                raise StartRefused(f"{name} is damaged at byte {at}, with whole records behind it")
            break
        record, at = found
        records.append(record)
    return records, at


def _record_at(data: bytes, at: int) -> tuple[Record, int] | None:
    body_at = at + HEAD_BYTES
    length = int.from_bytes(data[at : at + 4])
    # A length of 0 is what a power loss leaves of a longer file.
    if length == 0 or body_at + length > len(data):
        return None
    body = data[body_at : body_at + length]
    if crc32(body) != int.from_bytes(data[at + 4 : body_at]):
        return None
    try:
        record = unpack(body)
    except MalformedFrame:
        return None
    return (record, body_at + length) if isinstance(record, list) else None
