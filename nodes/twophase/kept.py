"""A map from transactions to their outcomes, which drops those that no node can ask for any more.

A *sweep* is an entry of the discovery log (`agreed.py`). Each is proposed when every member has reported the end of all
transactions that were open there at the previous one. An outcome noted before a sweep is dropped two sweeps later:
before the second one, all members had delivered the first; until the third, all transactions that were open
anywhere at the second have ended on every disk. So no member is in doubt, and no message about them is on its way: a
near node counts a transaction as open until all primaries have answered, a primary until all backups have.

A member that joins or leaves, or a partition that has moved, begins the count anew. A node that has not joined yet
drops nothing: the sweeps that it reads are over, and it has just read the outcomes after them. A server that is away
may be in doubt about transactions that were mapped on an older topology. Their outcomes are kept until all servers are
members.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

T = TypeVar("T")
UNKNOWN = 0
"""The topology of a transaction if it is not known."""

Generation = dict[str, tuple[T, int]]


class Kept(Generic[T]):
    def __init__(self) -> None:
        self._young: Generation[T] = {}
        """The outcomes noted since the last sweep."""
        self._middle: Generation[T] = {}
        """The outcomes noted between the last two sweeps."""
        self._old: Generation[T] = {}

    def note(self, xid: str, value: T, version: int = UNKNOWN) -> None:
        """Note an outcome; the first one counts. `version`: of the topology on which the transaction was mapped."""
        if xid not in self:
            self._young[xid] = (value, version)

    def get(self, xid: str) -> T | None:
        for generation in (self._young, self._middle, self._old):
            if xid in generation:
                return generation[xid][0]
        return None

    def __contains__(self, xid: str) -> bool:
        return xid in self._young or xid in self._middle or xid in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._middle) + len(self._old)

    def items(self) -> Iterator[tuple[str, T]]:
        for xid, (value, _) in chain(self._old.items(), self._middle.items(), self._young.items()):
            yield xid, value

    def sweep(self, version: int, is_whole: bool) -> None:
        """Drop the oldest outcomes, at a sweep on this version of the topology. `is_whole`: all servers are members."""
        kept = {} if is_whole else {xid: entry for xid, entry in self._old.items() if entry[1] != version}
        self._old = kept | self._middle
        self._middle, self._young = self._young, {}

    def begin_anew(self) -> None:
        """The topology has changed: earlier sweeps do not count."""
        self._young = self._old | self._middle | self._young
        self._middle, self._old = {}, {}

    def to_state(self) -> list[Any]:
        generations = (self._young, self._middle, self._old)
        return [{xid: list(entry) for xid, entry in generation.items()} for generation in generations]

    @classmethod
    def from_state(cls, state: list[Any]) -> Kept[T]:
        kept: Kept[T] = cls()
        kept._young, kept._middle, kept._old = (
            {xid: (value, version) for xid, (value, version) in generation.items()} for generation in state
        )
        return kept
