"""Sets: elements are added, each as a tuple of its own, and reads scan all of a set at one moment.

The set moves on every few seconds, which bounds what a read shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from checkers.domain import durability, set_full
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from harness.clients.operations import Completion, Done, Insert, Mismatch, Scan, Transaction
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
)
from harness.workloads.common import HONESTY, mixed, unique, unread_keys
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write
from harness.workloads.workload import Workload

SPACE = "set"
EPOCH_NS = 2 * SECOND_NS
ROOM = 10**10
"""A set has so many places: its tuples' keys are its number times this, and the element."""


@dataclass(frozen=True, slots=True)
class Set(Workload):
    summary: str = "elements added one by one, and reads of the whole set at one moment"
    weight: float = 1
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "set"
    can_submit: bool = True
    is_order_free: bool = True
    uses: frozenset[type] = frozenset({Insert, Scan})
    effects: Mapping[str, Declared] = field(default_factory=lambda: {"read": "reads", "add": "writes"})

    def generator(self, plan: Plan, worker: int) -> Generator:
        def add(context: Context, count: int) -> Draft:
            return Draft("add", _key(context), unique(worker, count), drawn_write(plan, context))

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            return Draft("read", _key(context), node=node, mode=mode)

        return mixed(plan, (0.7, add), (0.3, read))

    def may_submit(self, operation: Operation) -> bool:
        return operation.f == "add"

    def asked(self, operation: Operation, value: Value) -> Transaction:
        first = _first(operation.key)
        match operation.f, value:
            case "read", _ if first is not None:
                step: Scan | Insert = Scan(SPACE, first, first + ROOM)
            case "add", int() if first is not None and 0 <= value < ROOM:
                step = Insert(SPACE, first + value, operation.key)
            case f, _:
                raise WrongUse(f"the workload set has no {f!r} of key {operation.key!r} with value {value!r}")
        return Transaction((step,), operation.mode, operation.wait)

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match operation.f, found:
            case "add", Done(role=role):
                return Completion("ok", value, None, role)
            case "read", Done([list() | tuple() as rows], role) if (elements := _elements(rows)) is not None:
                return Completion("ok", elements, None, role)
        return None

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        reads = fresh_reads(promise, stricter)
        return (
            Check(
                set_full.NAME,
                "what was added is in every read after that, and stays",
                set_full.MODEL if promise.model(WRITES) == "linearizable" else "",
                lambda history: set_full.check(history, stale_allowed=False, reads=reads),
            ),
            of_objects(self.model, promise.model(WRITES), reads),
            HONESTY,
            *of_every_run(promise),
            *kept_by(promise, durability.gone_everywhere, self.as_written),
        )

    def as_written(self, history: History) -> History:
        """Dumps that show each set with its elements."""
        return replace(history, operations=tuple(_with_elements(each) for each in history.operations))

    def missing(self, history: History) -> Iterator[str]:
        yield from unread_keys(history, ("add",), lambda each: each.f == "read" and is_fresh_at_the_end(each))


def _key(context: Context) -> str:
    return f"s{context.time_ns // EPOCH_NS}"


def _first(key: str | None) -> int | None:
    """Where the tuples of a set begin."""
    if key is None or not key[1:].isdecimal():
        return None
    return int(key[1:]) * ROOM


def _elements(rows: Sequence[Any]) -> tuple[Value, ...] | None:
    """The elements of the rows that a scan gave; None if a key is none of ours."""
    if not all(isinstance(key, int) for key, _ in rows):
        return None
    return tuple(key % ROOM for key, _ in rows)


def _with_elements(operation: Recorded) -> Recorded:
    if operation.f != "dump" or operation.type != "ok":
        return operation
    sets: dict[str, list[int]] = {}
    for row in operation.value["spaces"].get(SPACE, []):
        match row:
            case [int() as place, str() as name]:
                sets.setdefault(name, []).append(place % ROOM)
    others = operation.value["spaces"]
    return structs.replace(
        operation, value={"spaces": {**others, SPACE: [[name, found] for name, found in sets.items()]}}
    )
