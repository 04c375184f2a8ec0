"""Round trips from one namespace to an address, by ICMP: the kernels answer, no node has to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import time
from typing import Final

from harness.cluster.containers.shaping.namespace import Namespace

_ECHO: Final = 8
_REPLY: Final = 0
_HEADER = struct.Struct(">BBHHH")
_STAMP = struct.Struct(">Q")
_DATAGRAM_BYTES: Final = 2048


class Echo:
    """Sends echo requests from one namespace; None is ours. Raises OSError."""

    def __init__(self, namespace: Namespace | None) -> None:
        with contextlib.nullcontext() if namespace is None else namespace.inside():
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self._socket.setblocking(False)
        self._mark = int.from_bytes(os.urandom(2), "big")
        self._number = 0
        self._waiting: dict[int, asyncio.Future[int]] = {}
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    async def round_trip_ns(self, address: str, within_s: float) -> int | None:
        """The round trip to an address; None if no reply came in that time."""
        self._number = number = (self._number + 1) & 0xFFFF
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            self._socket.sendto(self._request(number), (address, 0))
            async with asyncio.timeout(within_s):
                return await answered
        except (TimeoutError, OSError):
            return None
        finally:
            self._waiting.pop(number, None)

    def _request(self, number: int) -> bytes:
        stamp = _STAMP.pack(time.monotonic_ns())
        checked = _HEADER.pack(_ECHO, 0, 0, self._mark, number) + stamp
        return _HEADER.pack(_ECHO, 0, _checksum(checked), self._mark, number) + stamp

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                data = self._socket.recv(_DATAGRAM_BYTES)
                body = data[(data[0] & 15) * 4 :]
                if len(body) < _HEADER.size + _STAMP.size:
                    continue
                kind, _, _, mark, number = _HEADER.unpack_from(body)
                waiting = self._waiting.get(number)
                if kind == _REPLY and mark == self._mark and waiting is not None and not waiting.done():
                    sent_ns = int(_STAMP.unpack_from(body, _HEADER.size)[0])
                    waiting.set_result(time.monotonic_ns() - sent_ns)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
