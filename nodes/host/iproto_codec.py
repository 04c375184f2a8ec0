"""Tarantool's binary protocol as a host's codec: one for every system that speaks it."""

from __future__ import annotations

import os
from typing import cast

from nodes.host.codec import Decoder
from nodes.iproto.errors import ProtocolError
from nodes.iproto.frames import ApplierDecoder, ServerDecoder, encode, greeting
from nodes.iproto.greeting import SERVER_VERSION
from nodes.iproto.messages import Message

SALT_SIZE = 32


class IprotoCodec:
    """The codec of IPROTO. It greets clients as 2.6.0 does under every protocol between nodes, because clients can use
    only the requests of 2.6.0.
    """

    broken_framing: type[Exception] = ProtocolError

    def __init__(self, instance_uuid: str) -> None:
        self._instance_uuid = instance_uuid

    def accepted(self) -> tuple[bytes, Decoder]:
        salt = os.urandom(SALT_SIZE)
        return greeting(SERVER_VERSION, self._instance_uuid, salt), ServerDecoder(salt=salt)

    def peer_decoder(self) -> Decoder:
        return ApplierDecoder()

    def encode(self, message: object) -> bytes:
        return encode(cast(Message, message))  # a node of this protocol sends nothing else
