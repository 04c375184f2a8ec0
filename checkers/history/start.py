"""The state of objects before the first operation.

A store of ours holds nothing. Other harnesses begin elsewhere: Knossos' `(cas-register 0)`, a counter at 10, keys that
a test wrote before it began to record. Few files record it. `Start` comes from the user, or from the first reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history.operation import Operation
from checkers.history.values import Value, identity, value_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """`value` under every key but those of `by_key`; None: the model's own, such as nothing or an empty list."""

    value: Any = None
    by_key: Mapping[str | None, Any] = field(default_factory=dict)

    def of(self, key: Any) -> Any:
        """The value that a key begins with. A transaction's key may be any JSON; its text counts."""
        return self.by_key.get(_name(key), self.value)

    @property
    def is_plain(self) -> bool:
        """Whether every object begins as its model has it."""
        return self.value is None and all(value is None for value in self.by_key.values())

    def may_show(self, operations: Iterable[Operation]) -> bool:
        """Whether any of these reads a key that does not begin as its model has it."""
        return any(self.of(key) is not None for each in operations for key, _ in _shown(each))

    def to_json(self) -> dict[str, Any]:
        """`without_key` is there if `by_key` has None: JSON has no such key."""
        named = {key: value for key, value in self.by_key.items() if key is not None}
        unnamed = {"without_key": self.by_key[None]} if None in self.by_key else {}
        return {"value": self.value, "by_key": named, **unnamed}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Start:
        unnamed: dict[str | None, Any] = {None: document["without_key"]} if "without_key" in document else {}
        return cls(value=document["value"], by_key={**document["by_key"], **unnamed})

    def __str__(self) -> str:
        return value_words(self.by_key or self.value)


PLAIN_START = Start()


# ---- what the first reads suggest

_READS = frozenset({"read", "get"})
_REGISTERS = frozenset({"write", "cas", "txn", "read", "dump"})


def supposed(operations: Sequence[Operation]) -> Start:
    """The start that the first reads of each key suggest, if they agree; else the plain one.

    A first read began before any change of its key was over, and ended before a client asked to write what it shows.
    Of objects other than registers it was over before any change began.
    """
    changed: dict[str | None, tuple[int, int]] = {}
    written: dict[tuple[str | None, Value], int] = {}
    for operation in operations:
        for key, values in _changes(operation):
            began, over = changed.get(key, (_NEVER, _NEVER))
            returned = operation.returned_index
            changed[key] = (
                min(began, operation.invoke_index),
                min(over, _NEVER if returned is None else returned),
            )
            for value in values:
                place = key, identity(value)
                written[place] = min(written.get(place, _NEVER), operation.invoke_index)
    are_registers = {operation.f for operation in operations} <= _REGISTERS
    shown: dict[str | None, dict[Value, Any]] = {}
    for operation in operations:
        for key, value in _shown(operation) if operation.type == "ok" else ():
            began, over = changed.get(key, (_NEVER, _NEVER))
            is_first = operation.invoke_index < over if are_registers else operation.events[-1] < began
            if is_first and operation.events[-1] < written.get((key, identity(value)), _NEVER):
                shown.setdefault(key, {})[identity(value)] = value
    agreed = {key: next(iter(values.values())) for key, values in shown.items() if len(values) == 1}
    if len({identity(value) for value in agreed.values()}) == 1 and len(agreed) == len(shown):
        value = next(iter(agreed.values()))
        if not isinstance(value, dict) or set(agreed) == {None}:  # of a file with keys a map is by key
            return _supposed(value, {})
    return _supposed(None, {key: value for key, value in agreed.items() if value is not None})


def _supposed(value: Any, by_key: Mapping[str | None, Any]) -> Start:
    start = Start(value=value, by_key=by_key)
    return PLAIN_START if start.is_plain else start


def _changes(operation: Operation) -> Iterator[tuple[str | None, list[Any]]]:
    """The keys that an operation may have changed, and the values that it wrote to each."""
    value = operation.value
    if operation.type == "fail" or operation.f in _READS or operation.f == "dump":
        return
    if operation.f == "txn":
        for micro in value if isinstance(value, list) else ():
            if isinstance(micro, list) and len(micro) > 2 and micro[0] not in _READ_WORDS:
                yield _name(micro[1]), [micro[2]]
    elif operation.f == "cas":
        yield operation.key, value[1:2] if isinstance(value, list) else []
    else:
        yield operation.key, [value]


def _shown(operation: Operation) -> Iterator[tuple[str | None, Any]]:
    """The keys and values that an answered operation showed before it changed them."""
    value = operation.value
    if operation.f in _READS:
        yield operation.key, value
    elif operation.f == "cas" and isinstance(value, list) and value:
        yield operation.key, value[0]
    elif operation.f == "txn":
        own: set[str | None] = set()
        for micro in value if isinstance(value, list) else ():
            if isinstance(micro, list) and len(micro) > 2 and _name(micro[1]) not in own:
                own.add(_name(micro[1]))
                if micro[0] in _READ_WORDS:
                    yield _name(micro[1]), micro[2]


_READ_WORDS = frozenset({"r", "rp", "read"})
_NEVER = 1 << 62


def _name(key: Any) -> str | None:
    return key if key is None or isinstance(key, str) else repr(identity(key))
