"""Events and operations of a record that was read as columns: objects are made when they are asked for.

Operations are kept then, but for a few that are asked for by their places. Events are not kept while they are walked
through: a run of a day has some hundred million.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from checkers.history.operation import Event, Operation

if TYPE_CHECKING:
    from checkers.history.columns import Columns
    from checkers.history.others import Others
    from checkers.history.record_lines import Lines

MANY = 1 / 5
"""The share of the operations from which on all are made."""
Thing = TypeVar("Thing", Event, Operation)


@contextmanager
def without_collections() -> Iterator[None]:
    """For code that makes many objects, none of which refers back: looking for circles among them doubles its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Stored(Sequence[Thing]):
    """Events or operations of a stored record: objects are made when they are asked for."""

    def __init__(self, count: int, make: Callable[[], Sequence[Thing]]) -> None:
        self._count = count
        self._make: Callable[[], Sequence[Thing]] = make
        self._made: Sequence[Thing] | None = None

    @property
    def all(self) -> Sequence[Thing]:
        """The objects."""
        if self._made is None:
            self._made = self._make()
            assert len(self._made) == self._count, (len(self._made), self._count)
        return self._made

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Thing]:
        return iter(self.all)

    @overload
    def __getitem__(self, place: int) -> Thing: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Thing]: ...
    def __getitem__(self, place: int | slice) -> Thing | Sequence[Thing]:
        return self.all[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{self._count} stored>"


class StoredOperations(Stored[Operation]):
    """Operations with their columns."""

    def __init__(
        self,
        columns: Columns,
        make: Callable[[], Sequence[Operation]],
        some: Callable[[Any], Sequence[Operation]],
    ) -> None:
        super().__init__(len(columns), make)
        self.columns = columns
        self._some = some

    def at(self, places: Any) -> Sequence[Operation]:
        """The operations at these places. If these are many, all are made and kept: one by one takes longer."""
        if not len(places):
            return ()
        if self._made is not None or len(places) > MANY * len(self):
            made = self.all
            return [made[place] for place in places.tolist()]
        return self._some(places)


class StoredEvents(Stored[Event]):
    """Events; `others` are those that are no client's. `walk` makes all of them, one after the other; `one` the event
    of an index, where that is cheap. If the record has lines, these are `lines`, and `scan` begins a walk over them
    (`checkers.history.lines.Scan`)."""

    def __init__(
        self,
        count: int,
        walk: Callable[[], Iterator[Event]],
        others: Others,
        one: Callable[[int], Event] | None = None,
        lines: Lines | None = None,
        scan: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(count, lambda: list(walk()))
        self._walk = walk
        self._one = one
        self.others = others
        self.lines = lines
        self.scan = scan

    def __iter__(self) -> Iterator[Event]:
        return self._walk() if self._made is None else iter(self._made)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        if self._made is None and self._one is not None and isinstance(place, int) and 0 <= place < len(self):
            return self._one(place)
        return self.all[place]
