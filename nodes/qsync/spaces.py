"""Spaces with two views: the *confirmed* data, and the *prepared* data on top of it.

A change is prepared when its transaction is submitted and becomes confirmed when the transaction commits.
Transactions commit in the order in which they were submitted and roll back newest first, so per key a list of
prepared versions is enough: the oldest is the next to commit, the newest the next to roll back.

- read-confirmed reads see the confirmed view (the MVCC side of qsync);
- dirty reads, and every decision of a writing transaction, see the prepared view.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import is_

from nodes.iproto.codes import Code
from nodes.iproto.messages import Response
from nodes.qsync.bootstrap import Stored
from nodes.qsync.definitions import FIELDS_MAX, IndexDefinition, SpaceDefinition
from nodes.qsync.keys import Part, Rejected, Tuple, has_type, order_of_key, part_of
from nodes.qsync.system_spaces import SYSTEM_ID_MAX

_PLAIN: dict[str, tuple[type, ...]] = {"scalar": (str, int), "string": (str,), "integer": (int,)}
"""Types of an only key part that are their own key."""
_WIDER: dict[str, tuple[str, ...]] = {
    "any": (),
    **dict.fromkeys(("scalar", "array", "map"), ("any",)),
    **dict.fromkeys(("integer", "double"), ("any", "scalar", "number")),
    "unsigned": ("any", "scalar", "number", "integer"),
}
"""The types that hold all values of a type; by default `any` and `scalar`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One key's new tuple; None deletes it."""

    space: Space
    key: Hashable
    tuple: Tuple | None


@dataclass(slots=True, eq=False)
class Transaction:
    """Changes that commit or roll back together. Compared by identity."""

    changes: tuple[Change, ...]
    number: int = 0
    """Counts up in the order of submission on this node."""
    replies: list[tuple[int, Response]] = field(default_factory=list)
    """(link, answer), to send when the transaction has committed."""


class Space:
    """One space: key → tuple, confirmed and prepared."""

    def __init__(self, definition: SpaceDefinition) -> None:
        self.confirmed: dict[Hashable, Tuple] = {}
        self.prepared: dict[Hashable, list[tuple[Transaction, Tuple | None]]] = {}
        self.on_change: Callable[[Hashable], None] | None = None
        """Called after the newest version of a key changed: for spaces that define other spaces."""
        self.must_define: Callable[[Tuple], None] | None = None
        """Raises Rejected for a tuple that should define another space and does not."""
        self.on_commit: Callable[[], None] | None = None
        """Called when a key's committed version changed."""
        self.source: Space | None = None
        """A view shows this space."""
        self._stored: tuple[list[Tuple], list[Stored]] = ([], [])
        """The tuples at the last call of `stored`, and its result."""
        self.define(definition)

    def define(self, definition: SpaceDefinition) -> None:
        """Set the definition. A space that holds tuples may be altered, except for its primary key."""
        self.definition = definition
        self.is_sync = definition.is_sync and definition.is_replicated
        """Its rows make a transaction wait for a quorum."""
        self.primary = next((index for index in definition.indexes if index.id == 0), None)
        self.unique_others = tuple(index for index in definition.indexes if index.id != 0 and index.is_unique)
        self._fields = _field_rules(definition)
        parts = self.primary.parts if self.primary is not None else ()
        is_plain = len(self._fields) == 1 and len(parts) == 1 and not definition.field_count
        self._plain = _PLAIN.get(self._fields[0][0], ()) if is_plain else ()

    def key_of(self, value: Tuple) -> Hashable:
        """The primary key of a tuple that fits the space; Rejected if it does not."""
        if value and type(value[0]) in self._plain:
            return value[0]
        self._check(value)
        return key_of_tuple(value, self.primary_parts)

    @property
    def primary_parts(self) -> tuple[Part, ...]:
        if self.primary is None:
            raise Rejected(Code.NO_SUCH_INDEX_ID, 0, self.definition.name)
        return self.primary.parts

    def index(self, number: int) -> IndexDefinition:
        for index in self.definition.indexes:
            if index.id == number:
                return index
        raise Rejected(Code.NO_SUCH_INDEX_ID, number, self.definition.name)

    def field_names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.definition.format)

    def _check(self, value: Tuple) -> None:
        """Raises Rejected if the tuple does not fit the format or the indexes."""
        exact = self.definition.field_count
        if exact and len(value) != exact:
            raise Rejected(Code.EXACT_FIELD_COUNT, len(value), exact)
        for place, (item, (type_, is_nullable)) in enumerate(zip(value, self._fields, strict=False), start=1):
            if not (has_type(item, type_) or (item is None and is_nullable)):
                raise Rejected(Code.FIELD_TYPE, place, type_)
        for place in range(len(value), len(self._fields)):
            if not self._fields[place][1]:
                raise Rejected(Code.FIELD_MISSING, place + 1)
        if self.must_define is not None:
            self.must_define(value)

    def prepared_version(self, key: Hashable) -> tuple[Tuple | None, Transaction | None]:
        """The newest version of a key and the unfinished transaction that made it, if one did."""
        versions = self.prepared.get(key)
        if versions:
            transaction, newest = versions[-1]
            return newest, transaction
        return self.confirmed.get(key), None

    def versions(self, key: Hashable) -> tuple[Tuple | None, ...]:
        """The confirmed version of a key, and the prepared ones behind it."""
        return (self.confirmed.get(key), *(each for _, each in self.prepared.get(key, ())))

    def scan(self, *, dirty: bool) -> Iterator[Tuple]:
        """All tuples of a view, in key order."""
        keys: Iterable[Hashable] = {**self.confirmed, **self.prepared} if dirty else self.confirmed
        for key in sorted(keys, key=order_of_key):
            value = self.prepared_version(key)[0] if dirty else self.confirmed[key]
            if value is not None:
                yield value

    def stored(self) -> list[Stored]:
        """All tuples, prepared ones included, in key order. An unchanged system space returns the same objects."""
        number = self.definition.id
        if self.prepared or number > SYSTEM_ID_MAX:
            return [(number, fields) for fields in self.scan(dirty=True)]
        tuples = list(self.confirmed.values())
        before, stored = self._stored
        if len(before) != len(tuples) or not all(map(is_, before, tuples)):
            stored = [(number, fields) for fields in self.scan(dirty=False)]
            self._stored = (tuples, stored)
        return stored

    def take_version(self, place: int, key: Hashable, transaction: Transaction) -> Tuple | None:
        """Remove the oldest (0) or the newest (−1) prepared version of a key, which is this transaction's."""
        versions = self.prepared[key]
        owner, value = versions.pop(place)
        assert owner is transaction, (
            "transactions commit in the order of submission and roll back newest first"
        )
        if not versions:
            del self.prepared[key]
        return value

    def put(self, key: Hashable, value: Tuple | None) -> None:
        if value is None:
            self.confirmed.pop(key, None)
        else:
            self.confirmed[key] = value


def key_of_tuple(value: Tuple, parts: tuple[Part, ...]) -> Hashable:
    """A tuple's key in an index over fields of it; a missing field is nil."""
    key = tuple(part_of(value[part.field] if part.field < len(value) else None) for part in parts)
    return key[0] if len(parts) == 1 else key


def unique_key(value: Tuple, parts: tuple[Part, ...]) -> Hashable | None:
    """A tuple's key in a unique index; None if a part of it is nil: such a tuple is a duplicate of no other."""
    missing = any(part.field >= len(value) or value[part.field] is None for part in parts)
    return None if missing else key_of_tuple(value, parts)


def narrower(one: str, other: str) -> str | None:
    """The type whose values are of both types; None if neither type holds the other."""
    for inner, outer in ((one, other), (other, one)):
        if inner == outer or outer in _WIDER.get(inner, ("any", "scalar")):
            return inner
    return None


def _field_rules(definition: SpaceDefinition) -> list[tuple[str, bool]]:
    """(type, may be missing) of each field that the format or an index names. Such a field may be nil."""
    rules = [(entry.type, entry.is_nullable) for entry in definition.format]
    if definition.engine == "sysview":
        return rules
    for index in definition.indexes:
        for part in (part for part in index.parts if 0 <= part.field < FIELDS_MAX):
            rules.extend([("any", True)] * (part.field + 1 - len(rules)))
            type_, is_nullable = rules[part.field]
            rules[part.field] = (narrower(type_, part.type) or part.type, is_nullable and part.is_nullable)
    return rules


def prepare(transaction: Transaction) -> None:
    """Put a transaction's changes on top of the prepared view."""
    for change in transaction.changes:
        space = change.space
        space.prepared.setdefault(change.key, []).append((transaction, change.tuple))
        if space.on_change is not None:
            space.on_change(change.key)


def commit(transaction: Transaction) -> None:
    """The oldest prepared versions become the confirmed ones."""
    for change in transaction.changes:
        space, key = change.space, change.key
        value = space.take_version(0, key, transaction)
        space.put(key, value)
        # Behind `put`: it reads the confirmed data, of which the new version is a part now.
        if space.on_commit is not None:
            space.on_commit()


def roll_back(transaction: Transaction) -> None:
    """Remove the newest prepared versions."""
    for change in reversed(transaction.changes):  # a transaction may have changed a key twice
        change.space.take_version(-1, change.key, transaction)
        if change.space.on_change is not None:
            change.space.on_change(change.key)
