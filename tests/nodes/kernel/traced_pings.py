"""Two nodes that ping each other; one that gets its first ping marks something first, and takes the ping in after."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nodes.framed import FramedCodec
from nodes.host.systems import Hosted
from nodes.kernel.effects import Again, Connect, Effect, Mark, Send, SetTimer
from nodes.kernel.errors import StartAgain
from nodes.kernel.events import Connected, ConnectFailed, Event, Instant, Received, Started, TimerFired

PINGS = 3


class Pings:
    def __init__(self, peers: Sequence[str], is_patient: bool = True) -> None:
        """`is_patient`: it asks for the ping again, behind the mark."""
        self.peers, self.is_patient = peers, is_patient
        self.is_marked = self.is_marking = False
        self.taken: list[object] = []

    def status(self) -> dict[str, object]:
        return {"taken": len(self.taken)}

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Started():
                return [Connect(peer) for peer in self.peers]
            case ConnectFailed(peer):
                return [SetTimer(peer, 10_000_000)]
            case Connected(link, peer):
                return [Send(link, ["ping", number, f"{peer}-{number}"]) for number in range(PINGS)]
            case TimerFired("mark"):
                self.is_marked = True
                return [Mark("cut", {"cut": "c1"})]
            case TimerFired(peer):
                return [Connect(peer)]
            case Received(_, ["ping", *_]) if not self.is_marked and self.is_patient:
                return [*self.marking(), Again(event)]
            case Received(link, ["ping", number, *_] as message):
                self.taken.append(message)
                return [Send(link, ["pong", number]), *self.marking()]
            case Received(_, ["over", *_]):
                raise StartAgain("asked to")
            case Received(link, ["status", number]):
                return [Send(link, ["answer", number, self.status()])]
        return []

    def marking(self) -> list[Effect]:
        """Soon, and once."""
        was_marking, self.is_marking = self.is_marking, True
        return [] if was_marking else [SetTimer("mark", 0)]


def described(message: object) -> tuple[str, str] | None:
    match message:
        case ["ping", _, about]:
            return "ping", str(about)
        case ["pong", *_]:
            return "pong", ""
    return None


def pings(configuration: bytes) -> Hosted:
    told = json.loads(configuration)
    return Hosted(told["name"], Pings(told["peers"]), FramedCodec(), described)
