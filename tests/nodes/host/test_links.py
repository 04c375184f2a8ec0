"""Connections between a host and whoever is at the other end, friendly or not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from nodes.host.links import Link
from tests.nodes.host.hosts import PATIENCE_S, StartHost, eventually


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """A listening socket that accepts and says what the test says."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        yield server


def peer_option(server: socket.socket) -> tuple[str, str]:
    return "--peer", f"n2=127.0.0.1:{server.getsockname()[1]}"


def test_messages_come_in_order_however_they_are_cut(start_host: StartHost) -> None:
    """Broken, the bytes of a torn frame or of many frames at once would get lost."""
    client = start_host().client()
    client.tell(*(f"echo {number}" for number in range(20_000)))
    client.socket.sendall(b"echo to")
    client.socket.sendall(b"rn\n")
    assert [client.line() for _ in range(20_000)] == [str(number) for number in range(20_000)]
    assert client.line() == "torn"


def test_a_peer_is_connected_when_its_greeting_has_come(start_host: StartHost) -> None:
    """Broken, two hosts would not find each other."""
    other = start_host(name="n2")
    client = start_host("--peer", f"n2=127.0.0.1:{other.port}").client()
    assert client.ask("dial n2") == "connected n2"


def test_a_greeting_may_come_in_pieces(start_host: StartHost, stranger: socket.socket) -> None:
    """Broken, a slow link would count as connected before the other side is known."""
    client = start_host(*peer_option(stranger)).client()
    client.tell("dial n2")
    connection, _ = stranger.accept()
    with connection:
        connection.sendall(b"toy gre")
        assert client.ask("echo meanwhile") == "meanwhile"
        connection.sendall(b"ets you\necho at once\n")
        assert client.line() == "connected n2"
        assert connection.makefile("rb").readline() == b"echo hello\n"


def test_a_peer_that_does_not_greet_is_no_peer(start_host: StartHost, stranger: socket.socket) -> None:
    """Broken, a node behind a silent cut would believe that it is connected, or wait for ever."""
    client = start_host(*peer_option(stranger)).client()
    began_s = time.monotonic()
    assert client.ask("dial n2") == "failed n2: no greeting within 2 s"
    assert time.monotonic() - began_s > 1.9


def test_a_peer_that_refuses_hangs_up_or_is_unknown(start_host: StartHost, stranger: socket.socket) -> None:
    """Broken, a node would not learn that it has to try again."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = peer_option(closed)
    client = start_host(*refusing, "--peer", peer_option(stranger)[1].replace("n2", "n3")).client()
    assert client.ask("dial n2") == "failed n2: connection refused"
    assert client.ask("dial n4") == "failed n4: no address is known for this peer"
    client.tell("dial n3")
    stranger.accept()[0].close()
    assert client.line() == "failed n3: closed by the other side"
    client.tell("dial n3")
    with stranger.accept()[0] as rude:
        rude.sendall(b"what?\n")
        assert client.line() == "failed n3: broken framing: that is no greeting"


def test_broken_framing_ends_that_link_only(start_host: StartHost) -> None:
    """Broken, one client's garbage would end the node, or go unseen."""
    process = start_host()
    good, bad = process.client(), process.client()
    bad.socket.sendall(b"echo before\n\xff\xff\n")
    assert bad.line() == ""
    assert good.ask("echo still here") == "still here"
    closed = next(line for line in process.log() if line["message"] == "link closed")
    assert (closed["level"], closed["reason"]) == ("warning", "broken framing: no ASCII at byte 0")
    ended = next(line for line in process.log() if line["message"] == "a link ended")
    assert ended["reason"] == "broken framing: no ASCII at byte 0"


def test_a_node_may_end_a_link_after_its_last_word(start_host: StartHost) -> None:
    """Broken, the answer before a `Disconnect` would be lost, or the node told of an end that it made itself."""
    process = start_host()
    client = process.client()
    client.tell("end", "echo too late")
    assert (client.line(), client.line()) == ("bye", "")
    assert process.client().ask("echo next") == "next"
    assert all(line["message"] != "a link ended" for line in process.log())


def test_the_end_of_a_link_is_told_once(start_host: StartHost) -> None:
    """Broken, a node would keep a relay for a replica that has gone."""
    process = start_host()
    process.client().socket.close()
    assert eventually(lambda: any(line["message"] == "a link ended" for line in process.log()))
    assert process.client().ask("echo next") == "next"
    assert [line["reason"] for line in process.log() if line["message"] == "a link ended"] == [
        "closed by the other side"
    ]


def test_who_does_not_read_is_cut_off(start_host: StartHost) -> None:
    """Broken, one paused replica would eat the memory of the owner."""
    process = start_host()
    lazy, other = process.client(), process.client()
    lazy.tell(*["flood 8000000"] * 12)
    assert eventually(lambda: any(line["message"] == "link closed" for line in process.log()))
    assert other.ask("echo fine") == "fine"
    closed = next(line for line in process.log() if line["message"] == "link closed")
    assert "does not read" in str(closed["reason"])


def test_a_timer_fires_once_and_not_early(start_host: StartHost) -> None:
    """Broken, a node's timeouts would come early, twice or never."""
    client = start_host().client()
    began_s = time.monotonic()
    client.tell("timer 600000", "timer 30")  # the second replaces the first, for which nobody here would wait
    assert client.line() == "fired"
    assert time.monotonic() - began_s >= 0.03
    assert client.ask("echo nothing more") == "nothing more"


def test_small_answers_are_not_held_back(start_host: StartHost) -> None:
    """Broken, Nagle's algorithm and delayed acknowledgements together would cost 40 ms an answer."""
    client = start_host().client()
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    took_s: list[float] = []
    for number in range(100):
        began_s = time.monotonic()
        client.tell("echo a")
        client.tell(f"store {number}")
        assert (client.line(), client.line()) == ("a", f"stored {number}")
        took_s.append(time.monotonic() - began_s)
    assert min(took_s) < 0.035, "each of them was held back; on a busy machine some are late anyway"


def test_an_end_that_lingers_may_be_over_before_it_is_made_sure_of() -> None:
    """Broken, a node died with exit 70 when a connection that it had closed emptied itself after a partition."""

    async def scene() -> None:
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        links: Any = SimpleNamespace(
            opened=lambda link: None, ended=lambda link, reason: ended.set_result(reason)
        )
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        decoder: Any = None
        link = Link(links, decoder, None, memoryview(bytearray(16)))
        await asyncio.get_running_loop().connect_accepted_socket(lambda: link, ours)
        link.write(bytes(1 << 20))
        link.flush()
        link.close()
        while not ended.done():
            await asyncio.get_running_loop().sock_recv(theirs, 1 << 16)
        link.abort()
        theirs.close()

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))
