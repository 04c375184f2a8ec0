"""TCP connections as numbered links.

An accepted connection is a link at once: the host greets, and the node gets `Accepted`. A connection that the node made
becomes a link when the other side's greeting is complete. If that fails, or takes GREETING_TIMEOUT_S, the node gets
`ConnectFailed`. Numbers count up from 1 and are never reused.

Writes gather until `flush`, which the host calls once per turn of the loop. A link holds at most OUTPUT_LIMIT bytes; it
is closed beyond, because its other side does not read. (asyncio turns Nagle's algorithm off on every TCP socket.)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from nodes.host.codec import Codec, Decoder
from nodes.host.log import NodeLog
from nodes.kernel.events import Accepted, Connected, ConnectFailed, Disconnected, Event, Received

GREETING_TIMEOUT_S = 2.0
LINGER_S = 2.0
OUTPUT_LIMIT = 64 << 20
INPUT_CHUNK = 16 << 10  # what one link may bring in before the next link and the disk have their turn


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Link(asyncio.BufferedProtocol):
    """One connection. `number` is 0 until an event has it; `muted`: the node gets no more events of it."""

    def __init__(
        self, links: Links, decoder: Decoder, peer: str | None, chunk: memoryview, greeting: bytes = b""
    ) -> None:
        self.number = 0
        self.greeting = greeting
        self.peer = peer
        self.muted = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._links = links
        self._decoder = decoder
        self._chunk = chunk
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._transport: asyncio.Transport | None = None
        self._is_lost = False
        self._reason: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.peer is None:
            self._links.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._chunk  # shared by all links: a chunk is consumed before the loop reads again

    def buffer_updated(self, size: int) -> None:
        try:
            messages = self._decoder.feed(bytes(self._chunk[:size]))
        except self._links.broken_framing as error:
            self._received(getattr(error, "messages", ()))
            self.fail(f"broken framing: {error}")
        else:
            self._received(messages)

    def _received(self, messages: Sequence[object]) -> None:
        if not self.number:
            if not self._decoder.greeted:
                return
            self._links.opened(self)
        deliver, number = self._links.deliver, self.number
        for message in messages:
            if self.muted:
                return
            deliver(Received(number, message))

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        reason = self._reason or (_sentence(error) if error else "closed by the other side")
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(reason))
            self.opened.exception()  # retrieved here, because the waiter may be gone; that is not a mistake
        self._links.ended(self, reason)

    def write(self, data: bytes) -> bool:
        """Gather data; True if it is the first since the last flush."""
        self._pending.append(data)
        self._pending_size += len(data)
        return len(self._pending) == 1

    def flush(self) -> None:
        transport = self._transport
        assert transport is not None
        data, size = b"".join(self._pending), self._pending_size
        self._pending.clear()
        self._pending_size = 0
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() + size > OUTPUT_LIMIT:
            self.fail(f"the other side does not read: over {OUTPUT_LIMIT >> 20} MiB wait for it")
        else:
            transport.write(data)

    def close(self) -> None:
        """Close the link when the written data is sent, or after LINGER_S."""
        self.muted = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        # asyncio's own abort raises if the connection was closed with unsent bytes, and has ended since.
        if self._transport is not None and not self._is_lost:
            self._transport.abort()

    def fail(self, reason: str) -> None:
        """Close a link that cannot go on; the node gets `reason` when the socket is closed."""
        self._reason = reason
        self._links.failed(self, reason)
        self.abort()

    def connected_to_itself(self) -> bool:
        """Whether both ends are the same: by TCP's simultaneous open, dialling a free local port can do that."""
        assert self._transport is not None
        own, peer = (self._transport.get_extra_info(name) for name in ("sockname", "peername"))
        return own is not None and own == peer


class Links:
    """All connections of one node."""

    def __init__(
        self, codec: Codec, peers: Mapping[str, Address], deliver: Callable[[Event], None], log: NodeLog
    ) -> None:
        self.deliver = deliver
        self.broken_framing = codec.broken_framing
        self._codec = codec
        self._peers = peers
        self._log = log
        self._chunk = memoryview(bytearray(INPUT_CHUNK))
        self._by_number: dict[int, Link] = {}
        self._last_number = 0
        self._unflushed: list[Link] = []
        self._dials: set[asyncio.Task[None]] = set()
        self._encoded: tuple[object, bytes] = (None, b"")

    def accept(self) -> Link:
        """The protocol factory of the listening socket."""
        greeting, decoder = self._codec.accepted()
        return Link(self, decoder, None, self._chunk, greeting)

    def connect(self, peer: str) -> None:
        dial = asyncio.get_running_loop().create_task(self._dial(peer))
        self._dials.add(dial)
        dial.add_done_callback(self._dials.discard)

    def send(self, number: int, message: object) -> None:
        if link := self._by_number.get(number):
            self._write(link, self._bytes(message))

    def hears(self, number: int) -> bool:
        """Whether the node still gets messages of this link."""
        link = self._by_number.get(number)
        return link is not None and not link.muted

    def mute(self, number: int) -> None:
        """The node has ended this link: it gets no more events of it."""
        if link := self._by_number.get(number):
            link.muted = True

    def disconnect(self, number: int) -> None:
        if link := self._by_number.get(number):
            link.flush()
            link.close()

    def flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for link in unflushed:
            link.flush()

    async def close(self) -> None:
        """End all links; written data is still sent, for at most LINGER_S."""
        for dial in tuple(self._dials):
            dial.cancel()
        self.flush()
        links = tuple(self._by_number.values())
        for link in links:
            link.close()
        deadline_s = asyncio.get_running_loop().time() + LINGER_S
        while self._by_number and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(0.001)

    def opened(self, link: Link) -> None:
        """A connection became a link."""
        self._last_number += 1
        link.number = self._last_number
        if not link.opened.done():  # it is when the greeting came in the very moment of giving up
            link.opened.set_result(None)
        self._by_number[link.number] = link
        if link.peer is None:
            self._write(link, link.greeting)
            self.flush()
            self.deliver(Accepted(link.number))
        else:
            self.deliver(Connected(link.number, link.peer))

    def ended(self, link: Link, reason: str) -> None:
        self._by_number.pop(link.number, None)
        if link.number and not link.muted:
            link.muted = True
            self.deliver(Disconnected(link.number, reason))

    def failed(self, link: Link, reason: str) -> None:
        self._log.line("warning", "link closed", {"link": link.number, "peer": link.peer, "reason": reason})

    def _write(self, link: Link, data: bytes) -> None:
        if link.write(data):
            self._unflushed.append(link)

    def _bytes(self, message: object) -> bytes:
        """A message for several links is encoded once."""
        last, data = self._encoded
        if message is not last:
            data = self._codec.encode(message)
            self._encoded = (message, data)
        return data

    async def _dial(self, peer: str) -> None:
        link = Link(self, self._codec.peer_decoder(), peer, self._chunk)
        error = await self._error_of_dialling(link, self._peers.get(peer))
        if error is not None and not link.number:
            link.muted = True
            link.abort()
            self.deliver(ConnectFailed(peer, error))

    async def _error_of_dialling(self, link: Link, address: Address | None) -> str | None:
        if address is None:
            return "no address is known for this peer"
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: link, address.host, address.port)
                if link.connected_to_itself():
                    return "no process listens there"
                await link.opened
        except TimeoutError:
            return f"no greeting within {GREETING_TIMEOUT_S:g} s"
        except OSError as error:
            return _sentence(error)
        return None


def _sentence(error: Exception) -> str:
    code = error.errno if isinstance(error, OSError) else None
    return os.strerror(code).lower() if code is not None and code > 0 else str(error)
