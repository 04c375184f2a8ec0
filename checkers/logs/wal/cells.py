"""Contents of keys in rows and snapshots, as numbers: a cell for each space with a key, a number for each content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy

from checkers.history.line_kernels import ABSENT
from checkers.logs.wal.record import Place, Record, Snapshot, Tuple

Array = Any  # numpy's
UNKNOWN: Final = ABSENT + 1
"""Instead of a content: it is unknown whether the row took effect, or what it leaves."""
USER_SPACES: Final = 512
NO_CELL: Final = -1


class Cells(ABC):
    """`of_rows` has the cell of each row (NO_CELL: it is not a user's data), `contents` what the row puts there: ABSENT
    for a deletion, UNKNOWN if the row alone does not say. `count` is how many cells are known."""

    of_rows: Array
    contents: Array

    @property
    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def of(self, snapshot: Snapshot) -> tuple[Array, Array]:
        """The cells of a snapshot's tuples, and their contents. New cells are counted."""

    @abstractmethod
    def spaces(self) -> Array:
        """The space of each cell."""

    @abstractmethod
    def place(self, cell: int) -> Place: ...

    @abstractmethod
    def content(self, cell: int, number: int) -> Tuple:
        """Empty for ABSENT."""

    def state(self, snapshot: Snapshot | None) -> Array:
        """By cell what a snapshot holds."""
        cells, contents = (numpy.empty(0, dtype=numpy.int64),) * 2 if snapshot is None else self.of(snapshot)
        state = numpy.full(self.count, ABSENT, dtype=numpy.int64)
        state[cells] = contents
        return state

    def differing(self, state: Array, snapshot: Snapshot) -> dict[Place, tuple[Tuple, Tuple]]:
        """The places where a snapshot differs from a state, with the contents of both."""
        there = self.state(snapshot)
        known = numpy.full(self.count, ABSENT, dtype=numpy.int64)
        known[: len(state)] = state
        is_other = (there != known) & (known != UNKNOWN)
        if snapshot.left_out:
            is_other &= ~numpy.isin(self.spaces(), list(snapshot.left_out))
        return {
            self.place(cell): (self.content(cell, int(known[cell])), self.content(cell, int(there[cell])))
            for cell in numpy.flatnonzero(is_other).tolist()
        }


class CellsOfObjects(Cells):
    """Of records, whatever they hold. `number` gives equal values a number, and so is asked for keys and tuples."""

    def __init__(self, records: Sequence[Record], number: Callable[[object], int]) -> None:
        self._number = number
        self._cells: dict[tuple[int, int], int] = {}
        self._places: list[Place] = []
        self._tuples: dict[int, Tuple] = {ABSENT: ()}
        is_data = [row.kind == "write" and row.space >= USER_SPACES for row in records]
        self.of_rows = numpy.array(
            [
                self._cell((row.space, row.key)) if is_one else NO_CELL
                for row, is_one in zip(records, is_data, strict=True)
            ],
            dtype=numpy.int64,
        )
        self.contents = numpy.array(
            [
                self._content(row.tuple) if is_one and row.is_whole else UNKNOWN
                for row, is_one in zip(records, is_data, strict=True)
            ],
            dtype=numpy.int64,
        )

    @property
    def count(self) -> int:
        return len(self._places)

    def of(self, snapshot: Snapshot) -> tuple[Array, Array]:
        tuples: Mapping[Place, Tuple] = snapshot.tuples
        cells = numpy.array([self._cell(place) for place in tuples], dtype=numpy.int64)
        return cells, numpy.array([self._content(values) for values in tuples.values()], dtype=numpy.int64)

    def spaces(self) -> Array:
        return numpy.array([space for space, _ in self._places], dtype=numpy.int64)

    def place(self, cell: int) -> Place:
        return self._places[cell]

    def content(self, cell: int, number: int) -> Tuple:
        return self._tuples[number]

    def _cell(self, place: Place) -> int:
        space, key = place
        number = self._cells.setdefault((space, self._number(key)), len(self._places))
        if number == len(self._places):
            self._places.append(place)
        return number

    def _content(self, values: Tuple) -> int:
        number = self._number(values) if values else ABSENT
        self._tuples.setdefault(number, values)
        return number
