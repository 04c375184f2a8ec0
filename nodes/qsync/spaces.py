"""Spaces with two views: what is *confirmed*, and what is *prepared* on top of it.

A change is prepared when its transaction is submitted and becomes confirmed when the transaction commits.
Transactions commit in the order in which they were submitted and roll back newest first, so per key a list of
prepared versions is enough: the oldest is the next to commit, the newest the next to roll back.

- read-confirmed reads see the confirmed view (the MVCC side of qsync);
- dirty reads, and every decision of a writing transaction, see the prepared view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nodes.iproto.messages import Response
from nodes.qsync.configuration import SpaceDefinition

Tuple = tuple[object, ...]
Scalar = None | bool | int | float | str | bytes


@dataclass(frozen=True, slots=True)
class Change:
    """One key's new tuple; None deletes it."""

    space: Space
    key: Scalar
    tuple: Tuple | None


@dataclass(slots=True, eq=False)
class Transaction:
    """Changes that commit or roll back together. Compared by identity."""

    changes: tuple[Change, ...]
    number: int = 0
    """Counts up in the order of submission on this node."""
    is_shown: bool = False
    """The confirmed view shows its changes although it has not committed."""
    replies: list[tuple[int, Response]] = field(default_factory=list)
    """(link, what to answer there) as soon as the transaction has committed."""


class Space:
    """One space: key → tuple, confirmed and prepared."""

    def __init__(self, definition: SpaceDefinition) -> None:
        self.definition = definition
        self.confirmed: dict[Scalar, Tuple] = {}
        self.prepared: dict[Scalar, list[tuple[Transaction, Tuple | None]]] = {}
        self.beneath: dict[Scalar, Tuple | None] = {}
        """What is really committed of keys that show something else."""

    def prepared_version(self, key: Scalar) -> tuple[Tuple | None, Transaction | None]:
        """The newest version of a key and the unfinished transaction that made it, if one did."""
        versions = self.prepared.get(key)
        if versions:
            transaction, newest = versions[-1]
            return newest, transaction
        return self.confirmed.get(key), None

    def scan(self, *, dirty: bool) -> Iterator[Tuple]:
        """All tuples of a view, in key order."""
        keys: Iterable[Scalar] = {**self.confirmed, **self.prepared} if dirty else self.confirmed
        for key in sorted(keys, key=order_of_keys):
            found = self.prepared_version(key)[0] if dirty else self.confirmed[key]
            if found is not None:
                yield found

    def take_version(self, place: int, key: Scalar, transaction: Transaction) -> Tuple | None:
        """Take out the oldest (0) or the newest (−1) prepared version of a key: this transaction's."""
        versions = self.prepared[key]
        owner, value = versions.pop(place)
        assert owner is transaction, (
            "transactions commit in the order of submission and roll back newest first"
        )
        if not versions:
            del self.prepared[key]
        return value

    def show_newest(self, key: Scalar) -> None:
        """Let a key show the newest version that is to be seen early, or else what is committed."""
        shown = [value for maker, value in self.prepared.get(key, ()) if maker.is_shown]
        self.put(key, shown[-1] if shown else self.beneath.pop(key))

    def put(self, key: Scalar, value: Tuple | None) -> None:
        if value is None:
            self.confirmed.pop(key, None)
        else:
            self.confirmed[key] = value


def order_of_keys(key: Scalar) -> tuple[int, object]:
    """Tarantool's order of scalars of different types: nil, boolean, number, string, binary."""
    match key:
        case None:
            return (0, 0)
        case bool():
            return (1, key)
        case int() | float():
            return (2, key)
        case str():
            return (3, key)
        case _:
            return (4, key)


def prepare(transaction: Transaction) -> None:
    """Put a transaction's changes on top of the prepared view."""
    for change in transaction.changes:
        change.space.prepared.setdefault(change.key, []).append((transaction, change.tuple))


def show(transaction: Transaction) -> None:
    """Make changes visible to confirmed reads although the transaction has not committed."""
    transaction.is_shown = True
    for change in transaction.changes:
        space, key = change.space, change.key
        space.beneath.setdefault(key, space.confirmed.get(key))
        space.put(key, change.tuple)


def commit(transaction: Transaction) -> None:
    """The oldest prepared versions become the confirmed ones."""
    for change in transaction.changes:
        space, key = change.space, change.key
        value = space.take_version(0, key, transaction)
        if key in space.beneath:
            space.beneath[key] = value
            space.show_newest(key)
        else:
            space.put(key, value)


def roll_back(transaction: Transaction) -> None:
    """The newest prepared versions go away."""
    for change in reversed(transaction.changes):
        change.space.take_version(-1, change.key, transaction)
        if change.key in change.space.beneath:
            change.space.show_newest(change.key)
