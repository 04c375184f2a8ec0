"""The values that operations show, or would write, a row each: values of any kind, compared as numbers.

A row is the place of an operation, a key and a value. Small whole numbers stand for themselves; every other value gets
a number of its own, beyond them. So a rule that asks which operation wrote the value of a read is one step
over arrays. The rows that break it name their operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy

from checkers.history.columns import VALUES_MAX, Columns
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, FAIL, PAIR, PLAIN
from checkers.history.operation import Operation, both
from checkers.history.values import Value, identity

Array = Any  # numpy's
Key = str | None
PairsOf = Callable[[Operation], Iterable[tuple[Key, Any]]]
"""The keys and values of an operation, in order."""
BEYOND = 2 * VALUES_MAX
NOBODY = 1 << 62
"""The place of an operation that there is not: behind all others."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Arrays of one length, in order of `place`. `key` and `value` are numbers of `Numbers`; ABSENT is nothing."""

    place: Array
    key: Array
    value: Array

    def __len__(self) -> int:
        return len(self.place)

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The keys, and the values."""
        return self.key, self.value

    def and_(self, more: Array) -> Rows:
        """These rows and more, of shape (rows, 3)."""
        columns = zip((self.place, self.key, self.value), more.T, strict=True)
        place, key, value = (numpy.concatenate(both) for both in columns)
        order = numpy.argsort(place, kind="stable")
        return Rows(place[order], key[order], value[order])

    def at(self, chosen: Array) -> Rows:
        """The chosen rows: by an array of truths, or of numbers of rows."""
        return Rows(self.place[chosen], self.key[chosen], self.value[chosen])


class Numbers:
    """Numbers for the keys and the values of a history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._keys: dict[Key, int] = {word: code for code, word in enumerate(history.columns.words)}
        self._words = list(history.columns.words)
        self._values: dict[Value, int] = {}
        self._beyond: list[Any] = []

    @property
    def columns(self) -> Columns:
        """Of the history."""
        return self._history.columns

    def of_key(self, key: Key) -> int:
        """The number of a key."""
        if key not in self._keys:
            self._keys[key] = len(self._words)
            self._words.append(key)
        return self._keys[key]

    def of_value(self, value: Any) -> int:
        """The number of a value: the same for values that are the same (`checkers.history.values.identity`)."""
        if value is None:
            return ABSENT
        if type(value) is int and -VALUES_MAX <= value <= VALUES_MAX:
            return value
        same = identity(value)
        if same not in self._values:
            self._values[same] = BEYOND + len(self._beyond)
            self._beyond.append(value)
        return self._values[same]

    def key(self, number: int) -> Key:
        """The key with this number."""
        return self._words[number]

    def value(self, number: int) -> Any:
        """A value with this number, as it was recorded first."""
        if number == ABSENT:
            return None
        return number if number < BEYOND else self._beyond[number - BEYOND]

    def rows(
        self, places: Array, pairs_of: PairsOf, *, names: Collection[str], pair: Literal["old", "new"] = "new"
    ) -> Rows:
        """A row for each key and value that `pairs_of` gives of the operations at these places.

        Columns give it instead where they can. An operation whose f is one of `names`, and whose value is a small whole
        number or nothing, has one row with that value. A cas of two such values has one row with its `pair`, even if
        both are the same (see `changing`).
        """
        columns = self.columns
        is_simple, is_pair = self._are_simple(places, names)
        simple = places[is_simple]
        values = columns.new[simple]
        if pair == "old":
            values = numpy.where(is_pair[is_simple], columns.old[simple], values)
        rest = places[~is_simple]
        if not len(rest):
            return Rows(simple, columns.key[simple], values)
        more = numpy.array(
            [
                (place, self.of_key(key), self.of_value(value))
                for place, operation in zip(rest.tolist(), self._history.at(rest), strict=True)
                for key, value in pairs_of(operation)
            ],
            dtype=numpy.int64,
        ).reshape(-1, 3)
        return Rows(simple, columns.key[simple], values).and_(more)

    def _are_simple(self, places: Array, names: Collection[str]) -> tuple[Array, Array]:
        """Which operations the columns describe fully, and which of these are a cas."""
        columns = self.columns
        kind, f = columns.kind[places], columns.f[places]
        is_pair = (kind == PAIR) & (f == columns.code("cas"))
        is_number = (kind == PLAIN) & numpy.isin(f, [columns.code(name) for name in names])
        return is_number | is_pair, is_pair

    def first_askers(self, asked: Rows, shown: Rows) -> tuple[Array, Array]:
        """Of each row of `shown` the place of the first operation in `asked` with its key and value, and of the first
        such one that did not surely fail. NOBODY if there is none."""
        number, keys = numbered(
            numpy.concatenate((asked.key, shown.key)), numpy.concatenate((asked.value, shown.value))
        )
        wrote, read = number[: len(asked)], number[len(asked) :]
        first, possible = (numpy.full(len(keys), NOBODY) for _ in range(2))
        numpy.minimum.at(first, wrote, asked.place)
        may_be = self.columns.type[asked.place] != FAIL
        numpy.minimum.at(possible, wrote[may_be], asked.place[may_be])
        return first[read], possible[read]

    def compared(self, places: Array) -> None:
        """Raises ModelError of the first compare-and-set at these places that has not two values."""
        columns = self.columns
        is_odd = (columns.f[places] == columns.code("cas")) & (columns.kind[places] != PAIR)
        for operation in self._history.at(places[is_odd]):
            both(operation)

    def changing(self, places: Array) -> Array:
        """The places without each cas of a value to itself: it writes nothing."""
        columns = self.columns
        is_cas = columns.f[places] == columns.code("cas")
        is_same = is_cas & (columns.kind[places] == PAIR) & (columns.old[places] == columns.new[places])
        rich = numpy.flatnonzero(is_cas & (columns.kind[places] != PAIR))
        is_same[rich] = [is_to_itself(cas.value) for cas in self._history.at(places[rich])]
        return places[~is_same]

    def but(self, rows: Rows, there: Callable[[Key], Iterable[Any]]) -> Rows:
        """The rows without the values that were there under their key before the first operation."""
        keys = numpy.unique(rows.key).tolist()
        pairs = [(key, self.of_value(value)) for key in keys for value in there(self.key(key))]
        key, value = numpy.array(pairs, dtype=numpy.int64).reshape(-1, 2).T
        number, names = numbered(numpy.concatenate((key, rows.key)), numpy.concatenate((value, rows.value)))
        was_there = numpy.zeros(len(names), dtype=bool)
        was_there[number[: len(pairs)]] = True
        return rows.at(~was_there[number[len(pairs) :]])

    def under_keys_of(self, shown: Rows, places: Array) -> Array:
        """The places of operations that may be about a key of `shown`: a transaction may be about any."""
        columns = self.columns
        is_shown = numpy.zeros(len(self._keys), dtype=bool)
        is_shown[shown.key] = True
        return places[(columns.f[places] == columns.code("txn")) | is_shown[columns.key[places]]]


def is_to_itself(value: Any) -> bool:
    """Whether the value of a cas expects what it leaves: then it changes nothing."""
    is_whole = isinstance(value, list | tuple) and len(value) >= 2
    return is_whole and identity(value[0]) == identity(value[1])


def numbered(key: Array, value: Array) -> tuple[Array, Array]:
    """Equal numbers for equal pairs, counted in the order of the pairs; and the key of each number."""
    order = numpy.lexsort((value, key))
    key, value = key[order], value[order]
    is_new = numpy.ones(len(key), dtype=bool)
    is_new[1:] = (key[1:] != key[:-1]) | (value[1:] != value[:-1])
    number = numpy.empty(len(key), dtype=numpy.int32)
    number[order] = numpy.cumsum(is_new) - 1
    return number, key[is_new]
