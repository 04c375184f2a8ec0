"""The protocol of `nodes.framed` for clients: `["answer", number, …]` answers the request of that number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from nodes.framed import FramedCodec
from nodes.kernel.trace import Envelope

ANSWER = "answer"
STATUS = "status"


class Framed(FramedCodec):
    """Implements `harness.clients.wire.SimulatedWire`. `["status", number]` is answered by a map."""

    def request_id(self, message: object) -> int:
        return int(cast(list[Any], message)[1])

    def answers(self, message: object) -> int | None:
        match message:
            case [str() as word, int() as number, *_] if word == ANSWER:
                return number
        return None

    def status_request(self, number: int) -> object:
        return [STATUS, number]

    def status_of(self, answer: object) -> Mapping[str, object] | None:
        match answer:
            case [_, _, dict() as status]:
                return cast(Mapping[str, object], status)
        return None

    @property
    def probe(self) -> bytes:
        return self.encode([STATUS, 0])

    def kinds_of(self, message: object) -> tuple[str, ...]:
        """The message's own word; empty if it has none."""
        if isinstance(message, Envelope):
            message = message.message
        return (str(message[0]),) if isinstance(message, list) and message else ()


FRAMED = Framed()
