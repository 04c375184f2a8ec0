"""Holds back the packets of the containers of one run, as faults ask for it, and counts what it did.

A link is shaped where its packets arrive, so that the sender's kernel has let go of them; only what is for the harness
itself, outside of all containers, is shaped where it leaves. A container that was started again has a new network: it
is entered anew, and its links are shaped as before.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.cluster.containers.shaping.echo import Echo
from harness.cluster.containers.shaping.holding import Holding, Link, Shaping
from harness.cluster.containers.shaping.namespace import Namespace, Queue, rules, set_rules
from harness.cluster.containers.shaping.queue_messages import ACCEPT, DROP
from harness.errors import ClusterError

CLIENT = "client"
_ECHO_EVERY_S = 0.1
_ECHO_WITHIN_S = 5.0

Token = tuple[str, int, int]
"""The node with the queue, how often that was entered, the packet's number."""


@dataclass(slots=True)
class _Entered:
    """A container's namespace, entered for the `life`th time."""

    life: int
    namespace: Namespace
    queue: Queue
    echo: Echo

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.queue.fileno())
        self.queue.close()
        self.echo.close()
        self.namespace.close()


class Shaper:
    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._names: dict[bytes, str] = {}
        self._entered: dict[str, _Entered] = {}
        self._lives = 0
        self._holding: Holding[Token] = Holding()
        self._timer: asyncio.TimerHandle | None = None
        self._echoes: dict[int, asyncio.Task[None]] = {}
        self._round_trips: dict[int, list[int]] = {}
        self._home: Echo | None = None

    # ---- containers

    def name(self, addresses: Mapping[str, str]) -> None:
        """The address of each node, and of the harness ("client")."""
        self._addresses = dict(addresses)
        self._names = {socket.inet_aton(address): node for node, address in addresses.items()}

    async def enter(self, node: str, pid: int) -> None:
        """Enter a container, of which `pid` is a process, and shape what arrives there from now on."""
        self._leave(node)
        with contextlib.ExitStack() as undo:
            try:
                namespace = Namespace(pid)
                undo.callback(namespace.close)
                queue = Queue(namespace)
                undo.callback(queue.close)
                echo = Echo(namespace)
            except OSError as error:
                raise ClusterError(
                    f"the kernel hands no packets of {node} over: {error}; try: ./qsync doctor"
                ) from error
            undo.pop_all()
        self._lives += 1
        entered = self._entered[node] = _Entered(self._lives, namespace, queue, echo)
        asyncio.get_running_loop().add_reader(queue.fileno(), self._arrived, node, entered)
        await self._set_rules(node)

    def _leave(self, node: str) -> None:
        entered = self._entered.pop(node, None)
        if entered is not None:
            entered.close()
            self._holding.discard_of(lambda token: token[:2] == (node, entered.life))

    async def _set_rules(self, *nodes: str) -> None:
        """Set the rules that the links shaped now need."""
        entered = [(node, self._entered[node].namespace) for node in nodes if node in self._entered]
        await asyncio.gather(*(set_rules(there, *self._wanted(node)) for node, there in entered))

    def _wanted(self, node: str) -> tuple[list[str], list[str]]:
        """From which addresses, and for which, packets of a node's namespace are handed over."""
        links = self._holding.shaped_links()
        sources = [self._addresses[source] for source, target in links if target == node]
        return sources, [self._addresses[CLIENT] for link in links if link == (node, CLIENT)]

    async def are_rules_right(self) -> bool:
        """All containers have exactly as many rules of ours as their shaped links need."""
        for node, entered in list(self._entered.items()):
            if await rules(entered.namespace) != sum(map(len, self._wanted(node))):
                return False
        return True

    # ---- faults

    async def shape(self, fault: int, links: Sequence[Link], shaping: Shaping, seed: int) -> int:
        """Shape the links; returns the monotonic time from which all of them are shaped."""
        self._holding.shape(fault, links, shaping, seed, time.monotonic_ns())
        await self._set_rules(*_ends(links))
        self._round_trips[fault] = []
        self._echoes[fault] = asyncio.get_running_loop().create_task(self._keep_asking(fault, links))
        return time.monotonic_ns()

    async def unshape(self, fault: int, links: Sequence[Link]) -> int:
        """End a fault; returns the monotonic time from which no packet gets a delay from it."""
        task = self._echoes.pop(fault, None)
        if task is not None:
            task.cancel()
        for token in self._holding.unshape(fault):
            self._decide(token, ACCEPT)
        healed_ns = time.monotonic_ns()
        await self._set_rules(*_ends(links))
        return healed_ns

    def counters(self, fault: int) -> list[dict[str, object]]:
        return [{"link": list(link), **row} for link, row in self._holding.watches(fault).items()]

    def stranded(self) -> int:
        return self._holding.stranded()

    def round_trips(self, fault: int) -> list[int]:
        """Those measured while the fault was at work, in nanoseconds."""
        return self._round_trips.get(fault, [])

    def forget(self, fault: int) -> None:
        self._holding.forget(fault)
        self._round_trips.pop(fault, None)

    # ---- round trips

    async def ask(self, links: Sequence[Link], within_s: float) -> list[int | None]:
        """One round trip over each of the links, in nanoseconds; None where nothing came back."""
        return list(await asyncio.gather(*(self._round_trip(link, within_s) for link in _pairs(links))))

    async def _keep_asking(self, fault: int, links: Sequence[Link]) -> None:
        while True:
            for round_trip_ns in await self.ask(links, _ECHO_WITHIN_S):
                if round_trip_ns is not None and fault in self._round_trips:
                    self._round_trips[fault].append(round_trip_ns)
            await asyncio.sleep(_ECHO_EVERY_S)

    async def _round_trip(self, link: Link, within_s: float) -> int | None:
        source, target = link if link[1] != CLIENT else link[::-1]
        try:
            echo = self._from_home() if source == CLIENT else self._entered[source].echo
            return await echo.round_trip_ns(self._addresses[target], within_s)
        except (KeyError, OSError):  # its container is gone
            return None

    def _from_home(self) -> Echo:
        if self._home is None:
            self._home = Echo(None)
        return self._home

    # ---- packets

    def _arrived(self, node: str, entered: _Entered) -> None:
        for packet in entered.queue.packets():
            link = self._names.get(packet.source, ""), self._names.get(packet.target, "")
            token = (node, entered.life, packet.id)
            may_go = self._holding.take(link, token, packet.size, time.monotonic_ns())
            if may_go is None:
                entered.queue.decide(packet.id, DROP)
            elif may_go:
                entered.queue.decide(packet.id, ACCEPT)
        self._go_on()

    def _go_on(self) -> None:
        """Let go what is due, and wake up for what comes next."""
        for token in self._holding.due(time.monotonic_ns()):
            self._decide(token, ACCEPT)
        due_ns = self._holding.next_due_ns()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            None if due_ns is None else asyncio.get_running_loop().call_at(due_ns / 1e9, self._go_on)
        )

    def _decide(self, token: Token, decision: int) -> None:
        node, life, packet = token
        entered = self._entered.get(node)
        if entered is not None and entered.life == life:
            entered.queue.decide(packet, decision)


def _ends(links: Sequence[Link]) -> list[str]:
    return list(dict.fromkeys(end for link in links for end in link if end != CLIENT))


def _pairs(links: Sequence[Link]) -> list[Link]:
    """Each link, but only one of a link and its reverse: a round trip passes both."""
    kept: dict[Link, None] = {}
    for source, target in links:
        if (target, source) not in kept:
            kept[source, target] = None
    return list(kept)
