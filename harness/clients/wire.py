"""The parts of a protocol that the harness needs: to talk to nodes as their client, and to ask for their state.

Messages are values that only a system's client and its wire look into.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nodes.host.codec import Decoder
from nodes.world.network import Codec


class ClientWire(Protocol):
    @property
    def broken_framing(self) -> type[Exception]:
        """The exception that decoders raise for bytes that are no messages; see `nodes.host.codec.Codec`."""
        ...

    def encode(self, message: object) -> bytes: ...

    def client_decoder(self) -> Decoder:
        """For a connection that a client made. It is `greeted` when requests may be sent."""
        ...

    def request_id(self, message: object) -> int:
        """The number that its answer will carry."""
        ...

    def answers(self, message: object) -> int | None:
        """The number of the request that this message answers; None: it is no answer."""
        ...

    def status_request(self, number: int) -> object:
        """Asks a node for its state."""
        ...

    def status_of(self, answer: object) -> Mapping[str, object] | None:
        """The state in this answer; None if it has none."""
        ...

    @property
    def probe(self) -> bytes:
        """Harmless bytes that a client may send at once on a new connection, to check that bytes pass."""
        ...


class SimulatedWire(ClientWire, Codec, Protocol):
    """A wire with messages that also travel as bytes between simulated nodes."""

    def kinds_of(self, message: object) -> tuple[str, ...]:
        """The words for what a message between nodes is about ("vote"), for faults that wait for it. Empty if there
        are none."""
        ...
