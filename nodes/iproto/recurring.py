"""Blocks of rows that begin alike are unpacked once.

A node takes many snapshots. Each begins with the same several hundred rows of system spaces, which differ only in their
timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import pack, unpack_each
from nodes.iproto.rows import Wanted, rows_of

USERS_FROM = 512
"""The first id of a user space."""
KNOWN_MAX = 8


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
        if longest is None:
            longest = self._learnt(payload)
            if longest.length:
                self._known = [longest, *self._known[: KNOWN_MAX - 1]]
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
