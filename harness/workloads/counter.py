"""Counters: additions of positive and negative amounts, and reads that must lie between what can have been added.

The set of keys moves on every few seconds: an addition of unknown outcome widens the bounds of its key for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from checkers.domain import counter
from checkers.history.declared import Declared
from checkers.history.history import History
from harness.clients.operations import Add, Completion, Done, Mismatch, Read, Transaction
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, Operation, Plan
from harness.plan.promise import WRITES, Promise
from harness.workloads.checks import (
    Check,
    fresh_reads,
    is_fresh_at_the_end,
    kept_by,
    of_every_run,
    of_objects,
    with_a_known_end,
)
from harness.workloads.common import mixed, unread_keys
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write
from harness.workloads.workload import Workload

SPACE = "counter"
KEYS = 3
EPOCH_NS = 2 * SECOND_NS
AMOUNTS = (-3, -2, -1, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Counter(Workload):
    summary: str = "additions to counters, and reads of them"
    weight: float = 0.5
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "counter"
    has_single_steps: bool = True
    needs_fresh_reads: bool = True
    uses: frozenset[type] = frozenset({Read, Add})
    effects: Mapping[str, Declared] = field(default_factory=lambda: {"read": "reads", "add": "writes"})

    def generator(self, plan: Plan, worker: int) -> Generator:
        def add(context: Context, _: int) -> Draft:
            return Draft("add", _key(context), context.chance.choice(AMOUNTS), drawn_write(plan, context))

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            return Draft("read", _key(context), node=node, mode=mode)

        return mixed(plan, (0.5, add), (0.5, read))

    def asked(self, operation: Operation, value: Value) -> Transaction:
        match operation.f, operation.key, value:
            case "read", str(key), _:
                step: Read | Add = Read(SPACE, key)
            case "add", str(key), int():
                step = Add(SPACE, key, value)
            case f, key, _:
                raise WrongUse(f"the workload counter has no {f!r} of key {key!r} with value {value!r}")
        return Transaction((step,), operation.mode)

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match operation.f, found:
            case "read", Done([None | int() as total], role):
                return Completion("ok", total or 0, None, role)
            case "add", Done([int()], role):
                return Completion("ok", value, None, role)
        return None

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        reads = fresh_reads(promise, stricter)
        return (
            Check(
                counter.NAME,
                "every read that must be fresh lies between what surely and what possibly was added",
                counter.MODEL if promise.model(WRITES) == "linearizable" else "",
                lambda history: counter.check(with_a_known_end(history), reads=reads),
            ),
            of_objects(self.model, promise.model(WRITES), reads),
            *of_every_run(promise),
            *kept_by(promise, counter.gone_everywhere),
        )

    def missing(self, history: History) -> Iterator[str]:
        yield from unread_keys(history, ("add",), lambda each: each.f == "read" and is_fresh_at_the_end(each))


def _key(context: Context) -> str:
    return f"c{context.time_ns // EPOCH_NS}-{context.chance.randrange(KEYS)}"
