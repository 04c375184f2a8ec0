"""Connections of clients: one for each (process, node), made when first needed, closed at the first doubt.

The meaning of an outcome is decided here and nowhere else. As long as no byte of a request was handed to the kernel,
it was surely not done (`NotSent`); afterwards only its answer ends the doubt (`Replied`), everything else is `Lost`,
and the connection is closed so that a late answer reaches no client.
"""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from harness.clients.client import in_words
from harness.clients.operations import can_be_recorded
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.clients.wire import ClientWire

Waiting = asyncio.Future[Reply]


class Connection(asyncio.Protocol):
    """A client's connection. Requests in flight are matched by their numbers."""

    def __init__(self, wire: ClientWire, on_lost: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._wire = wire
        self._decoder = wire.client_decoder()
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, Waiting] = {}
        self.reason = ""
        """Why it was closed; "" while it was not."""
        self.greeted: asyncio.Future[bool] = loop.create_future()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and not self.reason

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._note_greeting()  # in some protocols the client begins
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._decoder.feed(data)
            self._note_greeting()
            self._settle_all(messages)
        except self._wire.broken_framing as error:
            self._settle_all(getattr(error, "messages", ()))
            self.abort(f"no answer in the store's protocol: {error}")
        except Exception as error:  # of a user's own wire
            self.abort(in_words(error))

    def _note_greeting(self) -> None:
        if self._decoder.greeted and not self.greeted.done():
            self.greeted.set_result(True)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None  # asyncio's abort may raise when it comes after the end
        self._lose("end of file" if error is None else _reason(error))

    def send(self, number: int, request: bytes | memoryview, deadline: float) -> Waiting:
        """Hand the request of this number to the kernel; returns its outcome. `deadline` is a time of the loop."""
        assert self.is_open
        assert self._transport is not None
        assert number not in self._waiting, f"request {number} is in flight"
        loop = asyncio.get_running_loop()
        waiting: Waiting = loop.create_future()
        self._waiting[number] = waiting
        timer = loop.call_at(deadline, self.abort, "timeout")
        waiting.add_done_callback(lambda _: timer.cancel())
        self._transport.write(request)
        return waiting

    def abort(self, reason: str) -> None:
        """Close at once; everything in flight is lost."""
        self._lose(reason)
        if self._transport is not None:
            self._transport.abort()

    def _settle_all(self, messages: Iterable[object]) -> None:
        for message in messages:
            number = self._wire.answers(message)
            if number is not None:
                self._settle(number, Replied(message))

    def _settle(self, number: int, reply: Reply) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def _lose(self, reason: str) -> None:
        if self.reason:
            return
        self.reason = reason
        if not self.greeted.done():
            self.greeted.set_result(False)
        for number in list(self._waiting):
            self._settle(number, Lost(reason))
        self._on_lost()


class Connections:
    """All connections of clients. `port_of` and `host_of` say where a node is dialed now.

    A process of a client has one request to a node at a time. Operators may have more, of numbers that differ.
    """

    def __init__(
        self, wire: ClientWire, port_of: Callable[[str], int], host_of: Callable[[str], str]
    ) -> None:
        self._wire = wire
        self._port_of = port_of
        self._host_of = host_of
        self._open: dict[tuple[int, str], Connection] = {}

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        """One request. Connecting, if it is needed, and the answer share the timeout."""
        deadline = asyncio.get_running_loop().time() + timeout_ns / 1e9
        try:
            number, encoded = self._wire.request_id(request), memoryview(self._wire.encode(request))
        except Exception as error:  # a client of a user's own may say anything
            return NotSent(in_words(error))
        connection = self._open.get((process, node))
        if connection is None or not connection.is_open:
            opened = await self._connect(process, node, deadline)
            if isinstance(opened, NotSent):
                return opened
            connection = opened
        try:
            return await connection.send(number, encoded, deadline)
        except asyncio.CancelledError:
            connection.abort("cancelled")
            raise

    def close(self) -> None:
        for connection in list(self._open.values()):
            connection.abort("closed")

    async def _connect(self, process: int, node: str, deadline: float) -> Connection | NotSent:
        key = process, node

        def forget() -> None:
            if self._open.get(key) is connection:
                del self._open[key]

        try:
            host, port = self._host_of(node), self._port_of(node)
        except KeyError:
            return NotSent(f"no node is called {node}")
        connection = Connection(self._wire, forget)
        try:
            async with asyncio.timeout_at(deadline):
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: connection, host, port)
                is_greeted = await connection.greeted
        except (OSError, ValueError) as error:  # a timeout, and a name that no host can have
            is_late = isinstance(error, TimeoutError)
            connection.abort("no greeting in time" if is_late else _reason(error))
            return NotSent(connection.reason)
        except asyncio.CancelledError:
            connection.abort("cancelled")
            raise
        if not is_greeted or not connection.is_open:  # what came with the greeting may have ended it
            return NotSent(f"no greeting: {connection.reason}")
        self._open[key] = connection
        return connection


class Admin:
    """A node's report of itself: a request on a connection of its own, past the relay."""

    def __init__(
        self, wire: ClientWire, port_of: Callable[[str], int], host_of: Callable[[str], str]
    ) -> None:
        self._wire = wire
        self._connections = Connections(wire, port_of, host_of)
        self._number = 0
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._why_silent: dict[str, str] = {}

    async def status(self, node: str, timeout_ns: int) -> Mapping[str, object] | None:
        async with self._turns[node]:
            self._number += 1
            request = self._wire.status_request(self._number)
            reply = await self._connections.call(0, node, request, timeout_ns)
        if not isinstance(reply, Replied):
            self._why_silent[node] = reply.reason
            return None
        status = None
        with suppress(Exception):  # a user's own store may answer anything
            status = self._wire.status_of(reply.response)
        if status is None or not can_be_recorded(status, dict[str, object]):
            self._why_silent[node] = f"not in its answer: {reply.response}"[:200]
            return None
        return status

    def why_silent(self, node: str) -> str:
        """Why the last `status` that was None was so; "" if none was."""
        return self._why_silent.get(node, "")

    def close(self) -> None:
        self._connections.close()


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
