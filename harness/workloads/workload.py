"""A workload: operations to do, their requests to a store, their outcomes, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

from checkers.check import Check
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from harness.clients.operations import Completion, Done, Mismatch, Transaction
from harness.plan.plan import Operation, Plan
from harness.plan.promise import Promise
from harness.workloads.generators import Generator
from harness.workloads.generators.generator import Value


class Workload(Protocol):
    """A new one is a file in this package and a line in its table."""

    @property
    def summary(self) -> str:
        """A sentence for `qsync list`."""
        ...

    @property
    def weight(self) -> float:
        """How often a hunt draws it beside the others; 0: only where the client speaks no other."""
        ...

    @property
    def spaces(self) -> tuple[str, ...]:
        """The synchronous spaces that it writes to; the system makes them."""
        ...

    @property
    def model(self) -> str:
        """The meaning of its operations: a name of `checkers.by_model.MODELS`, of several workloads maybe. A new model
        needs a definition of its own in `tests/checkers/brute`."""
        ...

    def first_operations(self, plan: Plan, owner: str) -> list[Operation]:
        """Writes that must be there before the load begins. Each must succeed, else there is no run."""
        ...

    def generator(self, plan: Plan, worker: int) -> Generator:
        """The operations of one worker; drawn from the plan alone."""
        ...

    def keys(self, operation: Operation) -> tuple[str, ...]:
        """The keys that the operation reads or writes."""
        ...

    @property
    def uses(self) -> frozenset[type]:
        """The steps (`harness.clients.operations`) that its operations are made of; a client must speak them all."""
        ...

    @property
    def effects(self) -> Mapping[str, Declared]:
        """The effect of each of its operations, by `f`; it goes into the history's header."""
        ...

    def asked(self, operation: Operation, value: Value) -> Transaction:
        """The request of the operation; WrongUse if it cannot be said. `value` is its value now (see `Remembers`)."""
        ...

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        """The outcome for the history; None if a result makes no sense."""
        ...

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        """The reads when everything has settled, of all keys that were asked for. Every node's dump comes after."""
        ...

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        """How its histories are judged; `stricter`: a model to judge every read by that is not dirty."""
        ...

    def kind(self, operation: Recorded) -> str:
        """Operations of a kind must all have some answers, or the run proves nothing of them. It depends on `f` and the
        value alone; two numbers are alike to it."""
        ...

    def missing(self, history: History) -> Iterator[str]:
        """Sentences on what this history lacks to be evidence. Only asked of runs that came to their end."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A workload with operations that depend on what their worker saw before. `seen` is the worker's own."""

    def resolved(self, operation: Operation, seen: dict[str, Value]) -> Value:
        """The operation's value as it is asked now."""
        ...

    def remember(self, operation: Operation, done: Completion, seen: dict[str, Value]) -> None:
        """Note what its answer showed."""
        ...


@runtime_checkable
class WritesAsynchronously(Protocol):
    """A workload that also writes to asynchronous spaces: no quorum confirms their transactions."""

    @property
    def asynchronous(self) -> tuple[str, ...]:
        """These spaces, by their names; the system must have them."""
        ...


@runtime_checkable
class ShowsCells(Protocol):
    """A workload with rows unlike its operations: elements that are tuples of their own, say."""

    def as_written(self, history: History) -> History:
        """The history with dumps that show cells as operations write them."""
        ...


@runtime_checkable
class Submits(Protocol):
    """A workload that may mix acknowledged writes with merely submitted ones. Values must be unique, so that a write of
    unknown outcome excuses nothing but itself."""

    def may_submit(self, operation: Operation) -> bool:
        """Whether the operation writes, so that a commit wait mode says something about it."""
        ...


@runtime_checkable
class Deletes(Protocol):
    """A workload that makes deletions of a share of its writes, if a plan asks for it (`Plan.deletes`)."""

    def is_deletion(self, operation: Operation) -> bool: ...


@runtime_checkable
class ReadsSecondClusters(Protocol):
    """A workload after which second clusters begin from cuts of the first (`harness.run.second_clusters`)."""

    def everything(self, plan: Plan) -> Transaction:
        """Reads of all that a second cluster holds, one key a step."""
        ...
