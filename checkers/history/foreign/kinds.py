"""Keeps apart what a file writes differently: `:x` and "x", or the keys 1 and "1".

A history holds JSON values, its keys are texts. As long as each text of a file stands for one thing, the text alone is
what a person wants to read. In a file in which `:x` and "x" both occur, every text is written as EDN writes it: `:x`
and `"x"`, with its quotes. Keys, values and the names in maps are looked at separately. Texts that a model puts
together or takes apart (`get`, `put`) stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history.foreign.edn import Spelled, spelling, write
from checkers.history.start import Start
from checkers.history.values import Set

MICRO_OPERATIONS = frozenset({"r", "w", "append", "read", "write", "get", "put", "inc", "add"})
TEXTS = frozenset({"get", "put"})
_WITHOUT_TEXTS = frozenset({int, float, bool, type(None)})


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


def _has_no_texts(value: Any) -> bool:
    """Whether it is, or is a list of, what every notation writes alike; most values are."""
    return type(value) in _WITHOUT_TEXTS or (
        type(value) is list and _WITHOUT_TEXTS.issuperset(map(type, value))
    )


def text(value: Any) -> str:
    """A value as a word: what is no text as EDN writes it."""
    if isinstance(value, Spelled):
        return value.plain
    return str(value) if isinstance(value, str) else write(value)


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


def _is_literal(key: str) -> bool:
    """Whether a key was written as a number, true, or a collection: then it stands for nothing else."""
    return (
        isinstance(key, Spelled)
        and re.match(r"[-+]?\d|[\[{(#]|(?:true|false|nil)$", key.spelling) is not None
    )


class Kinds:
    """Notes all questions and answers of a file, then writes each."""

    def __init__(self) -> None:
        self._keys, self._values, self._names = _Texts(), _Texts(), _Texts()
        self._has_texts = False
        self._numbers: set[int] = set()
        """The whole numbers among the keys that were noted."""

    def note(self, f: str, key: Any, value: Any) -> None:
        """An operation's name, key and value occur in the file."""
        self._has_texts |= f in TEXTS
        if key is not None:
            self._note_key(key)
        if not _has_no_texts(value):
            for word in self._noted(value):
                self._values.note(word)

    def _note_key(self, key: Any) -> None:
        if type(key) is not int:
            self._keys.note(key)
        elif key not in self._numbers:
            self._numbers.add(key)
            self._keys.note(key)

    def _noted(self, value: Any) -> Iterator[str]:
        """The texts in a value that are values themselves."""
        if is_transaction(value):
            for micro in value:
                self._note_key(micro[1])
                if not all(map(_has_no_texts, micro[2:])):
                    yield from self._noted(micro[2:])
        elif isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for part in value:
                yield from self._noted(part)
        elif isinstance(value, dict):
            for name, part in value.items():
                self._names.note(name)
                yield from self._noted(part)

    def start(self, value: Any) -> Start:
        """The objects' state before the history: of a file with keys a map is by key.

        Its texts are of the kinds that they are written in. Its keys may be in another notation: `:x` stands for "x" in
        a file of JSON, unless the file has a key that is written the same.
        """
        if not isinstance(value, dict) or not self._keys.spellings:
            for part in self._noted(value):
                self._values.note(part)
            return Start(value=self.value(value))
        for part in value.values():
            for noted in self._noted(part):
                self._values.note(noted)
        if self._keys.are_spelled:
            return Start(by_key={spelling(key): self.value(part) for key, part in value.items()})
        by_key: dict[str, Any] = {}
        for key, part in value.items():
            known = self._keys.spellings.get(text(key))
            is_same = known == spelling(key)
            if is_same or (known is not None and not _is_literal(key) and text(key) not in by_key):
                by_key[text(key)] = part
        return Start(by_key={key: self.value(part) for key, part in by_key.items()})

    def key(self, key: Any) -> str | None:
        """The key as a history names it."""
        return None if key is None else self._keys.of(key)

    def value(self, value: Any) -> Any:
        """The value as JSON has it (and sets)."""
        if _has_no_texts(value):
            return value
        if is_transaction(value):
            return [self._micro(micro) for micro in value]
        if isinstance(value, str):
            is_plain = self._has_texts and not isinstance(value, Spelled)
            return str(value) if is_plain else self._values.of(value)
        if isinstance(value, list):
            parts = map(self.value, value)
            return Set(parts) if isinstance(value, Set) else list(parts)
        if isinstance(value, dict):
            return {self._names.of(name): self.value(part) for name, part in value.items()}
        return value

    def _micro(self, micro: Sequence[Any]) -> list[Any]:
        word, key, *values = micro
        is_number = type(key) is int
        return [str(word), key if is_number else self._keys.of(key), *map(self.value, values)]
