"""One connection through the relay: two sockets, and a pipe for each direction between them.

A pipe carries bytes and, last, an end: `END` (the source said FIN) or `RESET` (it died, or a
fault resets the connection). An end stands in the same queue as the bytes and is withheld and delayed as they
are. When the link is clear and nothing waits, bytes go straight from one socket to the other.

Rules: order is kept; bytes leave the queue only into the sink's socket or with the death of the connection;
once `HELD_MAX` bytes wait here, the rest stays in the kernels, as back-pressure on the sender.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
import time
from collections import deque
from enum import Enum
from typing import Final, cast

from harness.cluster.relay.link import Link

HELD_MAX: Final = 1 << 20
PIECE_BYTES: Final = 1400
"""On a link with a rate bytes pass in pieces, as in packets; else a long answer would come all at once, much later."""
_LINGER_NONE: Final = struct.pack("ii", 1, 0)
_NO_COUNT: Final = bytes(4)


class Close(Enum):
    """How one direction ends."""

    END = "end"
    RESET = "reset"


class Side(asyncio.Protocol):
    """One of the two sockets: what it reads goes into `outgoing`, what `incoming` delivers is written to
    it."""

    __slots__ = ("connection", "dead", "file_number", "full", "incoming", "outgoing", "reading", "transport")

    outgoing: Pipe
    incoming: Pipe

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.transport: asyncio.Transport | None = None
        self.file_number = -1
        self.full = False
        self.reading = True
        self.dead = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Only what the kernel did not take at once may lie in asyncio's own buffer, where no cut can hold it.
        self.transport.set_write_buffer_limits(high=0)
        own_socket = transport.get_extra_info("socket")
        own_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file_number = own_socket.fileno()
        if self.incoming.delivered is Close.RESET:  # it was reset while it was being made
            self.reset()
            return
        # Not now: asyncio begins to read just after this call, in some versions even if asked not to.
        asyncio.get_running_loop().call_soon(self.connection.settle)

    def data_received(self, data: bytes) -> None:
        self.outgoing.take(data)

    def eof_received(self) -> bool:
        self.reading = False
        self.outgoing.close(Close.END)
        return True

    def pause_writing(self) -> None:
        self.full = True
        self.incoming.settle_reading()

    def resume_writing(self) -> None:
        self.full = False
        self.incoming.pump()

    def connection_lost(self, error: Exception | None) -> None:
        self.dead = True
        if error is not None:  # else we closed it, and the other side knows
            self.outgoing.close(Close.RESET)
        self.connection.side_died()

    def unread(self) -> int:
        """Bytes that the kernel holds for us."""
        if self.dead or self.file_number < 0:
            return 0
        return int(struct.unpack("i", fcntl.ioctl(self.file_number, termios.FIONREAD, _NO_COUNT))[0])

    def read(self, wanted: bool) -> None:
        if wanted == self.reading or self.transport is None:
            return
        self.reading = wanted
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def write_eof(self) -> None:
        if self.transport is not None and not self.dead:
            try:
                self.transport.write_eof()
            except OSError:  # the peer has reset it and we have not read that yet
                self.outgoing.close(Close.RESET)
                self.reset()

    def reset(self) -> None:
        """Close at once; the peer gets a RST."""
        if self.transport is not None and not self.dead:
            own_socket = self.transport.get_extra_info("socket")
            own_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
            self.transport.abort()


class Pipe:
    """One direction: from the `source` socket to the `sink` socket, over `link`."""

    __slots__ = (
        "closed",
        "connection",
        "delivered",
        "hangs_since_ns",
        "held",
        "held_bytes",
        "link",
        "sink",
        "source",
        "timer",
        "withheld_before",
        "withheld_since_ns",
    )

    def __init__(self, connection: Connection, link: Link[Pipe], source: Side, sink: Side) -> None:
        self.connection, self.link, self.source, self.sink = connection, link, source, sink
        self.held: deque[tuple[int, int, bytes | Close]] = deque()
        """(when it may pass, since when it waits, the item)."""
        self.held_bytes = 0
        self.closed: Close | None = None
        self.delivered: Close | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.withheld_before = 0
        self.withheld_since_ns: int | None = None
        self.hangs_since_ns: int | None = None

    def take(self, data: bytes) -> None:
        """Bytes were read from the source."""
        link, sink = self.link, self.sink
        if link.clear and not self.held and not sink.full and sink.transport is not None:
            link.passed += len(data)
            sink.transport.write(data)
        elif not sink.dead and not self.connection.frozen:
            piece_bytes = PIECE_BYTES if link.bytes_per_s else len(data)
            for start in range(0, len(data), piece_bytes):
                self._hold(data[start : start + piece_bytes])
            self.pump()

    def close(self, how: Close) -> None:
        """The source ended. A FIN is followed by nothing but, perhaps, a RST."""
        if self.closed is Close.RESET or self.closed is how:
            return
        self.closed = how
        self._hold(how)
        self.pump()

    def reset(self) -> None:
        """Let the sink get a RST as soon as the link passes anything; discard all that waits."""
        self.discard()
        if self.delivered is not Close.RESET:
            self.closed = Close.RESET
            self._hold(Close.RESET)
            self.pump()

    def discard(self) -> None:
        self.held.clear()
        self.held_bytes = 0

    def withheld(self) -> int:
        """Bytes that wait here or in the kernel for this direction to pass."""
        return self.held_bytes + self.source.unread()

    def has_held(self) -> bool:
        return bool(self.held) or self.hangs_since_ns is not None or self.withheld() > 0

    def pump(self) -> None:
        """Hand on whatever may go now."""
        now_ns = time.monotonic_ns()
        while self.held and self._may_pass():
            due_ns, taken_ns, item = self.held[0]
            if due_ns > now_ns:
                self._wake_at(due_ns)
                break
            self.held.popleft()
            if due_ns:
                self.link.was_late(taken_ns, now_ns)
            self._deliver(item)
        self.settle_reading()

    def hurry(self) -> None:
        """A fault that slowed the link is over: nothing waits for its time."""
        self.held = deque((0, taken_ns, item) for _, taken_ns, item in self.held)

    def settle_reading(self) -> None:
        """Read the source exactly when what it says may be taken."""
        wanted = (
            not self.link.is_cut
            and not self.sink.full
            and not self.sink.dead
            and self.sink.transport is not None
            and not self.connection.frozen
            and self.held_bytes < HELD_MAX
            and self.closed is None
        )
        if not self.source.dead and self.closed is None:
            self.source.read(wanted)

    def _may_pass(self) -> bool:
        if self.link.is_cut or self.connection.frozen or self.sink.full:
            return False
        return self.sink.transport is not None or self.held[0][2] is Close.RESET

    def _hold(self, item: bytes | Close) -> None:
        size = len(item) if isinstance(item, bytes) else 0
        now_ns = time.monotonic_ns()
        due_ns = self.link.due_ns(size, now_ns) if self.link.slows else 0
        self.held.append((due_ns, now_ns, item))
        self.held_bytes += size

    def _deliver(self, item: bytes | Close) -> None:
        if isinstance(item, bytes):
            self.held_bytes -= len(item)
            self.link.passed += len(item)
            if self.sink.transport is not None and not self.sink.dead:
                self.sink.transport.write(item)
            return
        self.delivered = item
        if item is Close.RESET:
            self.sink.reset()
        else:
            self.sink.write_eof()
        self.connection.pipe_delivered()

    def _wake_at(self, due_ns: int) -> None:
        # The timer may be of bytes that a healing let go, and later than these.
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_at(due_ns / 1e9, self.pump)


class Connection:
    """Dialed by `source`, meant for `target`. `forth` is source → target, `back` the answers.

    `frozen`: what was held of it was thrown away (its node lost power), so nothing may pass until it is
    reset.
    """

    __slots__ = (
        "back",
        "dialed",
        "dialing",
        "forgotten",
        "forth",
        "frozen",
        "number",
        "onward",
        "source",
        "target",
    )

    def __init__(self, number: int, forth: Link[Pipe], back: Link[Pipe]) -> None:
        self.number = number
        self.source, self.target = forth.name
        self.dialed, self.onward = Side(self), Side(self)
        self.forth = Pipe(self, forth, self.dialed, self.onward)
        self.back = Pipe(self, back, self.onward, self.dialed)
        self.dialed.outgoing = self.onward.incoming = self.forth
        self.onward.outgoing = self.dialed.incoming = self.back
        self.dialing = False
        self.frozen = False
        self.forgotten = False
        forth.pipes[self.forth] = None
        back.pipes[self.back] = None

    def settle(self) -> None:
        for pipe in (self.forth, self.back):
            pipe.pump()

    def reset(self) -> None:
        """End it on both sides, each as soon as the link towards it passes anything."""
        self.frozen = False
        self.forth.reset()
        self.back.reset()

    def freeze(self) -> None:
        self.frozen = True
        self.forth.discard()
        self.back.discard()
        self.settle()

    def side_died(self) -> None:
        """Bytes for a dead socket are discarded; the other side is not read any more."""
        for pipe in (self.forth, self.back):
            if pipe.sink.dead:
                pipe.discard()
                pipe.settle_reading()
        self._forget_if_over()

    def pipe_delivered(self) -> None:
        """FIN in both directions: the conversation is over."""
        if self.forth.delivered is not None and self.back.delivered is not None:
            for side in (self.dialed, self.onward):
                if side.transport is not None:
                    side.transport.close()
        self._forget_if_over()

    def forget(self) -> None:
        self.forgotten = True
        self.forth.link.pipes.pop(self.forth, None)
        self.back.link.pipes.pop(self.back, None)

    def _forget_if_over(self) -> None:
        onward_over = self.onward.dead or (self.onward.transport is None and self.dialed.dead)
        if self.dialed.dead and onward_over:
            self.forget()
