"""Keeps apart what a file writes differently: `:x` and "x", or the keys 1 and "1".

A history holds JSON values, its keys are texts. As long as each text of a file stands for one thing, the text alone is
what a person wants to read. In a file in which `:x` and "x" both occur, every text is written as EDN writes it: `:x`
and `"x"`, with its quotes. Keys, values and the names in maps are looked at separately. Texts that a model puts
together or takes apart (`get`, `put`) stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history.foreign.edn import spelling
from checkers.history.start import Start
from checkers.values import Set

MICRO_OPERATIONS = frozenset({"r", "w", "append", "read", "write", "get", "put", "inc", "add"})
TEXTS = frozenset({"get", "put"})


def is_transaction(value: Any) -> bool:
    """Whether it is a list of micro-operations: [f, key, …]."""
    if not isinstance(value, list) or not value:
        return False
    for micro in value:
        if not isinstance(micro, list) or len(micro) < 2:
            return False
        if not isinstance(micro[0], str) or micro[0] not in MICRO_OPERATIONS:
            return False
    return True


def text(value: Any) -> str:
    """A value as a word."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return " ".join(map(text, value))
    return "nil" if value is None else str(value)


@dataclass(slots=True)
class _Texts:
    """How the texts of one kind are written."""

    spellings: dict[str, str] = field(default_factory=dict)
    are_spelled: bool = False

    def note(self, value: Any) -> None:
        written = spelling(value)
        self.are_spelled |= self.spellings.setdefault(text(value), written) != written

    def of(self, value: Any) -> str:
        return spelling(value) if self.are_spelled else text(value)


class Kinds:
    """Notes all questions and answers of a file, then writes each."""

    def __init__(self) -> None:
        self._keys, self._values, self._names = _Texts(), _Texts(), _Texts()
        self._has_texts = False

    def note(self, f: str, key: Any, value: Any) -> None:
        """An operation's name, key and value occur in the file."""
        self._has_texts |= f in TEXTS
        if key is not None:
            self._keys.note(key)
        for each in self._noted(value):
            self._values.note(each)

    def _noted(self, value: Any) -> Iterator[str]:
        """The texts in a value that are values themselves."""
        if is_transaction(value):
            for micro in value:
                self._keys.note(micro[1])
                yield from self._noted(micro[2:])
        elif isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for each in value:
                yield from self._noted(each)
        elif isinstance(value, dict):
            for name, each in value.items():
                self._names.note(name)
                yield from self._noted(each)

    def start(self, value: Any) -> Start:
        """What the objects held before: a map is by key. It was not in the file, so it may be in another notation."""
        if not isinstance(value, dict):
            return Start(value=self.value(value))
        return Start(by_key={self._keys.of(key): self.value(each) for key, each in value.items()})

    def key(self, key: Any) -> str | None:
        """The key as a history names it."""
        return None if key is None else self._keys.of(key)

    def value(self, value: Any) -> Any:
        """The value as JSON has it (and sets)."""
        if is_transaction(value):
            return [self._micro(micro) for micro in value]
        if isinstance(value, str):
            return str(value) if self._has_texts else self._values.of(value)
        if isinstance(value, list):
            parts = map(self.value, value)
            return Set(parts) if isinstance(value, Set) else list(parts)
        if isinstance(value, dict):
            return {self._names.of(name): self.value(each) for name, each in value.items()}
        return value

    def _micro(self, micro: Sequence[Any]) -> list[Any]:
        word, key, *values = micro
        is_named = isinstance(key, str) or (self._keys.are_spelled and not isinstance(key, int))
        return [str(word), self._keys.of(key) if is_named else self.value(key), *map(self.value, values)]
