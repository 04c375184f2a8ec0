"""The client of the two-phase store: a transaction is one request to a near node (`nodes.twophase.clients`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.clients.client import Conversation, Send
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.operations import (
    STEPS,
    Add,
    Append,
    Asked,
    Cas,
    Completion,
    Delete,
    Done,
    Dump,
    Insert,
    Mismatch,
    Outcome,
    Read,
    RestoredCut,
    Scan,
    Step,
    Take,
    Transaction,
    Write,
    failed,
    unexpected,
)


@dataclass(frozen=True, slots=True)
class TwoPhaseClient:
    """Implements `harness.clients.client.MessageClient`. The store reads no ranges and deletes nothing."""

    speaks: frozenset[type] = frozenset({*STEPS, Dump, RestoredCut} - {Scan, Delete})

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        return outcome_of(asked, (yield Send(node, request_of(asked, next_id()))))


CLIENT = TwoPhaseClient()


def request_of(asked: Asked, number: int) -> list[Any]:
    match asked:
        case Dump():
            return ["dump", number]
        case Transaction(steps=steps):
            return ["txn", number, [_words(step) for step in steps], {}]
        case _:
            raise AssertionError(f"a client is asked for what it speaks alone, got {asked!r}")


def _words(step: Step) -> list[Any]:
    match step:
        case Read(space, key):
            return ["read", space, key]
        case Insert(space, key, value):
            return ["insert", space, key, value]
        case Write(space, key, value):
            return ["write", space, key, value]
        case Cas(space, key, old, new):
            return ["cas", space, key, old, new]
        case Append(space, key, element):
            return ["append", space, key, element]
        case Take(space, key):
            return ["take", space, key]
        case Add(space, key, amount, least):
            return ["add", space, key, amount, least]
        case Scan() | Delete():
            raise AssertionError("a client is asked for what it speaks alone")


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
    name = told.get("xid")
    transaction = name if isinstance(name, str) else None
    match told:
        case {"type": "ok", "results": list() as results} if len(results) == len(asked.steps):
            return Done(results, transaction=transaction)
        case {"type": "mismatch", "step": int() as number, "found": found}:
            return Mismatch(number, found, transaction=transaction)
        case {"type": "fail", "error": str() as error}:
            return Completion("fail", None, error, transaction=transaction)
        case {"type": "info", "error": str() as error}:
            return Completion("fail" if asked.is_read else "info", None, error, transaction=transaction)
        case _:
            return unexpected(told, is_read=asked.is_read)
