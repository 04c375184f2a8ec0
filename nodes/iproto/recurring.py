"""Blocks of rows that begin alike are unpacked once.

A node takes many snapshots. Each begins with the same several hundred rows of system spaces, which differ only in their
timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import pack, unpack_each
from nodes.iproto.rows import Wanted, rows_of

USERS_FROM = 512
"""The first id of a user space."""
KNOWN_MAX = 8
"""The beginnings that were met last are kept."""


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first `length` bytes of a block, as one number; `mask` has no bits at the timestamps."""

    length: int
    mask: int
    masked: int
    rows: list[Row]

    def begins(self, payload: bytes) -> bool:
        number = int.from_bytes(payload[: self.length])
        return len(payload) >= self.length and number & self.mask == self.masked


class Recurring:
    """`rows_of`, for many blocks whose first rows insert the same tuples into system spaces. The blocks share such a
    row object, which has the timestamp of the first block."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._known: list[_Beginning] = []

    def __call__(self, payload: bytes) -> list[Row]:
        """The wanted rows. Raises MalformedFrame."""
        known = (beginning for beginning in self._known if beginning.begins(payload))
        longest = max(known, key=lambda beginning: beginning.length, default=None)
        # A short block with the same first rows may have come before.
        if longest is None or _begins_with_system_insert(payload[longest.length :]):
            longest = self._learnt(payload)
        if longest.length:
            others = (beginning for beginning in self._known if beginning is not longest)
            self._known = [longest, *others][:KNOWN_MAX]
        return [*longest.rows, *rows_of(payload[longest.length :], self._wanted)]

    def _learnt(self, payload: bytes) -> _Beginning:
        mask = bytearray(b"\xff" * len(payload))
        length = begins = 0
        header: object = None
        for place, (value, end) in enumerate(unpack_each(payload)):
            if place % 2 == 0:
                header, body_at = value, end
                continue
            if not _is_system_insert(header, value):
                break
            match header:
                case {Key.TIMESTAMP.value: float(timestamp)}:
                    # The whole value: the key and the first byte of a float may stand in an lsn, too.
                    at = payload.find(pack(Key.TIMESTAMP.value) + pack(timestamp), begins, body_at)
                    if at >= 0:
                        mask[at + 2 : at + 10] = bytes(8)
            length = begins = end
        number = int.from_bytes(mask[:length])
        masked = int.from_bytes(payload[:length]) & number
        return _Beginning(length, number, masked, rows_of(payload[:length], self._wanted))


def _begins_with_system_insert(payload: bytes) -> bool:
    first = [value for value, _ in islice(unpack_each(payload), 2)]
    return len(first) == 2 and _is_system_insert(*first)


def _is_system_insert(header: object, body: object) -> bool:
    """Whether the two are an insert into a system space. A NOP has no body, so they may belong to two rows."""
    if (
        type(header) is not dict
        or type(body) is not dict
        or header.get(Key.REQUEST_TYPE.value) != Type.INSERT
    ):
        return False
    space = body.get(Key.SPACE_ID.value)
    return type(space) is int and space < USERS_FROM
