"""Nodes of the two-phase store in a virtual world, with a client that sends and remembers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.kernel.node import Node
from nodes.kernel.trace import Envelope
from nodes.twophase.configuration import MILLISECOND, Configuration
from nodes.twophase.data import partition_of
from nodes.twophase.decisions import Decisions
from nodes.twophase.dispatch import described
from nodes.twophase.node import TwoPhase
from nodes.twophase.site import Site
from nodes.twophase.stock import Stock
from nodes.world.machine import Machine
from nodes.world.network import Codec
from nodes.world.world import World

SERVERS = ("n1", "n2", "n3")


@dataclass(eq=False)
class Asked:
    """A request: when it went out, what came back; a link that ends leaves it without an answer."""

    node: str
    message: list[Any]
    asked_ns: int
    answer: Any = None
    answered_ns: int | None = None
    has_ended: bool = False

    @property
    def type(self) -> str:
        return str(self.answer["type"]) if self.answer else "info"


@dataclass
class Client:
    """An endpoint of the network: one connection for each request."""

    world: World
    name: str = "client"
    asked: dict[int, Asked] = field(default_factory=dict)
    """By link."""

    def __post_init__(self) -> None:
        self.world.network.add(self)

    def ask(self, node: str, word: str, *arguments: object) -> Asked:
        link = self.world.network.connect(self, node)
        asked = Asked(node, [word, len(self.asked) + 1, *arguments], self.world.agenda.now_ns)
        self.asked[link] = asked
        return asked

    def txn(self, node: str, *steps: list[Any], **options: object) -> Asked:
        return self.ask(node, "txn", list(steps), options)

    def accepted(self, link: int) -> None:
        raise AssertionError("nobody connects to a client")

    def connected(self, link: int) -> None:
        self.world.network.send(link, self, self.asked[link].message)

    def connect_failed(self, link: int, reason: str) -> None:
        self.asked[link].has_ended = True

    def ended(self, link: int, reason: str) -> None:
        self.asked[link].has_ended = True

    def received(self, link: int, message: object) -> None:
        asked = self.asked[link]
        assert isinstance(message, list)
        assert asked.answer is None, (asked, message)
        assert message[:2] == ["answer", asked.message[1]], message
        asked.answer, asked.answered_ns = message[2], self.world.agenda.now_ns
        self.world.network.close(link, self)


def word_of(message: object) -> tuple[str]:
    """What faults of the network call a message."""
    inner = message.message if isinstance(message, Envelope) else message
    assert isinstance(inner, list)
    return (inner[0],)


class VirtualCluster:
    """All nodes have just started; `settle` lets them join."""

    def __init__(
        self,
        seed: int,
        *,
        servers: Sequence[str] = SERVERS,
        clients: Sequence[str] = (),
        codec: Codec | None = None,
        record_trace: bool = False,
        **settings: Any,
    ) -> None:
        times = {
            "beat_ns": 50 * MILLISECOND,
            "election_ns": 200 * MILLISECOND,
            "leave_ns": 600 * MILLISECOND,
            "sweep_ns": 200 * MILLISECOND,
            "trim_entries": 4,
        }
        self.configurations = {
            name: Configuration(
                name=name,
                role="client" if name in clients else "server",
                baseline=tuple(servers),
                clients=tuple(clients),
                seed=seed,
                **{**times, **settings},
            )
            for name in (*servers, *clients)
        }
        makers: dict[str, Callable[[], Node]] = {
            name: lambda conf=conf: TwoPhase(conf)  # type: ignore[misc]
            for name, conf in self.configurations.items()
        }
        self.world = World(seed, makers, codec=codec, record_trace=record_trace, described=described)
        self.world.network.kinds_of = word_of
        self.servers, self.clients = tuple(servers), tuple(clients)
        self.client = Client(self.world)
        self.crashes: list[tuple[str, str]] = []
        self.counts = Counter[str]()
        """The rare turns of the lives that are over."""
        for machine in self.world.machines.values():
            machine.on_crash = lambda name, how: self.crashes.append((name, how))
            machine.on_end = self._count
            machine.start()

    def _count(self, node: Node) -> None:
        assert isinstance(node, TwoPhase)
        self.counts.update(node.site.sometimes)

    def count_living(self) -> Counter[str]:
        """The rare turns of all lives."""
        counts = self.counts.copy()
        for machine in self.world.machines.values():
            if isinstance(machine.node, TwoPhase):
                counts.update(machine.node.site.sometimes)
        return counts

    def run(self, milliseconds: float) -> None:
        """Let virtual time pass."""
        agenda = self.world.agenda
        woken: list[bool] = []
        agenda.at(agenda.now_ns + int(milliseconds * MILLISECOND), woken.append, True)
        while not woken:
            agenda.advance()

    def run_until(self, holds: Callable[[], bool], within_ms: float = 10_000) -> None:
        for _ in range(int(within_ms / 20)):
            if holds():
                return
            self.run(20)
        raise AssertionError(f"not within {within_ms} ms: {self.statuses()}")

    def is_settled(self) -> bool:
        statuses = self.statuses()
        return all(
            status is not None
            and status["ready"]
            and not status["out_of_sync"]
            and not status["unavailable"]
            and not status["in_doubt"]
            and status["members"] == statuses[self.servers[0]]["members"]
            and len(status["members"]) == len(statuses)
            for status in statuses.values()
        )

    def settle(self, within_ms: float = 20_000) -> None:
        """Until every node is a member and in sync, and nothing is in doubt; refused nodes are started again."""

        def holds() -> bool:
            self.restart_refused()
            return self.is_settled()

        self.run_until(holds, within_ms)

    def restart_refused(self) -> None:
        """Nodes that have stopped because their life has left. Any other crash is a failure."""
        for name, how in self.crashes:
            assert "has left the cluster" in how, (name, how)
            if self.machine(name).state == "down":
                self.machine(name).start()
        self.crashes.clear()

    def statuses(self) -> dict[str, Any]:
        return {name: machine.status() for name, machine in self.world.machines.items()}

    def machine(self, name: str) -> Machine:
        return self.world.machines[name]

    def node(self, name: str) -> TwoPhase:
        node = self.machine(name).node
        assert isinstance(node, TwoPhase), name
        return node

    def replayed(self, name: str) -> Stock:
        """What a server's log comes to, read by a fresh node."""
        stock = Stock(Site(self.configurations[name], Decisions()))
        stock.load(stock.wal.read(self.machine(name).disk.files()))
        return stock

    def files(self) -> dict[str, dict[str, bytes]]:
        """Of every server."""
        return {server: dict(self.machine(server).disk.files()) for server in self.servers}

    def coordinator(self) -> str:
        return next(
            name
            for name in self.servers
            if self.machine(name).node is not None and self.node(name).discovery.role == "coordinator"
        )

    def isolate(self, *names: str) -> list[tuple[str, str]]:
        """Cut these nodes off from all other nodes, clients of the harness excepted; returns the pairs for `heal`."""
        others = [name for name in self.world.machines if name not in names]
        pairs = [pair for a in names for b in others for pair in ((a, b), (b, a))]
        self.world.network.cut(pairs)
        return pairs

    def heal(self, pairs: list[tuple[str, str]]) -> None:
        self.world.network.heal(pairs, self.world.streams["heal"])


def settled(**settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(1, clients=("c1",), **settings)
    cluster.settle()
    return cluster


def answered(cluster: VirtualCluster, asked: Asked) -> Any:
    cluster.run_until(lambda: asked.answer is not None)
    return {key: value for key, value in asked.answer.items() if key != "xid"}


def key_of(cluster: VirtualCluster, primary: str) -> int:
    agreed = cluster.node("n1").agreed
    return next(key for key in range(40) if agreed.primary(partition_of(("r", key), 8)) == primary)


def key_in(partition: int, partitions: int, space: str = "r") -> int:
    """A key of the space in this partition."""
    return next(key for key in range(1_000) if partition_of((space, key), partitions) == partition)
