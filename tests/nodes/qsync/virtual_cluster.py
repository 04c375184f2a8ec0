"""Nodes of qsync in a virtual world, with a client that sends and remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from nodes.iproto.decoders import ApplierDecoder, ClientDecoder, ServerDecoder
from nodes.iproto.frames import encode
from nodes.iproto.greeting import greeting
from nodes.iproto.messages import Answer, Call, Message, Refusal, Request
from nodes.kernel.events import Instant, Started
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability
from nodes.qsync.configuration import Configuration
from nodes.qsync.journal import public
from nodes.qsync.replica import Replica
from nodes.world.machine import Machine
from nodes.world.network import MILLISECOND, Codec, Decoder
from nodes.world.world import World
from tests.nodes.qsync.conversation import configuration

NAMES = ("n1", "n2", "n3")


@dataclass(eq=False)
class Asked:
    """A request: when it went out, what came back and when; a link that ends leaves it without an answer."""

    number: int
    request: Request
    asked_ns: int
    link: int
    reply: Answer | Refusal | None = None
    answered_ns: int | None = None


@dataclass
class Client:
    """An endpoint of the network: one connection for each request."""

    world: World
    name: str = "client"
    asked: dict[int, Asked] = field(default_factory=dict)
    """By link."""

    def __post_init__(self) -> None:
        self.world.network.add(self)

    def ask(self, node: str, name: str, *arguments: object) -> Asked:
        number = len(self.asked) + 1
        link = self.world.network.connect(self, node)
        asked = Asked(number, Call(number, name, arguments), self.world.agenda.now_ns, link)
        self.asked[link] = asked
        return asked

    def accepted(self, link: int) -> None:
        raise AssertionError("nobody connects to a client")

    def connected(self, link: int) -> None:
        self.world.network.send(link, self, self.asked[link].request)

    def connect_failed(self, link: int, reason: str) -> None:
        pass

    def ended(self, link: int, reason: str) -> None:
        pass

    def received(self, link: int, message: object) -> None:
        assert isinstance(message, Answer | Refusal), message
        asked = self.asked[link]
        assert asked.reply is None and message.sync == asked.number
        asked.reply, asked.answered_ns = message, self.world.agenda.now_ns
        self.world.network.close(link, self)


class Wire:
    """The bytes of IPROTO, with the decoders of the real host and client."""

    def encode(self, message: object) -> bytes:
        return encode(cast(Message, message))

    def greeting(self) -> bytes:
        return greeting("3.2.0", "00000000-0000-4000-8000-000000000000", bytes(32))

    def server_decoder(self) -> Decoder:
        return ServerDecoder()

    def peer_decoder(self) -> Decoder:
        return ApplierDecoder()

    def client_decoder(self) -> Decoder:
        return ClientDecoder()


class VirtualCluster:
    """Three nodes that have just started; `promote` makes n1 the owner."""

    def __init__(
        self,
        seed: int,
        *,
        durability: Durability = "synced",
        codec: Codec | None = None,
        record_trace: bool = False,
        bugs: tuple[str, ...] = (),
        settings: Mapping[str, object] | None = None,
        more: Sequence[Configuration] = (),
        of_node: Mapping[str, Mapping[str, object]] | None = None,
        files: Mapping[str, Mapping[str, bytes]] | None = None,
    ) -> None:
        """`settings` are fields of all configurations, `of_node` those of single ones, `more` are nodes that start
        later. `files`: what the disks hold at first, by node."""
        own = {name: {**(settings or {}), **(of_node or {}).get(name, {})} for name in NAMES}
        self.configurations = {
            name: replace(_configuration(name, bugs), **own[name])  # type: ignore[arg-type]
            for name in NAMES
        }
        self.configurations |= {conf.name: conf for conf in more}
        makers: Mapping[str, Callable[[], Node]] = {
            name: lambda conf=conf: Replica(conf)  # type: ignore[misc]
            for name, conf in self.configurations.items()
        }
        self.world = World(seed, makers, durability=durability, codec=codec, record_trace=record_trace)
        self.client = Client(self.world)
        self.crashes: list[tuple[str, str]] = []
        for machine in self.world.machines.values():
            machine.on_crash = lambda name, how: self.crashes.append((name, how))
            for file, data in (files or {}).get(machine.name, {}).items():
                machine.disk.append(file, data)
                machine.disk.sync(file, len(data))
            if machine.name in NAMES:
                machine.start()

    def run(self, milliseconds: float) -> None:
        """Let virtual time pass."""
        agenda = self.world.agenda
        until_ns = agenda.now_ns + int(milliseconds * MILLISECOND)
        woken: list[bool] = []
        agenda.at(until_ns, woken.append, True)
        while not woken:
            agenda.advance()

    def promote(self) -> None:
        self.client.ask("n1", "box.ctl.promote")
        self.run(500)
        owners = [self.node(name).commits.limbo.owner_id for name in NAMES]
        assert owners == [1, 1, 1], owners

    def machine(self, name: str) -> Machine:
        return self.world.machines[name]

    def node(self, name: str) -> Replica:
        node = self.machine(name).node
        assert isinstance(node, Replica), name
        return node

    def replayed(self, name: str) -> Replica:
        """A fresh node that has read this one's disk, and nothing else."""
        node = Replica(self.configurations[name])
        node.step(Started(self.machine(name).disk.files()), Instant(0, 0))
        return node


def _configuration(name: str, bugs: tuple[str, ...]) -> Configuration:
    return configuration(
        name, bugs=bugs, synchro_timeout_ns=200 * MILLISECOND, replication_timeout_ns=50 * MILLISECOND
    )


def memory(node: Replica) -> tuple[object, ...]:
    """What a node holds, as values that can be compared: both views of all spaces, the limbo, the log's vclock."""
    limbo = node.commits.limbo
    return (
        {
            s.definition.name: (list(s.scan(dirty=False)), list(s.scan(dirty=True)))
            for s in node.schema.user_spaces()
        },
        [(entry.lsn, entry.wait_ack) for entry in limbo.entries],
        (limbo.owner_id, limbo.term, limbo.confirmed_lsn),
        public(node.journal.vclock),
    )
