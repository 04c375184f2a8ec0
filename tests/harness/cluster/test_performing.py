"""Operations of message clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from harness.clients.client import Conversation, NotDone, Send
from harness.clients.operations import Asked, Completion, Done, Outcome, Read, Transaction, Write
from harness.clients.reply import NotSent, Replied, Reply
from harness.cluster.performing import Conversing
from harness.cluster.protocol import Cluster


class Echo:
    """The answer is the outcome."""

    speaks = frozenset({Read, Write})

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        reply = yield Send(node, next_id())
        assert isinstance(reply, Replied)
        return cast(Outcome, reply.response)


class Answers:
    def __init__(self, response: object) -> None:
        self._response = response
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    async def call(self, *_: object) -> Reply:
        self._now_ns += 1
        return Replied(self._response)


class Own:
    """A client of a user's own."""

    speaks = frozenset({Read, Write})

    def __init__(self, converse: Callable[[], Any]) -> None:
        self._converse = converse

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        return cast(Conversation, self._converse())


def outcomes(client: Any, timeout_ns: int = 1) -> tuple[Completion, Completion]:
    """Of a read, and of a write."""
    conversing = Conversing(client, cast(Cluster, Answers("3")))
    read, write = (
        asyncio.run(conversing.perform(0, "n1", Transaction((step,)), timeout_ns))
        for step in (Read("s", "k"), Write("s", "k", 1))
    )
    assert isinstance(read, Completion) and isinstance(write, Completion)
    return read, write


@pytest.mark.parametrize("odd", [Done([object()]), Done([{None: 1}]), Done([]), Done([1, 2]), None])
def test_an_answer_that_no_record_can_hold_is_unexpected(odd: object) -> None:
    """If it failed, one odd value of a user's store would end the run without a verdict."""

    def outcome_of(step: Read | Write) -> Any:
        conversing = Conversing(Echo(), cast(Cluster, Answers(odd)))
        return asyncio.run(conversing.perform(0, "n1", Transaction((step,)), 1))

    for step, ended in ((Read("s", "k"), "fail"), (Write("s", "k", 1), "info")):
        outcome = outcome_of(step)
        assert isinstance(outcome, Completion) and outcome.type == ended
        assert str(outcome.error).startswith("unexpected answer")


def not_begun() -> Any:
    raise ValueError("no port")


def broken() -> Any:
    yield Send("n1", "a")
    raise KeyError("value")


def no_message() -> Any:
    yield "a"


@pytest.mark.parametrize(
    ("converse", "why"),
    [
        (not_begun, "ValueError: no port"),
        (broken, "KeyError: 'value'"),
        (no_message, "AttributeError: 'str' object has no attribute 'node'"),
        (lambda: None, "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_an_exception_of_the_client_leaves_the_outcome_of_a_write_unknown(
    converse: Callable[[], Any], why: str
) -> None:
    """If it failed, one answer that a user's client does not expect would end the run without a verdict."""
    read, write = outcomes(Own(converse))
    assert read == Completion("fail", None, why)
    assert write == Completion("info", None, why)


def test_a_client_that_says_not_done_is_believed() -> None:
    """If it failed, every refusal of a store would count as a write of unknown outcome."""

    def converse() -> Any:
        yield Send("n1", "a")
        raise NotDone("locked")

    assert outcomes(Own(converse)) == (Completion("fail", None, "locked"),) * 2


def test_a_client_that_sends_again_for_ever_ends_with_its_time() -> None:
    """If it failed, a client with a loop around its request would hang the run."""
    replies: list[Reply] = []

    def converse() -> Any:
        while True:
            replies.append((yield Send("n1", "a")))

    assert outcomes(Own(converse), 2) == (
        Completion("fail", None, "timeout"),
        Completion("info", None, "timeout"),
    )
    assert replies == [Replied("3"), Replied("3"), NotSent("timeout")] * 2
