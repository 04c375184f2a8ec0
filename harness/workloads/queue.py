"""Queues: elements go in at one end and come out at the other, once and in order.

A queue is a list under one key. In the end each is drained, so that what never came out is lost. The queue moves on
every few seconds, which bounds its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from checkers.domain import queues
from checkers.history.history import History
from harness.clients.completion import Completion
from harness.clients.transaction import (
    Refused,
    Statement,
    dump,
    dump_completion,
    outcome,
    transaction,
    unexpected,
)
from harness.errors import WrongUse
from harness.generators import Context, Draft, Generator
from harness.generators.generator import Value
from harness.plan import SECOND_NS, Operation, Plan
from harness.protocols import Reply
from harness.systems.promises import Promise
from harness.workloads.checks import Check, kept_by, of_every_run
from harness.workloads.keyed import HONESTY, Keyed, mixed, unique, unread_keys
from harness.workloads.reads import drawn_write
from nodes.iproto.messages import Request

SPACE = "queue"
KEYS = 2
EPOCH_NS = 2 * SECOND_NS
EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Queue(Keyed):
    summary: str = "elements put into queues and taken out, first in, first out"
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "queue"

    def generator(self, plan: Plan, worker: int) -> Generator:
        def enqueue(context: Context, count: int) -> Draft:
            return Draft("enqueue", _key(context), unique(worker, count), drawn_write(plan, context))

        def dequeue(context: Context, _: int) -> Draft:
            return Draft("dequeue", _key(context))

        return mixed(plan, (0.55, enqueue), (0.45, dequeue))

    def request(self, operation: Operation, value: Value, sync: int) -> Request:
        match operation.f, operation.key, value:
            case "enqueue", str(key), int():
                statements: list[Statement] = [["append", SPACE, key, value]]
            case "dequeue", str(key), _:
                statements = [["take", SPACE, key]]
            case "drain", str(key), _:
                statements = [["get", SPACE, key], ["replace", SPACE, [key, []]]]
            case "dump", _, _:
                return dump(sync)
            case f, key, _:
                raise WrongUse(f"the workload queue has no {f!r} of key {key!r} with value {value!r}")
        return transaction(sync, statements)

    def completion(self, operation: Operation, value: Value, reply: Reply) -> Completion:
        if operation.f == "dump":
            return dump_completion(reply)
        found = outcome(reply, 2 if operation.f == "drain" else 1, is_read=False)
        match found:
            case Completion():
                return found
            case Refused():
                return unexpected(found, is_read=False, role=found.role)
        match operation.f, found.results:
            case "enqueue", _:
                return Completion("ok", value, None, found.role)
            case "dequeue", [None]:
                return Completion("fail", None, EMPTY, found.role)
            case "dequeue", [int() as element]:
                return Completion("ok", element, None, found.role)
            case "drain", [None, _]:
                return Completion("ok", (), None, found.role)
            case "drain", [[_, (list() | tuple()) as rest] | (_, (list() | tuple()) as rest), _]:
                return Completion("ok", tuple(rest), None, found.role)
        return unexpected(found.results, is_read=False, role=found.role)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        return [Operation(at_ns=0, worker=0, f="drain", key=key, node=owner) for key in keys]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        return (
            Check(
                queues.NAME,
                "what went in comes out once, and what went in first comes out first",
                queues.MODEL if promise.writes == "linearizable" else "",
                queues.check,
            ),
            HONESTY,
            *of_every_run(promise),
            *kept_by(promise, queues.gone_everywhere),
        )

    def missing(self, history: History) -> Iterator[str]:
        yield from unread_keys(history, ("enqueue",), lambda each: each.f == "drain" and each.type == "ok")


def _key(context: Context) -> str:
    return f"q{context.time_ns // EPOCH_NS}-{context.chance.randrange(KEYS)}"
