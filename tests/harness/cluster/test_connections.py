"""What the harness makes of answers to its own requests for the state of a node."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from harness.clients.reply import NotSent, Replied, Reply
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
        return cast(str, message).encode()


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
    ],
)
def test_what_cannot_be_sent_is_not_sent(node: str, message: object, why: str) -> None:
    """If it failed, a user's client that follows a store to a leader of no name would end the run."""
    clients = Connections(cast(ClientWire, Wire()), {"n1": 1}.__getitem__, lambda node: "h")
    assert asyncio.run(clients.call(0, node, message, 10**9)) == NotSent(why)
