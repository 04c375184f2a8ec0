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
    shown: list[tuple[Change, Tuple | None]] = field(default_factory=list)
    """Changes put into the confirmed view ahead of the commit, with what stood there before."""
    replies: list[tuple[int, Response]] = field(default_factory=list)
    """(link, what to answer there) as soon as the transaction has committed."""


class Space:
    """One space: key → tuple, confirmed and prepared."""

    def __init__(self, definition: SpaceDefinition) -> None:
        self.definition = definition
        self.confirmed: dict[Scalar, Tuple] = {}
        self.prepared: dict[Scalar, list[tuple[Transaction, Tuple | None]]] = {}

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

    def _put(self, key: Scalar, value: Tuple | None) -> None:
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
    for change in transaction.changes:
        transaction.shown.append((change, change.space.confirmed.get(change.key)))
        change.space._put(change.key, change.tuple)


def commit(transaction: Transaction) -> None:
    """The oldest prepared versions become the confirmed ones."""
    for change in transaction.changes:
        versions = change.space.prepared[change.key]
        owner, newest = versions.pop(0)
        assert owner is transaction, "transactions commit in the order of their submission"
        if not versions:
            del change.space.prepared[change.key]
        if not transaction.shown:
            change.space._put(change.key, newest)


def roll_back(transaction: Transaction) -> None:
    """The newest prepared versions go away."""
    for change in reversed(transaction.changes):
        versions = change.space.prepared[change.key]
        owner, _ = versions.pop()
        assert owner is transaction, "transactions roll back newest first"
        if not versions:
            del change.space.prepared[change.key]
    for change, before in reversed(transaction.shown):
        change.space._put(change.key, before)
