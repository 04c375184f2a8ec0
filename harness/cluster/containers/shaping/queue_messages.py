"""nfnetlink_queue, the protocol in which the kernel hands packets to a program and gets verdicts on them.

A message is a netlink header (length, type, flags, sequence, port: native), a netfilter header (family, version,
resource: the queue's number, big-endian) and attributes (length, type: native; value, padded to four bytes). Source:
linux/netfilter/nfnetlink_queue.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

QUEUE_SUBSYSTEM: Final = 3
PACKET, VERDICT, CONFIG = (QUEUE_SUBSYSTEM << 8 | kind for kind in (0, 1, 2))
ERROR: Final = 2
DROP, ACCEPT = 0, 1
REQUEST, ACKNOWLEDGE = 1, 4
IP_HEADER_BYTES: Final = 20

_HEADER = struct.Struct("=IHHII")
_FAMILY = struct.Struct(">BBH")
_ATTRIBUTE = struct.Struct("=HH")
_VERDICT = struct.Struct(">II")
_ID = struct.Struct(">I")
_ERROR = struct.Struct("=i")
_COMMAND = struct.Struct(">BBH")
_COPY = struct.Struct(">IB")
_LENGTH = struct.Struct(">H")
_BODY = _HEADER.size + _FAMILY.size
_VERDICT_HEADER = 2
_CONFIG_COMMAND, _CONFIG_COPY, _CONFIG_LENGTH, _CONFIG_MASK, _CONFIG_FLAGS = 1, 2, 3, 4, 5
_BIND, _COPY_PACKETS, _FAIL_OPEN = 1, 2, 1
_TYPE_OF_ATTRIBUTE: Final = 0x3FFF
_IPV4: Final = 2


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that waits in the kernel: its number in the queue, its addresses (4 bytes each), its length in bytes."""

    id: int
    source: bytes
    target: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The kernel's answer to a request: 0, or the number of an error."""

    sequence: int
    error_number: int


def decode(data: bytes) -> Iterator[Packet | Answer]:
    """The packets and answers of one datagram; other messages are skipped."""
    place = 0
    while place + _HEADER.size <= len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, place)
        if length < _HEADER.size:
            return
        if kind == PACKET:
            packet = _packet(data, place + _BODY, min(place + length, len(data)))
            if packet is not None:
                yield packet
        elif kind == ERROR and place + _HEADER.size + _ERROR.size <= len(data):
            yield Answer(sequence, -_ERROR.unpack_from(data, place + _HEADER.size)[0])
        place += _aligned(length)


def _packet(data: bytes, place: int, end: int) -> Packet | None:
    number, payload = -1, 0
    while place + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        value, room = place + _ATTRIBUTE.size, length - _ATTRIBUTE.size
        if room < 0 or place + length > end:
            break
        match kind & _TYPE_OF_ATTRIBUTE:
            case 1 if room >= _ID.size:  # NFQA_PACKET_HDR
                number = _ID.unpack_from(data, value)[0]
            case 10 if room >= IP_HEADER_BYTES:  # NFQA_PAYLOAD
                payload = value
        place += _aligned(length)
    if number < 0:
        return None
    if not payload:
        return Packet(number, b"", b"", 0)
    (size,) = _LENGTH.unpack_from(data, payload + 2)
    return Packet(number, data[payload + 12 : payload + 16], data[payload + 16 : payload + 20], size)


def verdict(queue: int, packet: int, decision: int) -> bytes:
    """The verdict on a packet; the kernel does not answer."""
    return _message(VERDICT, queue, _attribute(_VERDICT_HEADER, _VERDICT.pack(decision, packet)), REQUEST, 0)


def bind(queue: int, sequence: int, longest: int) -> list[bytes]:
    """The requests that open a queue of at most `longest` packets, of which we see the IP header; each is answered."""
    attributes = (
        _attribute(_CONFIG_COMMAND, _COMMAND.pack(_BIND, 0, _IPV4)),
        _attribute(_CONFIG_COPY, _COPY.pack(IP_HEADER_BYTES, _COPY_PACKETS)),
        _attribute(_CONFIG_LENGTH, _ID.pack(longest)),
        _attribute(_CONFIG_MASK, _ID.pack(_FAIL_OPEN)) + _attribute(_CONFIG_FLAGS, _ID.pack(_FAIL_OPEN)),
    )
    flags = REQUEST | ACKNOWLEDGE
    return [
        _message(CONFIG, queue, attribute, flags, sequence + place)
        for place, attribute in enumerate(attributes)
    ]


def _message(kind: int, queue: int, attributes: bytes, flags: int, sequence: int) -> bytes:
    length = _BODY + len(attributes)
    return _HEADER.pack(length, kind, flags, sequence, 0) + _FAMILY.pack(0, 0, queue) + attributes


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
