"""Probes, against a server of this test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from harness.cluster.probe import Probes
from harness.cluster.relay.link import LinkName

LINK: LinkName = ("client", "n1")
WITHIN_S = 30.0


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            await asyncio.sleep(0)


class Server:
    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.ended = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.got.append(await reader.readexactly(5))
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.ended += 1


def play(story: Callable[[Server, int, Probes], Awaitable[None]]) -> None:
    async def told() -> None:
        server = Server()
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port: int = listener.sockets[0].getsockname()[1]
        async with listener:
            probes = Probes({LINK: port}, lambda node: True, b"hello")
            await story(server, port, probes)
            probes.close()
            await until(lambda: server.ended == len(server.writers))

    asyncio.run(told())


def test_a_probe_is_sent_once_for_a_link_and_its_reverse_and_again_when_it_is_lost() -> None:
    """If it failed, a healed link would be probed a hundred times a second, or not again after a reset."""

    async def story(server: Server, port: int, probes: Probes) -> None:
        for link in (LINK, LINK[::-1], LINK):
            probes.send(link)
        await until(lambda: bool(server.got))
        probes.send(LINK)
        assert server.got == [b"hello"]
        server.writers[0].transport.abort()

        def is_sent_again() -> bool:
            probes.send(LINK)
            return len(server.got) == 2

        await until(is_sent_again)
        assert len(server.writers) == 2

    play(story)


def test_probes_end_with_the_healing_and_may_be_sent_anew() -> None:
    """If it failed, stores would keep the connections of a harness that has seen what it wanted."""

    async def story(server: Server, port: int, probes: Probes) -> None:
        probes.send(LINK)
        await until(lambda: bool(server.got))
        probes.close()
        await until(lambda: server.ended == 1)
        probes.send(LINK)
        probes.close()  # before it is dialed
        probes.send(LINK)
        await until(lambda: len(server.got) == 2)
        assert len(server.writers) == 2

    play(story)


def test_a_probe_that_is_refused_is_sent_again() -> None:
    """If it failed, a link whose node came up a moment later would never be seen to heal."""

    async def story(server: Server, port: int, probes: Probes) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            nobody = taken.getsockname()[1]
        routes = {LINK: nobody}
        late = Probes(routes, lambda node: True, b"hello")
        late.send(LINK)
        routes[LINK] = port

        def is_sent_again() -> bool:
            late.send(LINK)
            return bool(server.got)

        await until(is_sent_again)
        late.close()

    play(story)


def test_a_link_can_be_reached_from_the_side_that_dials() -> None:
    """If it failed, a link that no byte can pass would count as not healed, or one that could as not tried."""
    probes = Probes({LINK: 1}, lambda node: node == "n1", b"")
    assert probes.can_reach(LINK, True) and probes.can_reach(LINK, False)
    assert probes.can_reach(LINK[::-1], False) and not probes.can_reach(LINK[::-1], True)
    dead = Probes({LINK: 1}, lambda node: node != "n1", b"")
    assert not dead.can_reach(LINK, False) and not dead.can_reach(LINK[::-1], False)
