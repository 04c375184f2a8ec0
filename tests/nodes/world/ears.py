"""Ends of connections that write down what they hear, and a node that does what it is told."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from nodes.kernel.chance import Streams
from nodes.kernel.effects import Effect, Persist
from nodes.kernel.events import Event, Instant, Started
from nodes.world.agenda import Agenda
from nodes.world.network import MILLISECOND, Codec, Network


@dataclass(eq=False)
class Ear:
    """An endpoint of the network."""

    name: str
    network: Network
    heard: list[tuple[int, object]] = field(default_factory=list)
    """(link, what): messages, and "accepted", "connected", "failed: …", "ended: …"."""

    def accepted(self, link: int) -> None:
        self.heard.append((link, "accepted"))
        self.network.greet(link, self)

    def connected(self, link: int) -> None:
        self.heard.append((link, "connected"))

    def connect_failed(self, link: int, reason: str) -> None:
        self.heard.append((link, f"failed: {reason}"))

    def received(self, link: int, message: object) -> None:
        self.heard.append((link, message))

    def ended(self, link: int, reason: str) -> None:
        self.heard.append((link, f"ended: {reason}"))

    def messages(self, link: int) -> list[object]:
        return [what for heard_on, what in self.heard if heard_on == link and not isinstance(what, str)]

    def words(self, link: int) -> list[str]:
        return [what for heard_on, what in self.heard if heard_on == link and isinstance(what, str)]


class Party:
    """Ears a, b, c … on one network."""

    def __init__(self, seed: int, names: Sequence[str] = ("a", "b"), codec: Codec | None = None) -> None:
        self.agenda = Agenda()
        self.network = Network(self.agenda, Streams(seed), codec)
        self.chance = random.Random(seed)
        self.ears = {name: Ear(name, self.network) for name in names}
        for ear in self.ears.values():
            self.network.add(ear)

    def connected(self, source: str, target: str) -> int:
        link = self.network.connect(self.ears[source], target)
        self.run(50)
        assert self.ears[source].words(link) == ["connected"]
        return link

    def send(self, link: int, source: str, *messages: object) -> None:
        for message in messages:
            self.network.send(link, self.ears[source], message)

    def run(self, milliseconds: float) -> None:
        run(self.agenda, milliseconds)


def run(agenda: Agenda, milliseconds: float) -> None:
    """Let virtual time pass."""
    woken: list[bool] = []
    agenda.at(agenda.now_ns + int(milliseconds * MILLISECOND), woken.append, True)
    while not woken:
        agenda.advance()


class Lines:
    """A codec for whole numbers: each is a line of decimal digits; the greeting is an empty line."""

    def encode(self, message: object) -> bytes:
        return f"{message}\n".encode()

    def greeting(self) -> bytes:
        return b"\n"

    def server_decoder(self) -> LinesDecoder:
        return LinesDecoder()

    peer_decoder = client_decoder = server_decoder


class LinesDecoder:
    def __init__(self) -> None:
        self._left = b""

    def feed(self, data: bytes) -> list[object]:
        *lines, self._left = (self._left + data).split(b"\n")
        return [int(line) for line in lines if line]


class Puppet:
    """A node that notes its events and does what it was ordered to do at them; all else it lets be."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.instants: list[Instant] = []
        self._orders: dict[type, deque[list[Effect]]] = {}
        self.files: dict[str, bytes] = {}

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        self.events.append(event)
        self.instants.append(now)
        if isinstance(event, Started):
            self.files = dict(event.files)
        orders = self._orders.get(type(event))
        return orders.popleft() if orders else []

    def order(self, kind: type, *effects: Effect) -> None:
        """What to do at the next event of a kind for which no order stands yet."""
        self._orders.setdefault(kind, deque()).append(list(effects))

    def status(self) -> dict[str, object]:
        return {}


def record(token: int, size: int = 10, file: str = "log", kind: str = "row") -> Persist:
    return Persist(token, file, bytes([token % 250 + 1]) * size, kind)
