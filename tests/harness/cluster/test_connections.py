"""What the harness makes of answers to its own requests for the state of a node."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

import pytest

from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.clients.wire import ClientWire
from harness.cluster.connections import Admin, Connections


class Wire:
    def status_request(self, number: int) -> object:
        return number

    def status_of(self, answer: object) -> dict[str, object] | None:
        assert answer != "odd"
        return answer if isinstance(answer, dict) else None

    def request_id(self, message: object) -> int:
        return 1

    def encode(self, message: object) -> bytes:
        return cast(bytes, message.decode()) if isinstance(message, bytes) else cast(str, message).encode()


def test_a_node_that_refuses_to_report_its_state_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a node that lacks a right would be said to refuse connections, as it did before it was up; and a
    state that no record can hold, or that its user's own wire cannot read, would end the run."""
    replies: list[Reply] = [
        NotSent("connection refused"),
        Replied("access denied"),
        Replied({None: 1}),
        Replied("odd"),
    ]

    async def call(*_: object) -> Reply:
        return replies.pop(0)

    async def story() -> list[str]:
        admin = Admin(cast(ClientWire, Wire()), lambda node: 1, lambda node: "h")
        reasons = []
        while replies:
            assert await admin.status("n1", 1) is None
            reasons.append(admin.why_silent("n1"))
        return reasons

    monkeypatch.setattr(Connections, "call", call)
    assert asyncio.run(story()) == [
        "connection refused",
        "not in its answer: access denied",
        "not in its answer: {None: 1}",
        "not in its answer: odd",
    ]


@pytest.mark.parametrize(
    ("node", "message", "why"),
    [
        ("n9", "a", "no node is called n9"),
        ("n1", 7, "AttributeError: 'int' object has no attribute 'encode'"),
        ("n1", b"a", "TypeError: memoryview: a bytes-like object is required, not 'str'"),
        ("n1", "a", "encoding with 'idna' codec failed (unicodeerror: label empty or too long)"),
    ],
)
def test_what_cannot_be_sent_is_not_sent(node: str, message: object, why: str) -> None:
    """If it failed, a user's client that follows a store to a leader of no name would end the run, and so would a wire
    that says text, and a name of a host that is none."""
    clients = Connections(cast(ClientWire, Odd()), {"n1": 1}.__getitem__, lambda node: "a..b")
    assert asyncio.run(clients.call(0, node, message, 10**9)) == NotSent(why)


class Odd(Wire):
    """A user's own wire, which expects something else than what comes."""

    broken_framing = ValueError
    greeted = True

    def client_decoder(self) -> Odd:
        return self

    def feed(self, data: bytes) -> list[bytes]:
        if data == b"?":
            raise ValueError("?")
        return [data]

    def answers(self, message: bytes) -> int:
        return {b"a": 1}[message]


def reply_to(wire: Odd, said: bytes, reads: int) -> tuple[Reply, list[object]]:
    """The reply to a call of a server that reads so many bytes and says this; and all that broke meanwhile."""
    broken: list[object] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(reads)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            await reader.read()
            writer.close()
            await writer.wait_closed()
        ended.set()

    async def story() -> Reply:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port: int = server.sockets[0].getsockname()[1]
            clients = Connections(cast(ClientWire, wire), lambda node: port, lambda node: "127.0.0.1")
            got = await clients.call(0, "n1", "q", 30 * 10**9)
            clients.close()
            await ended.wait()
        return got

    return asyncio.run(story()), broken


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (b"a", Replied(b"a")),
        (b"b", Lost("KeyError: b'b'")),
        (b"?", Lost("no answer in the store's protocol: ?")),
    ],
)
def test_what_the_wire_cannot_read_is_no_answer(answer: bytes, reply: Reply) -> None:
    """If it failed, a defect of a user's own wire would be a traceback on the screen at each answer."""
    assert reply_to(Odd(), answer, 1) == (reply, [])


class Late(Odd):
    """The server begins, with the greeting "g"."""

    def __init__(self) -> None:
        self.greeted = False

    def feed(self, data: bytes) -> list[bytes]:
        self.greeted = True
        return [data[1:]]


def test_what_ends_a_connection_together_with_its_greeting_is_no_request() -> None:
    """If it failed, a server that says more than a greeting at once would end the run with a traceback, where a user's
    own wire cannot read that."""
    assert reply_to(Late(), b"gb", 0) == (NotSent("no greeting: KeyError: b'b'"), [])
