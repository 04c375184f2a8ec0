"""The model of a history that does not name it, by the names and values of its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from checkers.history.etcd_records import NAMES
from checkers.history.history import History
from checkers.history.line_kernels import PLAIN
from checkers.history.operation import Operation

LOOSER = {
    "queue": ("unordered-queue", "any element may come out"),
    "mutex": ("reentrant-mutex", "an owner may acquire its lock again"),
}
"""By a model that may be a wrong guess: the model that allows more for the same operations, and what it allows."""


def guess(history: History) -> str | None:
    """The model that fits the operations' names and values; None if none does."""
    names = history.names - {"dump"}
    for belongs, model in _SIGNS:
        if belongs(names):
            return model if isinstance(model, str) else model(_telling(history))
    return None


def _telling(history: History) -> Iterable[Operation]:
    """The operations whose values may distinguish models: a whole number is a value of any."""
    if not history.names <= {"read", "write", "dump"}:
        return history.operations
    return history.at((history.columns.kind != PLAIN).nonzero()[0])


def _guess_of_transactions(operations: Iterable[Operation]) -> str:
    words = {
        str(micro[0])
        for operation in operations
        if isinstance(operation.value, list)
        for micro in operation.value
        if isinstance(micro, list) and micro
    }
    if words & {"send", "poll"}:
        return "log"
    return "append" if "append" in words else "rw-register"


def _guess_of_reads(operations: Iterable[Operation]) -> str:
    """Reads and writes: of registers, unless a read shows more than was ever written at once."""
    known = list(operations)
    if any(
        write.f == "write" and isinstance(write.value, list | dict) and not _is_rows(write) for write in known
    ):
        return "register"
    for operation in known:
        if operation.f != "read" or operation.type != "ok":
            continue
        if isinstance(operation.value, dict):
            return "bank"
        if isinstance(operation.value, list):
            return "long-fork" if _is_rows(operation) else "causal-reverse"
    return "register"


def _is_rows(operation: Operation) -> bool:
    """Whether it is about several keys, as those of `long-fork` are: [[w, key, value]]."""
    value = operation.value
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _guess_of_adds(operations: Iterable[Operation]) -> str:
    """Things added: to a set if reads show a collection, or if there are none and nothing is added twice; else to a
    counter.
    """
    known = list(operations)
    shown = [operation.value for operation in known if operation.f == "read" and operation.type == "ok"]
    if any(isinstance(value, list) for value in shown):
        rows = (row for value in shown if isinstance(value, list) for row in value)
        return "monotonic" if isinstance(next(rows, None), dict) else "set"
    added = [str(operation.value) for operation in known if operation.f == "add"]
    return "set" if not shown and len(set(added)) == len(added) else "counter"


Guess = str | Callable[[Iterable[Operation]], str]
_SIGNS: tuple[tuple[Callable[[set[str]], Any], Guess], ...] = (
    (lambda names: names & NAMES, "etcd"),
    (lambda names: {"insert", "poll"} <= names, "priority-queue"),
    (lambda names: names & {"send", "poll"}, "log"),
    (lambda names: "txn" in names, _guess_of_transactions),
    (lambda names: {"append", "read"} <= names, "list"),
    (lambda names: names & {"get", "put", "append"}, "kv"),
    (lambda names: names & {"enqueue", "dequeue", "drain"}, "queue"),
    (lambda names: names & {"push", "pop"}, "stack"),
    (lambda names: names & {"acquire", "release"}, "mutex"),
    (lambda names: "transfer" in names, "bank"),
    (lambda names: "generate" in names, "unique-ids"),
    (lambda names: "insert" in names, "write-once"),
    (lambda names: "add" in names, _guess_of_adds),
    (lambda names: "cas" in names, "cas-register"),
    (lambda names: names & {"read", "write"}, _guess_of_reads),
)
