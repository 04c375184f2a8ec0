"""The interface between a host and a node's protocol: how messages become bytes and bytes become messages.

One codec serves all links of a node. A decoder belongs to one link and keeps the bytes of an incomplete frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Decoder(Protocol):
    """The reading half of one link."""

    @property
    def greeted(self) -> bool:
        """The other side's greeting is complete. Always true on accepted links, where none comes."""
        ...

    def feed(self, data: bytes) -> Sequence[object]:
        """The messages that these bytes complete; raises the codec's `broken_framing` if the link cannot go on."""
        ...


class Codec(Protocol):
    """The protocol of one system."""

    @property
    def broken_framing(self) -> type[Exception]:
        """The exception that decoders raise for bytes that are no frames: the link is closed then.

        Its attribute `messages`, if any, has the messages that the same `feed` had decoded before the fault.
        """
        ...

    def accepted(self) -> tuple[bytes, Decoder]:
        """For an accepted connection: the bytes to send first (may be empty), and the decoder of what comes on it."""
        ...

    def peer_decoder(self) -> Decoder:
        """For a connection that this node made: a greeting comes first."""
        ...

    def encode(self, message: object) -> bytes: ...
