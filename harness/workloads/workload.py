"""A workload: operations to do, their requests to a store, their outcomes, and how they are judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from checkers.check import Check
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from harness.clients.operations import Completion, Done, Mismatch, Transaction
from harness.plan.plan import Operation, Plan
from harness.plan.promise import Promise
from harness.workloads.generators import Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import final_mode

SHARES = ("replica_reads", "stray_writes", "roaming", "failing", "write_once")
"""The fields of a plan that say how many operations, or clients, are of some kind, and do nothing where a workload has
none. Only `deletes` of a workload that deletes nothing is refused in any plan (`harness.run.assemble`)."""
USUAL = frozenset({"replica_reads", "roaming", "stray_writes"})


class Workload(ABC):
    """A new one is a file in this package; ARCHITECTURE.md says which tables get a line. Most keep the defaults."""

    __slots__ = ()

    @property
    @abstractmethod
    def summary(self) -> str:
        """A sentence for `qsync list`."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """How often a hunt draws it beside the others; 0: only where the client speaks no other."""

    @property
    @abstractmethod
    def spaces(self) -> tuple[str, ...]:
        """The synchronous spaces that it writes to; the system makes them."""

    @property
    def asynchronous(self) -> tuple[str, ...]:
        """The asynchronous spaces that it writes to, which the system must have: no quorum confirms their rows."""
        return ()

    @property
    @abstractmethod
    def model(self) -> str:
        """The meaning of its operations: a name of `checkers.models.MODELS`, of several workloads maybe. A new model
        needs a definition of its own in `tests/checkers/brute`."""

    @property
    @abstractmethod
    def uses(self) -> frozenset[type]:
        """The steps (`harness.clients.operations`) that its operations are made of; a client must speak them all.

        Deletions, and transactions that must fail, need more (`harness.run.assemble`)."""

    @property
    @abstractmethod
    def effects(self) -> Mapping[str, Declared]:
        """The effect of each of its operations, by `f`; it goes into the history's header."""

    @property
    def has_single_steps(self) -> bool:
        """Each operation is one step on one key, so a space without transactions can serve it."""
        return False

    @property
    def is_order_free(self) -> bool:
        """Its transactions come to the same in every order."""
        return False

    @property
    def needs_fresh_reads(self) -> bool:
        """Reads that must be fresh alone judge it: without any, nothing stands behind a valid run."""
        return False

    @property
    def is_searched(self) -> bool:
        """Its checker searches for an order among all writes of unknown outcome."""
        return False

    @property
    def can_submit(self) -> bool:
        """Whether it may mix acknowledged writes with merely submitted ones. Values must be unique, so that a write of
        unknown outcome excuses nothing but itself."""
        return False

    @property
    def shares(self) -> frozenset[str]:
        """The fields of a plan, of `SHARES` and `deletes`, by which it draws."""
        return USUAL

    def first_operations(self, plan: Plan, owner: str) -> list[Operation]:
        """Writes that must be there before the load begins. Each must succeed, else there is no run."""
        return []

    @abstractmethod
    def generator(self, plan: Plan, worker: int) -> Generator:
        """The operations of one worker; drawn from the plan alone."""

    def keys(self, operation: Operation) -> tuple[str, ...]:
        """The keys that the operation reads or writes."""
        return () if operation.key is None else (operation.key,)

    def may_submit(self, operation: Operation) -> bool:
        """Whether the operation writes, so that a commit wait mode says something about it."""
        return False

    def is_deletion(self, operation: Operation) -> bool:
        """Whether the operation deletes its key."""
        return False

    def must_fail(self, operation: Operation, value: Value) -> bool:
        """Whether a store that is right refuses the operation (`Plan.failing`)."""
        return False

    def resolved(self, operation: Operation, seen: dict[str, Value]) -> Value:
        """The operation's value as it is asked now. `seen`: what its worker has noted (`remember`)."""
        value: Value = operation.value
        return value

    def remember(self, operation: Operation, done: Completion, seen: dict[str, Value]) -> None:
        """Note what the answer showed, for later operations of this worker."""
        return

    @abstractmethod
    def asked(self, operation: Operation, value: Value) -> Transaction:
        """The request of the operation; WrongUse if it cannot be said. `value` is its value now (`resolved`)."""

    @abstractmethod
    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        """The outcome for the history; None if a result makes no sense."""

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        """The reads when everything has settled, of all keys that were asked for. Every node's dump comes after."""
        mode = final_mode(plan)
        return [Operation(at_ns=0, worker=0, f="read", key=key, node=owner, mode=mode) for key in keys]

    def goes_on(self, operation: Operation, done: Completion) -> bool:
        """Whether a final operation that ended so is asked again: what it shows is a part of what is there."""
        return False

    def everything(self, plan: Plan) -> Transaction | None:
        """Reads of all that a second cluster holds, one key a step. None: no second clusters begin from cuts of the
        first (`harness.run.second_clusters`)."""
        return None

    def as_written(self, history: History) -> History:
        """The history with dumps that show rows as operations write them."""
        return history

    @abstractmethod
    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        """How its histories are judged; `stricter`: a model to judge every read by that is not dirty."""

    def kind(self, operation: Recorded) -> str:
        """Operations of a kind must all have some answers, or the run proves nothing of them. It depends on `f` and the
        value alone; two numbers are alike to it."""
        return operation.f

    def missing(self, history: History) -> Iterator[str]:
        """Sentences on what this history lacks to be evidence. Only asked of runs that came to their end."""
        yield from ()
