"""All routes, links and connections of the relay, and what can be done to them.

Every command here runs to its end between two turns of the loop, so a cut of many links takes effect at one
instant: no byte passes the second link after the first was cut.
"""

from __future__ import annotations

import asyncio
import random
import select
import time
from collections.abc import Iterable
from typing import Final

from harness.cluster.place import LOOPBACK
from harness.cluster.relay.connection import Close, Connection, Pipe, Side
from harness.cluster.relay.link import Link, LinkName, Slowness

_GONE: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
OBSERVE_EVERY_S: Final = 0.02
"""How often cuts are to be observed: how long bytes were withheld is known to within one turn of this."""
_BACKLOG: Final = 1024
_DEAD: Final = 0


class Switchboard:
    def __init__(self) -> None:
        self._links: dict[LinkName, Link[Pipe]] = {}
        self._listeners: dict[LinkName, asyncio.Server] = {}
        self._ports: dict[str, tuple[str, int]] = {}
        self._connections: dict[int, Connection] = {}
        self._dialing: dict[asyncio.Task[None], None] = {}
        self._accepted = 0

    async def listen(self, source: str, target: str, port: int) -> int:
        """Open a route; port 0 takes any. Gives the port."""

        def accept() -> Side:
            return self._accept(source, target).dialed

        listener = await asyncio.get_running_loop().create_server(accept, LOOPBACK, port, backlog=_BACKLOG)
        self._listeners[source, target] = listener
        return int(listener.sockets[0].getsockname()[1])

    def set_port(self, node: str, port: int, host: str = LOOPBACK) -> None:
        """Where a node listens now; 0: it is dead, connections to it are refused. Before the first call, they wait."""
        self._ports[node] = (host, port)
        for connection in self._all():
            self._dial(connection)

    def cut(self, fault: int, links: Iterable[LinkName]) -> int:
        """Cut these links; gives the time from which nothing passes."""
        touched = [self._link(name) for name in links]
        for link in touched:
            link.cut(fault, time.monotonic_ns())
        self._settle(touched)
        return time.monotonic_ns()

    def slow(
        self,
        fault: int,
        links: Iterable[LinkName],
        *,
        delay_ns: int,
        jitter_ns: int,
        seed: int,
        bytes_per_s: int = 0,
    ) -> int:
        """Bytes on these links come later by `delay_ns` ± `jitter_ns`, in order, and not faster than the rate."""
        for name in links:
            chance = random.Random(f"{seed} slow {name[0]} {name[1]}")
            slowness = Slowness(delay_ns, jitter_ns, chance, bytes_per_s)
            self._link(name).slow(fault, slowness, time.monotonic_ns())
        return time.monotonic_ns()

    def heal(self, fault: int, seed: int) -> int:
        """Undo a cut or a slow. Connections with something held go on or are reset, drawn from `seed`."""
        touched = [link for link in self._links.values() if fault in link.cuts or fault in link.slows]
        self.observe()  # before healing: it counts for links that are cut
        now_ns = time.monotonic_ns()
        was_cut = [link for link in touched if link.is_cut]
        was_slow = [link for link in touched if fault in link.slows]
        for link in touched:
            link.heal(fault, now_ns)
        self._reset_some(fault, [link for link in was_cut if not link.is_cut], random.Random(f"{seed} heal"))
        # Another fault may slow the link too: what this one made late would be held after its end.
        for link in was_slow:
            for pipe in link.pipes:
                pipe.hurry()
        self._settle(touched)
        for link in touched:
            link.count_fresh(fault)
        return time.monotonic_ns()

    def counters(self, fault: int) -> list[dict[str, object]]:
        """The effect of the fault on each of its links so far."""
        self.observe()
        watched = [link for link in self._links.values() if fault in link.watches]
        return [self._row(link, fault) for link in watched]

    def _row(self, link: Link[Pipe], fault: int) -> dict[str, object]:
        source, target = link.name
        is_reverse_cut = self._link((target, source)).is_cut
        return {"link": [source, target], "is_reverse_cut": int(is_reverse_cut), **link.counters(fault)}

    def forget(self, fault: int) -> None:
        for link in self._links.values():
            link.forget(fault)

    def reset(self, node: str) -> int:
        """Reset all connections of a node; gives their number."""
        connections = self._of(node)
        for connection in connections:
            connection.reset()
        return len(connections)

    def discard(self, node: str) -> int:
        """Throw away what is held of a node that lost power; its connections stay silent until `reset`."""
        connections = self._of(node)
        for connection in connections:
            connection.freeze()
        return len(connections)

    def totals(self) -> dict[str, object]:
        """Bytes passed on each link since the relay began, and the connections open now."""
        passed = {f"{source}→{target}": link.passed for (source, target), link in self._links.items()}
        return {"passed": passed, "connections": len(self._all())}

    def observe(self) -> None:
        """Bring the counters of all cut links up to date."""
        cut_links = [link for link in self._links.values() if link.is_cut]
        if cut_links:
            self._drop_abandoned()
            now_ns = time.monotonic_ns()
            for link in cut_links:
                link.observe(now_ns)

    def _link(self, name: LinkName) -> Link[Pipe]:
        link = self._links.get(name)
        if link is None:
            link = self._links[name] = Link(name)
        return link

    def _all(self) -> list[Connection]:
        over = [number for number, connection in self._connections.items() if connection.forgotten]
        for number in over:
            del self._connections[number]
        return list(self._connections.values())

    def _of(self, node: str) -> list[Connection]:
        return [connection for connection in self._all() if node in (connection.source, connection.target)]

    def _accept(self, source: str, target: str) -> Connection:
        self._accepted += 1
        if self._accepted % 256 == 0:
            self._all()
        connection = Connection(self._accepted, self._link((source, target)), self._link((target, source)))
        self._connections[connection.number] = connection
        if connection.forth.link.is_cut:
            connection.forth.hangs_since_ns = time.monotonic_ns()
            connection.forth.link.hanging()
        self._dial(connection)
        return connection

    def _dial(self, connection: Connection) -> None:
        """Connect onward, unless the link is cut or it has been done; a dead target resets the dialer."""
        address = self._ports.get(connection.target)
        over = connection.forgotten or connection.forth.closed is Close.RESET
        if address is None or over or connection.dialing or connection.forth.link.is_cut:
            return
        connection.dialing = True
        connection.forth.hangs_since_ns = None
        task = asyncio.get_running_loop().create_task(self._connect(connection, *address))
        self._dialing[task] = None
        task.add_done_callback(self._dialing.pop)

    async def _connect(self, connection: Connection, host: str, port: int) -> None:
        try:
            if port == _DEAD:
                raise ConnectionRefusedError
            await asyncio.get_running_loop().create_connection(lambda: connection.onward, host, port)
        except (OSError, ValueError):  # ValueError: no host has such a name
            connection.back.reset()

    def _settle(self, links: list[Link[Pipe]]) -> None:
        """After a change of links: read, dial and hand on what may be now, and stop what may not."""
        for link in links:
            for pipe in list(link.pipes):
                self._dial(pipe.connection)
                pipe.pump()
                if not link.is_cut:
                    pipe.withheld_since_ns, pipe.withheld_before = None, 0

    def _reset_some(self, fault: int, healed: list[Link[Pipe]], chance: random.Random) -> None:
        pipes = [pipe for link in healed for pipe in link.pipes if not pipe.connection.frozen]
        concerned = {pipe.connection.number: pipe.link for pipe in pipes if pipe.has_held()}
        for number in sorted(concerned):
            if chance.random() < 0.5:
                self._connections[number].reset()
                concerned[number].watches[fault].connections_reset += 1

    def _drop_abandoned(self) -> None:
        """Drop connections whose dialer hung up before they were dialed onward: the target never sees them."""
        poll = select.poll()
        hanging: dict[int, Connection] = {}
        for connection in self._all():
            number = connection.dialed.file_number
            if connection.forth.hangs_since_ns is not None and number >= 0 and not connection.dialed.dead:
                hanging[number] = connection
                poll.register(number, _GONE)
        for number, events in poll.poll(0) if hanging else ():
            if events & _GONE:
                connection = hanging[number]
                connection.forth.link.observe(time.monotonic_ns())
                connection.dialed.reset()
                connection.forget()
