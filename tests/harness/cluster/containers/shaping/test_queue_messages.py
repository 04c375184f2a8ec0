"""The kernel's language for packets that wait: what it sends is read, what is sent it would read."""

from __future__ import annotations

import socket
import struct

from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.containers.shaping.queue_messages import (
    ACCEPT,
    PACKET,
    Answer,
    Packet,
    bind,
    decode,
    verdict,
)

SOURCE, TARGET = socket.inet_aton("10.213.0.11"), socket.inet_aton("10.213.0.12")


def from_kernel(number: int, size: int, *, hardware: bytes = b"") -> bytes:
    """A packet message as nfnetlink_queue.c puts it together."""
    header = struct.pack("=HH", 11, 1) + struct.pack(">IHB", number, 0x0800, 1) + b"\0"
    extra = struct.pack("=HH", 4 + len(hardware), 9) + hardware + bytes(-len(hardware) % 4)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + SOURCE + TARGET
    payload = struct.pack("=HH", 4 + len(ip), 10) + ip
    body = struct.pack(">BBH", socket.AF_INET, 0, 321) + header + extra + payload
    return struct.pack("=IHHII", 16 + len(body), PACKET, 0, 0, 0) + body


def test_packets_are_read_with_number_addresses_and_length() -> None:
    """Broken if the wrong packet is let go, or a link is taken for another."""
    told = list(decode(from_kernel(7, 1500, hardware=b"\1\2\3\4\5\6") + from_kernel(2**32 - 1, 40)))
    assert told == [Packet(7, SOURCE, TARGET, 1500), Packet(2**32 - 1, SOURCE, TARGET, 40)]


def test_answers_are_read() -> None:
    """Broken if a refusal of the kernel is taken for a yes."""
    refused = struct.pack("=IHHII", 36, 2, 0, 9, 0) + struct.pack("=i", -1) + bytes(16)
    granted = struct.pack("=IHHII", 36, 2, 0, 10, 0) + struct.pack("=i", 0) + bytes(16)
    assert list(decode(refused + granted)) == [Answer(9, 1), Answer(10, 0)]


def test_a_verdict_names_queue_packet_and_decision() -> None:
    """Broken if the kernel drops what was to go on."""
    message = verdict(321, 7, ACCEPT)
    assert len(message) == struct.unpack_from("=I", message)[0] == 32
    assert struct.unpack_from("=H", message, 4)[0] == 0x0301
    assert struct.unpack(">BBH", message[16:20]) == (0, 0, 321)
    assert struct.unpack("=HH", message[20:24]) == (12, 2)
    assert struct.unpack(">II", message[24:]) == (ACCEPT, 7)


def test_a_queue_is_opened_in_answered_steps_and_fails_open() -> None:
    """Broken if a busy harness would stop the network of a run."""
    requests = bind(321, 5, 1000)
    assert [struct.unpack_from("=I", request, 8)[0] for request in requests] == [5, 6, 7, 8]
    assert all(len(request) == struct.unpack_from("=I", request)[0] for request in requests)
    assert all(len(request) % 4 == 0 for request in requests)
    assert requests[-1].endswith(struct.pack("=HH", 8, 5) + struct.pack(">I", 1))


WHOLE = from_kernel(7, 1500) + struct.pack("=IHHII", 36, 2, 0, 9, 0) + struct.pack("=i", -1) + bytes(16)


@given(st.data())
def test_any_bytes_are_read_without_harm(data: st.DataObject) -> None:
    """Broken if a message that we do not know ends the process that holds packets."""
    changed = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))])
    for _ in range(data.draw(st.integers(0, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    for message in decode(bytes(changed)):
        assert isinstance(message, Packet | Answer)
