"""The outcome of a message to a node: its answer, surely not done, or unknown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replied:
    """The server's answer or refusal came, a message of its protocol."""

    response: object


@dataclass(frozen=True, slots=True)
class NotSent:
    """No byte of the request reached the kernel: connection refused, no greeting in time. Surely not done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The request left and no answer came (reset, end of file, timeout): the outcome is unknown."""

    reason: str


Reply = Replied | NotSent | Lost
