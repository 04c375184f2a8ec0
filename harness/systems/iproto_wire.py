"""IPROTO, as Tarantool and our qsync nodes speak it; a node is asked for its state by a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from nodes.host.codec import Decoder
from nodes.iproto.decoders import ApplierDecoder, ClientDecoder, ServerDecoder
from nodes.iproto.errors import ProtocolError
from nodes.iproto.frames import encode
from nodes.iproto.greeting import greeting
from nodes.iproto.message_kinds import kinds_of
from nodes.iproto.messages import Answer, Call, Message, Ping, Refusal, Request

UUID = "00000000-0000-4000-8000-000000000000"
SALT = bytes(32)


@dataclass(frozen=True, slots=True)
class Iproto:
    """Implements `harness.clients.wire.SimulatedWire`."""

    status_function: str = "qsync.status"
    broken_framing: type[Exception] = ProtocolError
    probe: bytes = encode(Ping(1))

    def encode(self, message: object) -> bytes:
        return encode(cast(Message, message))  # nodes and clients send nothing else

    def request_id(self, message: object) -> int:
        return cast(Request, message).sync

    def answers(self, message: object) -> int | None:
        return message.sync if isinstance(message, Answer | Refusal) else None

    def status_request(self, number: int) -> object:
        return Call(number, self.status_function, ())

    def status_of(self, answer: object) -> Mapping[str, object] | None:
        match answer:
            case Answer(data=(dict() as status, *_)):
                return cast(Mapping[str, object], status)
        return None

    def greeting(self) -> bytes:
        return greeting("3.2.0", UUID, SALT)

    def server_decoder(self) -> Decoder:
        return ServerDecoder()

    def peer_decoder(self) -> Decoder:
        return ApplierDecoder()

    def client_decoder(self) -> Decoder:
        return ClientDecoder()

    def kinds_of(self, message: object) -> tuple[str, ...]:
        return kinds_of(message)


IPROTO = Iproto()
