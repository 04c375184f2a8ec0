"""Queues: elements go in at one end and come out at the other, once and in order.

A queue is a list under one key. In the end each is drained, so that what never came out is lost: by one transaction,
or by takes until one finds nothing where the client can only put in and take out. The queue moves on every few seconds,
which bounds its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from checkers.domain import queues
from checkers.history.declared import Declared
from checkers.history.history import History
from harness.clients.operations import (
    Append,
    Completion,
    Done,
    Mismatch,
    Read,
    Step,
    Take,
    Transaction,
    Write,
)
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, Operation, Plan
from harness.plan.promise import QUEUES, WRITES, Promise
from harness.workloads.checks import Check, fresh_reads, kept_by, of_every_run, of_objects, refusals_observe
from harness.workloads.common import HONESTY, mixed, unique, unread_keys
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_write
from harness.workloads.workload import Workload

SPACE = "queue"
KEYS = 2
EPOCH_NS = 2 * SECOND_NS
EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Queue(Workload):
    summary: str = "elements put into queues and taken out, first in, first out"
    weight: float = 0.5
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "queue"
    shares: frozenset[str] = frozenset({"stray_writes"})
    uses: frozenset[type] = frozenset({Append, Take, Read, Write})
    """Without Read a queue is emptied by takes."""
    effects: Mapping[str, Declared] = field(
        default_factory=lambda: {"enqueue": "writes", "dequeue": "both", "drain": "both"}
    )

    def generator(self, plan: Plan, worker: int) -> Generator:
        def enqueue(context: Context, count: int) -> Draft:
            return Draft("enqueue", _key(context), unique(worker, count), drawn_write(plan, context))

        def dequeue(context: Context, _: int) -> Draft:
            return Draft("dequeue", _key(context))

        return mixed(plan, (0.55, enqueue), (0.45, dequeue))

    def asked(self, operation: Operation, value: Value) -> Transaction:
        match operation.f, operation.key, value:
            case "enqueue", str(key), int():
                steps: tuple[Step, ...] = (Append(SPACE, key, value),)
            case "dequeue", str(key), _:
                steps = (Take(SPACE, key),)
            case "drain", str(key), _:
                steps = (Read(SPACE, key), Write(SPACE, key, []))
            case f, key, _:
                raise WrongUse(f"the workload queue has no {f!r} of key {key!r} with value {value!r}")
        return Transaction(steps)

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match operation.f, found:
            case "enqueue", Done(role=role):
                return Completion("ok", value, None, role)
            case "dequeue", Done([None], role):
                return Completion("fail", None, EMPTY, role)
            case "dequeue", Done([int() as element], role):
                return Completion("ok", element, None, role)
            case "drain", Done([None | list() | tuple() as rest, _], role):
                return Completion("ok", tuple(rest or ()), None, role)
        return None

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        f = "drain" if Read in self.uses else "dequeue"
        return [Operation(at_ns=0, worker=0, f=f, key=key, node=owner) for key in keys]

    def goes_on(self, operation: Operation, done: Completion) -> bool:
        return operation.f == "dequeue" and done.type == "ok"

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        is_again = promise.model(QUEUES) == "at least once"
        # A drain reads, and then writes.
        is_whole = not is_again and promise.has_whole_transactions(are_plain=False)
        reads = fresh_reads(promise, stricter)
        return (
            Check(
                queues.NAME,
                "what went in comes out; and once, and in order, if that is promised",
                queues.AT_LEAST_ONCE if is_again else queues.MODEL if is_whole else "",
                partial(queues.check, again=is_again, failed_cas_observes=refusals_observe(reads)),
            ),
            of_objects(self.model, promise.model(WRITES) if is_whole else "", reads),
            HONESTY,
            *of_every_run(promise),
            *kept_by(promise, queues.gone_everywhere),
        )

    def missing(self, history: History) -> Iterator[str]:
        yield from unread_keys(
            history, ("enqueue",), lambda each: each.saw_empty or (each.f == "drain" and each.type == "ok")
        )


def _key(context: Context) -> str:
    return f"q{context.time_ns // EPOCH_NS}-{context.chance.randrange(KEYS)}"
