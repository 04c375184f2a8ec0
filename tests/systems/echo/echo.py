"""A store without a leader: every node serves registers and asks a majority (Attiya, Bar-Noy, Dolev 1995).

A read takes the newest value that a majority has told, and stores it at a majority before it answers; a write takes a
number above all that a majority has told. The harness knows nothing of it but what `SYSTEM` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.clients.client import Conversation, Send
from harness.clients.operations import Asked, Completion, Done, Dump, Read, Transaction, Write, failed
from harness.clients.reply import Lost, NotSent, Replied
from harness.systems.framed_wire import FRAMED
from harness.systems.own import OwnStore
from nodes.framed import FramedCodec
from nodes.host.systems import Hosted
from nodes.kernel import effects as to
from nodes.kernel import events as on

JOURNAL, RETRY_NS = "values.jsonl", 50_000_000
Tagged = list[Any]  # [[number, node], value]


@dataclass
class Round:
    """What a client asked for, and what the nodes have said to it."""

    link: int
    number: int
    key: str
    value: Any
    writes: bool
    told: dict[str, Tagged] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    chosen: Tagged | None = None


class Echo:
    def __init__(self, name: str, nodes: Sequence[str]) -> None:
        self.name, self.peers = name, [node for node in nodes if node != name]
        self.majority, self.values, self.highest = len(nodes) // 2 + 1, dict[str, Tagged](), 0
        self.links, self.rounds, self.tokens = (
            dict[int, str](),
            dict[int, Round](),
            dict[int, Callable[[], Any]](),
        )
        self.last, self.wall_ns, self.out = 0, 0, list[to.Effect]()

    def status(self) -> Mapping[str, object]:
        return {"rounds": len(self.rounds), "wall_ns": self.wall_ns, "links": len(self.links), "role": "node"}

    def step(self, event: on.Event, now: on.Instant) -> Sequence[to.Effect]:
        self.wall_ns, self.out = now.wall_ns, []
        match event:
            case on.Started(files):
                data = files.get(JOURNAL, b"")
                whole = data[: data.rfind(b"\n") + 1]
                if len(whole) < len(data):
                    self.out.append(to.Truncate(JOURNAL, len(whole)))
                for key, tagged in map(json.loads, whole.splitlines()):
                    self.take(key, tagged)
                self.out += [to.Connect(peer) for peer in self.peers]
            case on.Connected(link, peer):
                self.links[link] = peer
                self.out += [to.Send(link, self.asks(n, each)) for n, each in self.rounds.items()]
            case on.ConnectFailed(peer):
                self.out.append(to.SetTimer(peer, RETRY_NS))
            case on.Disconnected(link) if link in self.links:
                self.out.append(to.SetTimer(self.links.pop(link), RETRY_NS))
            case on.TimerFired(peer):
                self.out.append(to.Connect(peer))
            case on.Persisted(token):
                self.tokens.pop(token)()
            case on.PersistFailed():
                raise AssertionError("the disk takes nothing any more")
            case on.Received(link, [str() as word, int() as number, *rest]):
                self.heard(link, word, number, *rest)
        return self.out

    def heard(self, link: int, word: str, number: int, *rest: Any) -> None:
        match word, rest:
            case "status", _:
                self.out.append(to.Send(link, ["answer", number, self.status()]))
            case "dump", _:
                rows = [[key, value] for key, (_, value) in sorted(self.values.items())]
                self.out.append(to.Send(link, ["answer", number, {"register": rows}]))
            case (("read" | "write"), [key, value]):
                self.last += 1
                self.rounds[self.last] = each = Round(link, number, key, value, word == "write")
                self.out += [to.Send(peer, self.asks(self.last, each)) for peer in self.links]
                self.told(self.last, self.name, self.values.get(key, [[0, ""], None]))
            case "ask", [key]:
                self.out.append(to.Send(link, ["told", number, self.values.get(key, [[0, ""], None])]))
            case "told", [tagged]:
                self.told(number, self.links.get(link, ""), tagged)
            case "store", [key, tagged]:
                self.persist(key, tagged, lambda: self.out.append(to.Send(link, ["stored", number])))
            case "stored", _:
                self.stored(number, self.links.get(link, ""))

    def asks(self, number: int, each: Round) -> list[Any]:
        return ["ask", number, each.key] if each.chosen is None else ["store", number, each.key, each.chosen]

    def told(self, number: int, node: str, tagged: Tagged) -> None:
        each = self.rounds.get(number)
        if each is None or each.chosen is not None:
            return
        each.told[node] = tagged
        if len(each.told) >= self.majority:
            newest = max(each.told.values(), key=lambda told: told[0])
            self.highest = max(self.highest, newest[0][0]) + each.writes
            each.chosen = [[self.highest, self.name], each.value] if each.writes else newest
            self.persist(each.key, each.chosen, lambda: self.spread(number, each))

    def spread(self, number: int, each: Round) -> None:
        self.out += [to.Send(peer, self.asks(number, each)) for peer in self.links]
        self.stored(number, self.name)

    def stored(self, number: int, node: str) -> None:
        if (each := self.rounds.get(number)) is None or each.chosen is None:
            return
        each.stored.add(node)
        if len(each.stored) >= self.majority:
            self.out.append(to.Send(each.link, ["answer", each.number, each.chosen[1]]))
            del self.rounds[number]

    def take(self, key: str, tagged: Tagged) -> None:
        self.highest = max(self.highest, tagged[0][0])
        self.values[key] = max(self.values.get(key, [[0, ""], None]), tagged, key=lambda each: each[0])

    def persist(self, key: str, tagged: Tagged, then: Callable[[], Any]) -> None:
        self.take(key, tagged)
        self.last += 1
        self.tokens[self.last] = then
        self.out.append(to.Persist(self.last, JOURNAL, json.dumps([key, tagged]).encode() + b"\n", "value"))


class Client:
    speaks = frozenset[type]({Read, Write, Dump})

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        match asked:
            case Dump():
                message: list[Any] = ["dump", next_id()]
            case Transaction((Read(_, key),)):
                message = ["read", next_id(), key, None]
            case Transaction((Write(_, key, value),)):
                message = ["write", next_id(), key, value]
        match (yield Send(node, message)):
            case Replied([_, _, shown]):
                return Done(({"spaces": shown} if isinstance(asked, Dump) else shown,))
            case NotSent(reason):
                return Completion("fail", None, reason)
            case Lost(reason) | Replied(reason):
                return failed(str(reason), is_read=asked.is_read)


def echo(configuration: bytes) -> Hosted:
    told = json.loads(configuration)
    return Hosted(told["name"], Echo(told["name"], told["nodes"]), FramedCodec())


SYSTEM = OwnStore(
    "echo",
    hosted=f"{__file__}:echo",
    leader="none",
    client=Client(),
    wire=FRAMED,
    able=("disk layer", "clock", "drift"),
    may_end_under=("disk-error",),
)
