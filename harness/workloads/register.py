"""Registers: reads, writes and compare-and-set on several keys of one synchronous space.

Every written value is unique (a number per worker and count), so that a read tells which write it saw. A plan may ask
for deletions: a deletion is a write of None, what a key holds before its first write. One that finds nothing there is
recorded as failed ("nothing-there"): it changed nothing, and observed as little as a refused compare-and-set. A
compare-and-set expects what its worker last read or wrote under the key ("@seen"): often right, often outrun. The set
of keys moves on every few seconds, which bounds the history of one key and with it what a checker has to search. After
an hour it begins again at the first: but for rows written once, a node of a day's run holds as many tuples as one of an
hour's.

Most operations go to the owner; a share of the reads goes to replicas, where less is promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from checkers.check import Check
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import NOTHING_THERE, SUBMITTED
from checkers.history.operation import Operation as Recorded
from checkers.replicas import dirty, prefix
from harness.clients.operations import Cas, Completion, Delete, Done, Mismatch, Read, Step, Transaction, Write
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, SEEN, Operation, Plan
from harness.plan.promise import DIRTY_READS, REPLICA_READS, WRITES, Promise
from harness.workloads.checks import fresh_reads, is_fresh_at_the_end, of_every_run, of_objects
from harness.workloads.common import mixed, unique, unread_keys
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write
from harness.workloads.workload import USUAL, Workload

SPACE = "register"
PLACES = range(5)
EPOCH_NS = 4 * SECOND_NS
EPOCHS = 900
"""An hour of them: then the keys of the first one come again."""
ONCE = "-once-"
"""In a key that nothing else writes."""


@dataclass(frozen=True, slots=True)
class Register(Workload):
    summary: str = "reads, writes and compare-and-set on several keys of a synchronous space"
    weight: float = 5
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "cas-register"
    can_submit: bool = True
    shares: frozenset[str] = USUAL | {"write_once", "deletes"}
    has_single_steps: bool = True
    has_cas: bool = True
    """False for stores that cannot compare and set."""
    effects: Mapping[str, Declared] = field(
        default_factory=lambda: {"read": "reads", "write": "writes", "cas": "both"}
    )

    @property
    def uses(self) -> frozenset[type]:
        return frozenset({Read, Write, *((Cas,) if self.has_cas else ())})

    def generator(self, plan: Plan, worker: int) -> Generator:
        def write(context: Context, count: int) -> Draft:
            # Even numbers here, odd ones of a cas: no value is written twice, or a read would not tell which it saw.
            node, value = drawn_write(plan, context), unique(worker, 2 * count)
            # Nothing is drawn where the plan does not ask for it: seeds of plans without it stay as they are.
            if plan.write_once > 0 and context.chance.random() < plan.write_once:
                return Draft("write", f"{_epoch(context)}{ONCE}{value}", value, node=node)
            is_deletion = plan.deletes > 0 and context.chance.random() < plan.deletes
            return Draft("write", _key(context), None if is_deletion else value, node=node)

        def cas(context: Context, count: int) -> Draft:
            return Draft("cas", _key(context), (SEEN, unique(worker, 2 * count + 1)))

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            return Draft("read", _key(context), node=node, mode=mode)

        return mixed(plan, (0.45, read), (0.35, write), *([(0.2, cas)] if self.has_cas else []))

    def is_deletion(self, operation: Operation) -> bool:
        return operation.f == "write" and operation.value is None

    def may_submit(self, operation: Operation) -> bool:
        """A deletion has no value that would identify it."""
        return operation.f in ("write", "cas") and not self.is_deletion(operation)

    def resolved(self, operation: Operation, seen: dict[str, Value]) -> Value:
        value: Value = operation.value
        if operation.f == "cas" and isinstance(value, tuple) and operation.key is not None:
            last = seen.get(operation.key)
            return tuple(last if part == SEEN else part for part in value)
        return value

    def remember(self, operation: Operation, done: Completion, seen: dict[str, Value]) -> None:
        """The store compares with submitted writes, too."""
        is_told = done.error in (SUBMITTED, NOTHING_THERE)
        value = operation.value if is_told else done.value
        if operation.key is None or (done.type != "ok" and not is_told):
            return
        match operation.f, value:
            case "cas", (_, None | int() as new):
                seen[operation.key] = new
            case "read" | "write", None | int() as value:
                seen[operation.key] = value

    def asked(self, operation: Operation, value: Value) -> Transaction:
        match operation.f, operation.key, value:
            case "read", str(key), _:
                step: Step = Read(SPACE, key)
            case "write", str(key), int():
                step = Write(SPACE, key, value)
            case "write", str(key), None:
                step = Delete(SPACE, key)
            case "cas", str(key), (old, new):
                step = Cas(SPACE, key, old, new)
            case f, key, _:
                raise WrongUse(f"the workload register has no {f!r} of key {key!r} with value {value!r}")
        return Transaction((step,), operation.mode, operation.wait)

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        is_read, is_deletion = operation.f == "read", self.is_deletion(operation)
        match found:
            # Only a value that is confirmed was observed: a prepared one may be rolled back.
            case Mismatch(0, int() as there, role, is_confirmed=True) if isinstance(value, tuple):
                return Completion("fail", (*value, there), found.error, role)
            case Mismatch(role=role):
                return Completion("fail", value, found.error, role)
            case Done([None | int() as shown], role) if is_read:
                return Completion("ok", shown, None, role)
            case Done([True], role) if is_deletion:
                return Completion("ok", None, None, role)
            case Done([False], role, mode) if is_deletion:
                beside = ", or what was there may be rolled back" if mode == "dirty" else ""
                return Completion("fail", None, NOTHING_THERE + beside, role)
            case Done(role=role) if not (is_read or is_deletion):
                return Completion("ok", value, None, role)
        return None

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        reads = fresh_reads(promise, stricter)
        quorum, convergence, *others = of_every_run(promise, SPACE)
        return (
            of_objects("register", promise.model(WRITES) if self.has_cas else promise.of_plain_writes, reads),
            quorum,
            Check(
                "prefix",
                "reads at a replica show confirmed values only and never go back",
                promise.model(REPLICA_READS),
                partial(prefix.check, stronger=reads),
                is_per_key=True,
            ),
            Check(
                "dirty",
                "dirty reads show only values that a client asked to write",
                promise.model(DIRTY_READS),
                dirty.check,
                is_per_key=True,
            ),
            convergence,
            *others,
        )

    def kind(self, operation: Recorded) -> str:
        return "delete" if operation.is_deletion else operation.f

    def missing(self, history: History) -> Iterator[str]:
        return unread_keys(history, ("write", "cas"), is_fresh_at_the_end)


def _key(context: Context) -> str:
    """A key of the present set."""
    return f"{_epoch(context)}-{context.chance.choice(PLACES)}"


def _epoch(context: Context) -> str:
    return f"{SPACE[0]}{context.time_ns // EPOCH_NS % EPOCHS}"
