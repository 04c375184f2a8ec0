"""Statements of a transaction: what they do to spaces, and what rows say of them.

A transaction is a list of statements, each a list:

| statement | result |
|---|---|
| `["get", space, key]` | the tuple, or nil |
| `["insert", space, tuple]` | the tuple; error 3 if the key exists |
| `["replace", space, tuple]` | the tuple |
| `["delete", space, key]` | the tuple that was deleted, or nil |
| `["cas", space, key, old, new]` | true, or a mismatch: then nothing of the whole transaction happens |
| `["append", space, key, value]` | true; the list in the second field has the value at its end |
| `["take", space, key]` | the first element of that list, which is no longer there; nil if there is none |
| `["add", space, key, amount, least]` | the sum in the second field after adding; or a mismatch, if it were < least |
| `["scan", space, from, below]` | the tuples with from ≤ key < below, in key order; nil: no bound |

`space` is an id or a name; `cas` compares the second field of the tuple (nil if there is no tuple), `append` and `add`
begin with an empty list and 0, and `least` may be left out. What changes a tuple replaces it as a whole. Writing
transactions decide on the *prepared* state, else an update would be lost; what an answer without effect reveals is
noted in `looked_at`, so that it can wait for the entries that it looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Row, Type
from nodes.qsync.journal import Draft
from nodes.qsync.spaces import Change, Scalar, Space, Transaction, Tuple, order_of_keys

_WRITES = frozenset({"insert", "replace", "delete", "cas", "append", "take", "add"})


class Rejected(Exception):
    """A statement cannot be done; carries Tarantool's code, its message filled in with `arguments`."""

    def __init__(self, code: Code, *arguments: object) -> None:
        super().__init__(code.text(*arguments))
        self.code = code


@dataclass(slots=True)
class Outcome:
    """What the statements of one transaction come to.

    `mismatch` is (statement number, value found) if a compare failed; then nothing else counts.
    """

    results: list[object] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    mismatch: tuple[int, object] | None = None
    duplicate: Rejected | None = None
    looked_at: Transaction | None = None


class Evaluation:
    """Statements of one transaction over the spaces, its own changes included."""

    def __init__(self, spaces: Mapping[object, Space], *, confirmed_only: bool) -> None:
        self._spaces = spaces
        self._confirmed_only = confirmed_only
        self._own: dict[tuple[int, Scalar], Tuple | None] = {}
        self.outcome = Outcome()

    def run(self, statements: Sequence[object]) -> Outcome:
        """All statements, in order; `Rejected` if one is malformed."""
        for number, statement in enumerate(statements):
            match statement:
                case ["get", space, key]:
                    self.outcome.results.append(self._read(self._space(space), _scalar(key)))
                case ["insert", space, (list() | tuple()) as value]:
                    if not self._insert(self._space(space), tuple(value)):
                        return self.outcome
                case ["replace", space, (list() | tuple()) as value]:
                    self._replace(self._space(space), tuple(value), Type.REPLACE)
                    self.outcome.results.append(tuple(value))
                case ["delete", space, key]:
                    self.outcome.results.append(self._delete(self._space(space), _scalar(key)))
                case ["cas", space, key, old, new]:
                    if not self._compare_and_set(number, self._space(space), _scalar(key), old, new):
                        return self.outcome
                    self.outcome.results.append(True)
                case ["append", space, key, value]:
                    self._append(number, self._space(space), _scalar(key), value)
                    self.outcome.results.append(True)
                case ["take", space, key]:
                    self.outcome.results.append(self._take(number, self._space(space), _scalar(key)))
                case ["add", space, key, int() as amount, *least]:
                    if not self._add(number, self._space(space), _scalar(key), amount, _least(number, least)):
                        return self.outcome
                case ["scan", space, low, below]:
                    found = self._scan(self._space(space), _scalar(low), _scalar(below))
                    self.outcome.results.append(found)
                case _:
                    raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {statement!r}"[:200])
        return self.outcome

    def _space(self, name: object) -> Space:
        space = self._spaces.get(name) if isinstance(name, int | str) else None
        if space is None:
            raise Rejected(Code.NO_SUCH_SPACE, name)
        return space

    def _read(self, space: Space, key: Scalar) -> Tuple | None:
        own = (space.definition.id, key)
        if own in self._own:
            return self._own[own]
        if self._confirmed_only:
            return space.confirmed.get(key)
        found, maker = space.prepared_version(key)
        if maker is not None:
            self._look_at(maker)
        return found

    def _look_at(self, maker: Transaction) -> None:
        """Transactions commit in order: waiting for the newest one is waiting for all."""
        if self.outcome.looked_at is None or maker.number > self.outcome.looked_at.number:
            self.outcome.looked_at = maker

    def _insert(self, space: Space, value: Tuple) -> bool:
        key = _key_of(value)
        found = self._read(space, key)
        if found is None:
            self._replace(space, value, Type.INSERT)
            self.outcome.results.append(value)
            return True
        self.outcome.duplicate = Rejected(
            Code.TUPLE_FOUND, "primary", space.definition.name, list(found), list(value)
        )
        return False

    def _replace(self, space: Space, value: Tuple, kind: Type) -> None:
        body = {Key.SPACE_ID.value: space.definition.id, Key.TUPLE.value: value}
        self._change(space, _key_of(value), value, Draft(kind.value, body))

    def _delete(self, space: Space, key: Scalar) -> Tuple | None:
        found = self._read(space, key)
        if found is not None:
            body = {Key.SPACE_ID.value: space.definition.id, Key.INDEX_ID.value: 0, Key.KEY.value: (key,)}
            self._change(space, key, None, Draft(Type.DELETE.value, body))
        return found

    def _compare_and_set(self, number: int, space: Space, key: Scalar, old: object, new: object) -> bool:
        found = self._read(space, key)
        value = found[1] if found is not None and len(found) > 1 else None
        if value == old and type(value) is type(old):
            self._replace(space, (key, new), Type.REPLACE)
            return True
        self.outcome.mismatch = (number, value)
        return False

    def _list(self, number: int, space: Space, key: Scalar) -> Tuple:
        """The elements of the list under a key."""
        found = self._read(space, key)
        elements = found[1] if found is not None and len(found) > 1 else ()
        if not isinstance(elements, list | tuple):
            raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {elements!r} is no list"[:200])
        return tuple(elements)

    def _append(self, number: int, space: Space, key: Scalar, value: object) -> None:
        elements = self._list(number, space, key)
        self._replace(space, (key, (*elements, value)), Type.REPLACE)

    def _take(self, number: int, space: Space, key: Scalar) -> object:
        elements = self._list(number, space, key)
        if not elements:
            return None
        self._replace(space, (key, elements[1:]), Type.REPLACE)
        return elements[0]

    def _add(self, number: int, space: Space, key: Scalar, amount: int, least: int | None) -> bool:
        found = self._read(space, key)
        before = found[1] if found is not None and len(found) > 1 else 0
        if not isinstance(before, int):
            raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {before!r} is no whole number"[:200])
        if least is not None and before + amount < least:
            self.outcome.mismatch = (number, before)
            return False
        self._replace(space, (key, before + amount), Type.REPLACE)
        self.outcome.results.append(before + amount)
        return True

    def _scan(self, space: Space, low: Scalar, below: Scalar) -> tuple[Tuple, ...]:
        own = [key for number, key in self._own if number == space.definition.id]
        keys = dict.fromkeys((*space.confirmed, *space.prepared, *own))
        within = sorted((key for key in keys if _is_within(key, low, below)), key=order_of_keys)
        return tuple(found for key in within if (found := self._read(space, key)) is not None)

    def _change(self, space: Space, key: Scalar, value: Tuple | None, draft: Draft) -> None:
        self._own[space.definition.id, key] = value
        self.outcome.changes.append(Change(space, key, value))
        self.outcome.drafts.append(draft)


def writes(statements: Sequence[object]) -> bool:
    """True if any statement may change something."""
    return any(
        isinstance(statement, list | tuple) and len(statement) > 0 and statement[0] in _WRITES
        for statement in statements
    )


def _scalar(key: object) -> Scalar:
    if key is None or isinstance(key, bool | int | float | str | bytes):
        return key
    raise Rejected(Code.KEY_PART_TYPE, 0, "scalar")


def _least(number: int, rest: Sequence[object]) -> int | None:
    """What a sum may not fall below, if that is said."""
    match rest:
        case [] | [None]:
            return None
        case [int() as least]:
            return least
    raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: the least sum is {rest!r}"[:200])


def _is_within(key: Scalar, low: Scalar, below: Scalar) -> bool:
    place = order_of_keys(key)
    return (low is None or order_of_keys(low) <= place) and (below is None or place < order_of_keys(below))


def _key_of(value: Tuple) -> Scalar:
    if not value:
        raise Rejected(Code.FIELD_MISSING, 1)
    return _scalar(value[0])


def change_of_row(row: Row, spaces: Mapping[int, Space]) -> Change:
    """What a row of another node, or of the log, does to a space."""
    space_id = row.body[Key.SPACE_ID.value]
    assert isinstance(space_id, int) and space_id in spaces, row
    space = spaces[space_id]
    if row.type == Type.DELETE:
        key = row.body[Key.KEY.value]
        assert isinstance(key, list | tuple), row
        return Change(space, _scalar(key[0]), None)
    assert row.type in (Type.INSERT, Type.REPLACE), row
    value = row.body[Key.TUPLE.value]
    assert isinstance(value, list | tuple), row
    return Change(space, _key_of(tuple(value)), tuple(value))
