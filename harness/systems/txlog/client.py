"""The client of the TxLog: what writes is submitted to a master and awaited until that master has executed it.

A read of mode `linearizable` is submitted, too: it shows the state at its place in the log. Every other read shows the
executed state of the master that is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.clients.client import Conversation, Send
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.operations import (
    Asked,
    Cas,
    Completion,
    Done,
    Dump,
    Insert,
    Mismatch,
    Outcome,
    Read,
    Scan,
    Step,
    Transaction,
    Write,
    failed,
    unexpected,
)

IN_THE_LOG = "linearizable"
"""The mode of reads that are submitted."""
ROLE = "replica"
"""Of every master: the answer of one alone may be old."""


@dataclass(frozen=True, slots=True)
class TxLogClient:
    """Implements `harness.clients.client.MessageClient`."""

    speaks: frozenset[type] = frozenset({Read, Scan, Write, Insert, Cas, Dump})

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        return outcome_of(asked, (yield Send(node, request_of(asked, next_id()))))


CLIENT = TxLogClient()


def is_submitted(asked: Transaction) -> bool:
    return not asked.is_read or asked.mode == IN_THE_LOG


def request_of(asked: Asked, number: int) -> list[Any]:
    match asked:
        case Dump():
            return ["dump", number]
        case Transaction(steps=steps) if is_submitted(asked):
            return ["submit", number, [_words(step) for step in steps], "executed"]
        case Transaction(steps=steps):
            return ["read", number, [_words(step) for step in steps]]
        case _:
            raise AssertionError(f"a client is asked for what it speaks alone, got {asked!r}")


def _words(step: Step) -> list[Any]:
    match step:
        case Read(space, key):
            return ["read", space, key]
        case Scan(space, first, below):
            return ["scan", space, first, below]
        case Write(space, key, value):
            return ["write", space, key, value]
        case Insert(space, key, value):
            return ["insert", space, key, value]
        case Cas(space, key, old, new):
            return ["cas", space, key, old, new]
        case _:
            raise AssertionError(f"a client is asked for what it speaks alone, got {step!r}")


def outcome_of(asked: Asked, reply: Reply) -> Outcome:
    """The outcome of the request, from its answer or the lack of one."""
    match reply:
        case Replied([_, _, dict() as told]) if isinstance(asked, Transaction):
            return _answered(told, asked)
        case Replied([_, _, {"spaces": dict() as spaces}]):
            return Done(({"spaces": spaces},))
        case NotSent(reason):
            return Completion("fail", None, reason)
        case Lost(reason):
            return failed(reason, is_read=asked.is_read)
        case Replied(response):
            return unexpected(response, is_read=asked.is_read)


def _answered(told: dict[Any, Any], asked: Transaction) -> Outcome:
    name = told.get("id")
    transaction = name if isinstance(name, str) else None
    mode = asked.mode if asked.is_read else None
    match told:
        case {"type": "ok", "results": list() as results} if len(results) == len(asked.steps):
            return Done(results, ROLE, mode, transaction=transaction)
        case {"type": "mismatch", "step": int() as number, "found": found}:
            return Mismatch(number, found, ROLE, transaction=transaction)
        case {"type": "fail", "error": str() as error}:
            return Completion("fail", None, error, ROLE, transaction=transaction)
        case _:
            return unexpected(told, is_read=asked.is_read)
