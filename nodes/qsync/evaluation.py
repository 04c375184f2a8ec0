"""One transaction while it is evaluated: its reads, and its changes on top of its own changes so far.

Writing transactions decide on the *prepared* state, else an update would be lost. An answer without effect may reveal
prepared data: `looked_at` notes the transaction that such an answer must wait for.

An UPDATE or UPSERT is logged as its result, a REPLACE or INSERT, so each row holds the whole new tuple.
UPDATE and UPSERT rows in logs of real Tarantool are read, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import pack
from nodes.qsync.definitions import IndexDefinition
from nodes.qsync.journal import Draft
from nodes.qsync.keys import Part, Rejected, Tuple, exact_key
from nodes.qsync.spaces import Change, Space, Transaction, key_of_tuple, unique_key
from nodes.qsync.system_spaces import TRUNCATE
from nodes.qsync.updates import read_operations, updated

_NOBODY = object()
"""A key that no tuple has."""
_ENVELOPES = 8
"""More arrays and maps than any message or file has around a tuple."""
_SPACE_ID, _INDEX_ID = Key.SPACE_ID.value, Key.INDEX_ID.value
_KEY, _TUPLE = Key.KEY.value, Key.TUPLE.value


@dataclass(slots=True)
class Outcome:
    """The result of the statements of one transaction.

    `mismatch` is (statement number, actual value) if a compare failed; then the other fields do not count.
    """

    results: list[object] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    mismatch: tuple[int, object] | None = None
    duplicate: Rejected | None = None
    looked_at: Transaction | None = None


class Evaluation:
    """Statements of one transaction over the spaces, its own changes included.

    `read_only` is raised by writes to replicated spaces; None: the node is writable. `is_linearizable`: asynchronous
    spaces are refused, because a node that is out of reach may have committed there alone.
    """

    def __init__(
        self,
        spaces: Mapping[object, Space],
        *,
        confirmed_only: bool,
        read_only: Rejected | None = None,
        is_linearizable: bool = False,
    ) -> None:
        self._spaces = spaces
        self._confirmed_only = confirmed_only
        self._read_only = read_only
        self._is_linearizable = is_linearizable
        self.own: dict[tuple[int, Hashable], Tuple | None] = {}
        self.outcome = Outcome()

    def space(self, name: object) -> Space:
        space = self._spaces.get(name) if isinstance(name, int | str) else None
        if space is None:
            raise Rejected(Code.NO_SUCH_SPACE, name)
        if self._is_linearizable and not space.is_sync and space.definition.is_replicated:
            raise Rejected(Code.UNSUPPORTED, f'space "{space.definition.name}"', "linearizable operations")
        return space

    def to_write(self, name: object) -> Space:
        space = self.space(name)
        if self._read_only is not None and space.definition.is_replicated:
            raise self._read_only
        return space

    def read(self, space: Space, key: Hashable) -> Tuple | None:
        own = (space.definition.id, key)
        if own in self.own:
            return self.own[own]
        if self._confirmed_only:
            return (space.source or space).confirmed.get(key)
        value, maker = (space.source or space).prepared_version(key)
        if maker is not None:
            self._note_looked_at(maker)
        return value

    def _note_looked_at(self, maker: Transaction) -> None:
        """Note the newest transaction that was read: transactions commit in order, so waiting for it is enough."""
        if self.outcome.looked_at is None or maker.number > self.outcome.looked_at.number:
            self.outcome.looked_at = maker

    def key_by(self, space: Space, index_id: int, key: Tuple) -> Hashable:
        """The primary key of the one tuple that a unique index finds, or a primary key itself."""
        index = space.index(index_id)
        if index_id == 0:
            return exact_key(key, index.parts)
        if not index.is_unique:
            raise Rejected(Code.MORE_THAN_ONE_TUPLE)
        wanted = exact_key(key, [Part(part.field, part.type) for part in index.parts])  # nil finds many
        for primary_key in self._keys(space):
            value = self.read(space, primary_key)
            if value is not None and key_of_tuple(value, index.parts) == wanted:
                return primary_key
        return _NOBODY

    def _keys(self, space: Space) -> dict[Hashable, None]:
        """All primary keys that may have a tuple."""
        own = (key for number, key in self.own if number == space.definition.id)
        return dict.fromkeys((*space.confirmed, *space.prepared, *own))

    # ---- writing

    def insert(self, space: Space, value: Tuple) -> bool:
        """False if the key exists."""
        key = space.key_of(value)
        if self.read(space, key) is not None:
            self.outcome.duplicate = _duplicate(space, space.index(0))
            return False
        if not self.put(space, key, value, Type.INSERT):
            return False
        self.outcome.results.append(value)
        return True

    def replace(self, space: Space, value: Tuple) -> bool:
        if not self.put(space, space.key_of(value), value, Type.REPLACE):
            return False
        self.outcome.results.append(value)
        return True

    def update(self, space: Space, key: Hashable, operations: object, index_base: int = 0) -> bool:
        old = self.read(space, key)
        value = None
        if old is not None:
            value = updated(old, read_operations(operations, space.field_names(), index_base))
            new_key = space.key_of(value)
            if new_key != key:
                if self.read(space, new_key) is not None:
                    raise _duplicate(space, space.index(0))
                raise Rejected(Code.CANT_UPDATE_PRIMARY_KEY, space.index(0).name, space.definition.name)
            if not self.put(space, key, value, Type.REPLACE):
                return False
        self.outcome.results.append(value)
        return True

    def upsert(self, space: Space, value: Tuple, operations: object, index_base: int = 0) -> bool:
        """The whole statement has no effect if its operations would change the primary key."""
        key = space.key_of(value)
        old = self.read(space, key)
        read = read_operations(operations, space.field_names(), index_base)
        new, kind = value, Type.INSERT
        if old is not None:
            new, kind = updated(old, read, skip_misfits=True), Type.REPLACE
        if space.key_of(new) == key and not self.put(space, key, new, kind):
            return False
        self.outcome.results.append(None)
        return True

    def delete(self, space: Space, key: Hashable) -> None:
        old = self.read(space, key)
        if old is not None:
            parts = key if isinstance(key, tuple) else (key,)
            values = tuple(old[part.field] if part.field < len(old) else None for part in space.primary_parts)
            assert len(parts) == len(values)
            body = {_SPACE_ID: space.definition.id, _INDEX_ID: 0, _KEY: values}
            self._change(space, key, None, Type.DELETE, body)
        self.outcome.results.append(old)

    def put(self, space: Space, key: Hashable, value: Tuple, kind: Type) -> bool:
        """False if another tuple has the same key in another unique index."""
        for index in space.unique_others:
            if self._is_taken(space, index, key, value):
                self.outcome.duplicate = _duplicate(space, index)
                return False
        _must_not_be_too_deep(value)
        self._change(space, key, value, kind, {_SPACE_ID: space.definition.id, _TUPLE: value})
        return True

    def _is_taken(self, space: Space, index: IndexDefinition, key: Hashable, value: Tuple) -> bool:
        wanted = unique_key(value, index.parts)
        if wanted is None:
            return False
        for other_key in self._keys(space):
            rival = self.read(space, other_key) if other_key != key else None
            if rival is not None and unique_key(rival, index.parts) == wanted:
                return True
        return False

    def _change(
        self, space: Space, key: Hashable, value: Tuple | None, kind: Type, body: dict[int, object]
    ) -> None:
        definition = space.definition
        if space.source is not None:
            raise Rejected(Code.VIEW_IS_RO, definition.name)
        self.own[definition.id, key] = value
        self.outcome.changes.append(Change(space, key, value))
        if not definition.is_temporary:
            self.outcome.drafts.append(Draft(kind.value, body, definition.is_local))


def _must_not_be_too_deep(value: Tuple) -> None:
    """Raises Rejected for a tuple that no log, answer or snapshot could hold: a path can lead a value into another."""
    if any(isinstance(field, list | tuple | dict) for field in value):
        wrapped: object = value
        for _ in range(_ENVELOPES):
            wrapped = (wrapped,)
        try:
            pack(wrapped)
        except ValueError:
            raise Rejected(Code.ILLEGAL_PARAMS, "the tuple is nested too deep") from None


def _duplicate(space: Space, index: IndexDefinition) -> Rejected:
    return Rejected(Code.TUPLE_FOUND, index.name, space.definition.name)


def changes_of_rows(rows: Iterable[Row], spaces: Mapping[int, Space]) -> list[Change]:
    """The changes that a transaction of another node, or of the log, makes to spaces."""
    changes: list[Change] = []
    for row in rows:
        change = None if row.type == Type.NOP else _change_of_row(row, spaces)
        if change is not None:
            changes.append(change)
            changes += _emptied(change, changes, spaces)
    return changes


def _emptied(change: Change, before: Iterable[Change], spaces: Mapping[int, Space]) -> list[Change]:
    """A row of `_truncate` deletes all tuples of the space that it names, also prepared ones and this transaction's."""
    number = change.tuple[0] if change.tuple else None
    if change.space.definition.id != TRUNCATE or not isinstance(number, int) or number not in spaces:
        return []
    space = spaces[number]
    keys = dict.fromkeys(map(space.key_of, space.scan(dirty=True)))
    keys |= {earlier.key: None for earlier in before if earlier.space is space}
    return [Change(space, key, None) for key in keys]


def _change_of_row(row: Row, spaces: Mapping[int, Space]) -> Change | None:
    """The change that a row of another node, or of the log, makes to a space; None if it makes none."""
    space_id = row.body[_SPACE_ID]
    assert isinstance(space_id, int) and space_id in spaces, row
    space = spaces[space_id]
    match row.type:
        case Type.INSERT | Type.REPLACE:
            value = _fields(row, _TUPLE)
            return Change(space, space.key_of(value), value)
        case Type.DELETE:
            return Change(space, exact_key(_fields(row, _KEY), space.primary_parts), None)
        case Type.UPDATE | Type.UPSERT:
            return _updated_by(row, space)
    raise AssertionError(row)


def _updated_by(row: Row, space: Space) -> Change | None:
    """The change by an UPDATE or UPSERT row, as real Tarantool logs them."""
    evaluation = Evaluation({}, confirmed_only=False)
    base = row.body.get(Key.INDEX_BASE.value, 0)
    assert isinstance(base, int), row
    if row.type == Type.UPDATE:
        key = exact_key(_fields(row, _KEY), space.primary_parts)
        evaluation.update(space, key, _fields(row, _TUPLE), base)
    else:
        evaluation.upsert(space, _fields(row, _TUPLE), row.body[Key.OPS.value], base)
    return evaluation.outcome.changes[0] if evaluation.outcome.changes else None


def _fields(row: Row, key: int) -> Tuple:
    value = row.body[key]
    assert isinstance(value, list | tuple), row
    return tuple(value)
