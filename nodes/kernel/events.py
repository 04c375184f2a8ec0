"""The events that a node gets.

A node has no clock, socket or file. Its host (`nodes.host` in the real world, `nodes.world` in the simulator)
calls `node.step(event, now)` and carries out the effects that come back (`nodes.kernel.effects`).

A *link* is one live connection; the host numbers links and never uses a number twice in a node's life. Messages
on one link arrive in order or not at all; a link that ends says so once, with `Disconnected`. A link says nothing
if the node itself ended it, or if its peer is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instant:
    """One reading of a node's two clocks, in nanoseconds.

    `monotonic_ns` may drift or freeze but never goes back; `wall_ns` (since 1970) may jump. Timers are
    monotonic; the wall clock is only for what people read, and for the time of a cut in twophase.
    """

    monotonic_ns: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class Started:
    """The first event of a node's life: what its disk holds, file name → bytes."""

    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A client or peer connected to this node."""

    link: int


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection to `peer` of a `Connect` effect stands, and its greeting has come."""

    link: int
    peer: str


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """A `Connect` failed; `error` is for people."""

    peer: str
    error: str


@dataclass(frozen=True, slots=True)
class Received:
    """One message came on a link. Messages are values of the node's own protocol, some of them lists: a message that
    was sent or received is not changed, as the simulator hands the same object to both nodes."""

    link: int
    message: object


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The link ended: no more messages come from it, and messages to it are dropped."""

    link: int
    reason: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of a `SetTimer` with this name is over, and no later effect has set or cancelled the timer.

    In the simulator, the rate of the clock at that effect counts: if it has slowed down since, this comes early.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Persisted:
    """The record of this token is on disk.

    It may come *after* answers to the sends that stood behind the `Persist`: the real host delivers it at once,
    the virtual one late by chance.
    """

    token: int


@dataclass(frozen=True, slots=True)
class PersistFailed:
    """These records are not on disk and never will be, oldest first: the one that failed and all behind it."""

    tokens: tuple[int, ...]
    error: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """A clean stop is requested: send the last messages; the host closes everything afterwards."""


Event = (
    Started
    | Accepted
    | Connected
    | ConnectFailed
    | Received
    | Disconnected
    | TimerFired
    | Persisted
    | PersistFailed
    | Stopping
)
