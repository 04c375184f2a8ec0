"""The interface between a host and a node's protocol: how messages become bytes and bytes become messages.

One codec serves all links of a node. A decoder belongs to one link and holds what is left of a torn frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Decoder(Protocol):
    """The reading half of one link."""

    @property
    def greeted(self) -> bool:
        """The other side's greeting has come whole. On accepted links, where none comes, always true."""
        ...

    def feed(self, data: bytes) -> Sequence[object]:
        """The messages which these bytes complete; raises the codec's `broken_framing` if there is no going on."""
        ...


class Codec(Protocol):
    """How one system talks."""

    @property
    def broken_framing(self) -> type[Exception]:
        """The exception that decoders raise for bytes that are no frames: the link is closed then.

        Its attribute `messages`, if it has one, holds those that the same `feed` had decoded before the fault.
        """
        ...

    def accepted(self) -> tuple[bytes, Decoder]:
        """For a connection that we accepted: what we send first (may be empty), and what reads the answers to it."""
        ...

    def peer_decoder(self) -> Decoder:
        """For a connection that we made: a greeting comes first."""
        ...

    def encode(self, message: object) -> bytes: ...
