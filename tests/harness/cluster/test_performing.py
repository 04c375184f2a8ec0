"""Operations of message clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from harness.clients.client import Conversation, Send
from harness.clients.operations import Asked, Completion, Done, Outcome, Read, Transaction, Write
from harness.clients.reply import Replied, Reply
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

    def now_ns(self) -> int:
        return 0

    async def call(self, *_: object) -> Reply:
        return Replied(self._response)


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
