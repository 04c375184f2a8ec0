"""Messages as lists in MessagePack, each behind its length in four bytes: the protocol of nodes that need no other.

A message is `[word, number, …]`. Requests and answers carry the number of the request. The side that accepted a
connection greets with `GREETING`. A message between nodes that are traced is `["#", seq, node, life, message]`
(`nodes.kernel.trace`). A length above `LONGEST`, or a frame that is no such list, breaks the framing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodes.iproto.errors import MalformedFrame, shown
from nodes.iproto.packing import pack, unpack
from nodes.kernel.trace import Envelope

GREETING: Final = b"framed messagepack 1\n"
LONGEST: Final = 64 * 1024 * 1024
ENVELOPE: Final = "#"
_LENGTH_BYTES: Final = 4


class BrokenFrames(Exception):
    """Bytes that are no messages. `messages` are those that stood before them."""

    def __init__(self, why: str, messages: Sequence[object]) -> None:
        super().__init__(why)
        self.messages = messages


class FramedDecoder:
    def __init__(self, *, greeted: bool) -> None:
        self.greeted = greeted
        self._rest = bytearray()

    def feed(self, data: bytes) -> Sequence[object]:
        """The messages that these bytes complete. Raises BrokenFrames."""
        self._rest += data
        if not self.greeted:
            if not GREETING.startswith(self._rest[: len(GREETING)]):
                raise BrokenFrames(f"expected the greeting {GREETING!r}, got {bytes(self._rest[:40])!r}", ())
            if len(self._rest) < len(GREETING):
                return ()
            del self._rest[: len(GREETING)]
            self.greeted = True
        messages: list[object] = []
        begin = 0  # what is read is cut off once, or a feed of many messages would take quadratic time
        while len(self._rest) - begin >= _LENGTH_BYTES:
            length = int.from_bytes(self._rest[begin : begin + _LENGTH_BYTES])
            if length > LONGEST:
                raise BrokenFrames(f"a message of {length} bytes, more than {LONGEST}", messages)
            end = begin + _LENGTH_BYTES + length
            if end > len(self._rest):
                break
            messages.append(_message(bytes(self._rest[begin + _LENGTH_BYTES : end]), messages))
            begin = end
        del self._rest[:begin]
        return messages


def _message(frame: bytes, before: Sequence[object]) -> object:
    try:
        message = unpack(frame)
    except MalformedFrame as error:
        raise BrokenFrames(str(error), before) from error
    match message:
        case [word, int() as seq, str() as node, int() as life, [str(), int(), *_] as inner] if (
            word == ENVELOPE
        ):
            return Envelope(node, life, seq, inner)
        case [str(), int(), *_]:
            return message
    raise BrokenFrames(f"expected [word, number, …], got {shown(message)}", before)


class FramedCodec:
    """Implements `nodes.host.codec.Codec` and `nodes.world.network.Codec`."""

    broken_framing: type[Exception] = BrokenFrames

    def encode(self, message: object) -> bytes:
        if isinstance(message, Envelope):
            message = [ENVELOPE, message.seq, message.node, message.life, message.message]
        packed = pack(message)
        return len(packed).to_bytes(_LENGTH_BYTES) + packed

    def accepted(self) -> tuple[bytes, FramedDecoder]:
        return GREETING, FramedDecoder(greeted=True)

    def greeting(self) -> bytes:
        return GREETING

    def server_decoder(self) -> FramedDecoder:
        return FramedDecoder(greeted=True)

    def peer_decoder(self) -> FramedDecoder:
        return FramedDecoder(greeted=False)

    def client_decoder(self) -> FramedDecoder:
        return FramedDecoder(greeted=False)
