"""IPROTO's bytes for the virtual network: the decoders that the real hosts and clients use."""

from __future__ import annotations

from typing import cast

from nodes.iproto.decoders import ApplierDecoder, ClientDecoder, ServerDecoder
from nodes.iproto.frames import encode
from nodes.iproto.greeting import greeting
from nodes.iproto.messages import Message
from nodes.world.network import Decoder

UUID = "00000000-0000-4000-8000-000000000000"
SALT = bytes(32)


class WireCodec:
    """Implements `nodes.world.network.Codec`."""

    def encode(self, message: object) -> bytes:
        return encode(cast(Message, message))  # nodes and clients send nothing else

    def greeting(self) -> bytes:
        return greeting("3.2.0", UUID, SALT)

    def server_decoder(self) -> Decoder:
        return ServerDecoder()

    def peer_decoder(self) -> Decoder:
        return ApplierDecoder()

    def client_decoder(self) -> Decoder:
        return ClientDecoder()


def message_bytes(message: object) -> int:
    """How many bytes it is on a real wire."""
    return len(encode(cast(Message, message)))
