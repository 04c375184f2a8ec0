"""Entries of logs with offsets, such as Kafka's: what an operation sent and polled.

| f | value |
|---|---|
| send, poll, txn | micro-operations: `[send, key, value]` is answered with `[send, key, [offset, value]]` (offset null: unknown), `[poll]` with `[poll, {key: [[offset, value], …]}]` |
| assign, subscribe | the keys that the client polls from now on |
"""  # noqa: E501 (rows of a table)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from checkers.history.errors import ModelError
from checkers.history.operation import Operation
from checkers.history.values import Value, identity, value_words

MOVES = ("assign", "subscribe")
JUDGED = ("send", "poll", "txn")


class Entry(NamedTuple):
    """A value that an operation sent or polled. `offset`: None if it is unknown."""

    key: str
    offset: int | None
    value: Any
    operation: Operation

    @property
    def name(self) -> tuple[str, Value]:
        return self.key, identity(self.value)

    def __str__(self) -> str:
        return f"{value_words(self.value, 60)} of log {self.key}"


def _micros(operation: Operation) -> Iterator[Sequence[Any]]:
    if operation.f in MOVES or operation.value is None:
        return
    for micro in operation.value if isinstance(operation.value, list | tuple) else [None]:
        if not isinstance(micro, list | tuple) or not micro or micro[0] not in ("send", "poll"):
            raise _strange(operation, "[[send, key, value], [poll], …]")
        yield micro


def keys_of(move: Operation) -> set[str]:
    """The keys that an assign or a subscribe names. Raises ModelError."""
    if not isinstance(move.value, list | tuple | None):
        raise _strange(move, "[key, …]")
    return {str(key) for key in move.value or ()}


def sent_by(operation: Operation) -> Iterator[Entry]:
    """The entries that the operation sent, or asked to send, in its order. Raises ModelError."""
    for micro in _micros(operation):
        if micro[0] != "send":
            continue
        if len(micro) != 3:
            raise _strange(operation, "[send, key, value], answered with [send, key, [offset, value]]")
        answer = micro[2]
        is_answered = operation.complete_index is not None
        offset, value = answer if is_answered and _is_pair(answer) else (None, answer)
        is_strange = (
            isinstance(answer, list | tuple) and len(answer) == 2 and isinstance(answer[0], bool | float)
        )
        if operation.type == "ok" and is_strange:
            raise _strange(operation, "[send, key, [offset, value]], the offset a whole number or null")
        if operation.type == "fail":
            offset = None
        yield Entry(str(micro[1]), offset, value, operation)


def polled_by(operation: Operation) -> Iterator[Entry]:
    """The entries that the operation showed, in its order: a failed transaction has polled, too. Raises ModelError."""
    for micro in _micros(operation):
        if micro[0] != "poll" or len(micro) == 1:
            continue
        if not isinstance(micro[1], Mapping):
            raise _strange(operation, "[poll], answered with [poll, {key: [[offset, value], …]}]")
        for key, pairs in micro[1].items():
            for pair in pairs if isinstance(pairs, list | tuple) else [pairs]:
                if not _is_pair(pair):
                    raise _strange(operation, "[poll], answered with [poll, {key: [[offset, value], …]}]")
                yield Entry(str(key), pair[0], pair[1], operation)


def _is_pair(value: Any) -> bool:
    """[offset, value], where the offset may be unknown."""
    return isinstance(value, list | tuple) and len(value) == 2 and (value[0] is None or type(value[0]) is int)


def _strange(operation: Operation, expected: str) -> ModelError:
    came = f"{operation.f} with value {value_words(operation.value, 60)}"
    return ModelError(expected=expected, came=came, index=operation.invoke_index)
