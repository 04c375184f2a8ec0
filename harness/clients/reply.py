"""The outcome of a message to a node: its answer, surely not done, or unknown."""

from __future__ import annotations

import msgspec


class Replied(msgspec.Struct, frozen=True, gc=False):
    """The server's answer or refusal came, a message of its protocol."""

    response: object


class NotSent(msgspec.Struct, frozen=True, gc=False):
    """No byte of the request reached the kernel: connection refused, no greeting in time. Surely not done."""

    reason: str


class Lost(msgspec.Struct, frozen=True, gc=False):
    """The request left and no answer came (reset, end of file, timeout): the outcome is unknown."""

    reason: str


Reply = Replied | NotSent | Lost
