"""The client of a reference store that talks in `nodes.framed`: a transaction is one request, and has one answer.

A request is `[word, number, …]`, its answer `["answer", number, body]`. The body for a transaction is a map with a
`type`:

| type | and | means |
|---|---|---|
| "ok" | `results` | it happened: the result of each step |
| "mismatch" | `step`, `found` | a step found something else, so nothing happened |
| "fail" | `error` | nothing happened |
| "info" | `error` | the node does not know whether it happened |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.clients.client import Conversation, Send
from harness.clients.operations import (
    Asked,
    Completion,
    Done,
    Dump,
    Mismatch,
    Outcome,
    Step,
    Transaction,
    failed,
    unexpected,
)
from harness.clients.reply import Lost, NotSent, Replied, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class FramedClient:
    """Implements `harness.clients.client.MessageClient`."""

    speaks: frozenset[type]
    request: Callable[[Transaction, int, list[list[Any]]], list[Any]]
    """Transaction, number, its steps in words → the request."""
    named: str
    """The field of an answer with the store's own name for the transaction."""
    role: str | None = None
    """The role of the node that answers: "replica" if the answer of a single node may be stale."""
    has_modes: bool = False
    """Reads are served in the mode that they ask for."""

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        return self.outcome_of(asked, (yield Send(node, self.request_of(asked, next_id()))))

    def request_of(self, asked: Asked, number: int) -> list[Any]:
        match asked:
            case Dump():
                return ["dump", number]
            case Transaction(steps=steps):
                return self.request(asked, number, [_words(step) for step in steps])
            case _:
                raise AssertionError(f"a client is asked for what it speaks alone, got {asked!r}")

    def outcome_of(self, asked: Asked, reply: Reply) -> Outcome:
        """The outcome of the request, from its answer or the lack of one."""
        match reply:
            case Replied([_, _, dict() as answer]) if isinstance(asked, Transaction):
                return self._answered(answer, asked)
            case Replied([_, _, {"spaces": dict() as spaces}]):
                return Done(({"spaces": spaces},))
            case NotSent(reason):
                return Completion("fail", None, reason)
            case Lost(reason):
                return failed(reason, is_read=asked.is_read)
            case Replied(response):
                return unexpected(response, is_read=asked.is_read)

    def _answered(self, answer: dict[Any, Any], asked: Transaction) -> Outcome:
        name, role = answer.get(self.named), self.role
        transaction = name if isinstance(name, str) else None
        mode = asked.mode if asked.is_read and self.has_modes else None
        match answer:
            case {"type": "ok", "results": list() as results} if len(results) == len(asked.steps):
                return Done(results, role, mode, transaction=transaction)
            case {"type": "mismatch", "step": int() as number, "found": found}:
                return Mismatch(number, found, role, transaction=transaction)
            case {"type": "fail", "error": str() as error}:
                return Completion("fail", None, error, role, transaction=transaction)
            case {"type": "info", "error": str() as error}:
                is_read = asked.is_read
                return Completion("fail" if is_read else "info", None, error, role, transaction=transaction)
            case _:
                return unexpected(answer, is_read=asked.is_read)


def _words(step: Step) -> list[Any]:
    return [type(step).__name__.lower(), *msgspec.structs.astuple(step)]
