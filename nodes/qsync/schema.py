"""The spaces of a node, and the system spaces that define them.

A row that is prepared in `_space` or `_index` creates, alters or drops a space at once, and undoes that when it is
rolled back, as Tarantool's triggers do. Each such step raises `version`, which clients compare. The system spaces of a
new node are those of Tarantool 2.6, filled from the configuration.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from nodes.iproto.codes import Code
from nodes.kernel.errors import StartRefused
from nodes.qsync import system_spaces as system
from nodes.qsync.bootstrap import Stored, first_tuples, members_of
from nodes.qsync.configuration import Configuration
from nodes.qsync.definitions import definition_of_rows, index_of_row
from nodes.qsync.keys import Rejected, Tuple
from nodes.qsync.spaces import Space, key_of_tuple

FIRST_VERSION = 1
"""The version that answers carry by default; it grows with every change of a definition."""


class Schema:
    """All spaces, by number and by name."""

    def __init__(self, configuration: Configuration, stored: Iterable[Stored] | None = None) -> None:
        """`stored`: the tuples of a snapshot; None: the first tuples of a cluster of this configuration."""
        self.by_id: dict[int, Space] = {}
        self.lookup: dict[object, Space] = {}
        """By id and by name."""
        self.version = FIRST_VERSION
        self._defined_by: dict[int, Tuple | None] = {}
        """By space, its row in `_space`."""
        self._dropped: dict[int, list[tuple[Tuple | None, Space]]] = {}
        """The spaces dropped by transactions that may still be rolled back, with their rows in `_space`."""
        for definition in system.definitions():
            self._add(Space(definition))
        for view, source in system.VIEWS.items():
            self.by_id[view].source = self.by_id[source]
        self._fill(first_tuples(configuration) if stored is None else stored)
        self.by_id[system.SPACE].on_change = self._space_changed
        self.by_id[system.INDEX].on_change = self._index_changed
        self.by_id[system.SPACE].must_define = self._must_define_space
        self.by_id[system.INDEX].must_define = self._must_define_index

    def user_spaces(self) -> Iterator[Space]:
        """The spaces that are not system spaces."""
        return (space for number, space in sorted(self.by_id.items()) if number > system.SYSTEM_ID_MAX)

    def free_id(self) -> int:
        return max(*self.by_id, system.SYSTEM_ID_MAX) + 1

    # ---- the first content

    def _add(self, space: Space) -> None:
        definition = space.definition
        self.by_id[definition.id] = self.lookup[definition.id] = self.lookup[definition.name] = space

    def _fill(self, stored: Iterable[Stored]) -> None:
        """Fill the spaces in order: the tuples of user spaces stand behind the system spaces that define them."""
        are_defined = False
        for space_id, fields in stored:
            if space_id > system.SYSTEM_ID_MAX and not are_defined:
                self._define_all()
                are_defined = True
            self._put(space_id, fields)
        if not are_defined:
            self._define_all()

    def _define_all(self) -> None:
        indexes: dict[int, list[Tuple]] = {}
        for row in self.by_id[system.INDEX].confirmed.values():
            indexes.setdefault(int(str(row[0])), []).append(row)
        for row in list(self.by_id[system.SPACE].confirmed.values()):
            number = int(str(row[0]))
            if number not in self.by_id:
                self._defined_by[number] = row
                self._add(Space(definition_of_rows(row, indexes.get(number, []))))

    def members(self) -> dict[int, str]:
        """Replica id → UUID, by `_cluster`."""
        return members_of((system.CLUSTER, fields) for fields in self.by_id[system.CLUSTER].scan(dirty=False))

    def stored(self) -> list[Stored]:
        """All tuples for a snapshot, prepared ones included: by space and key."""
        return [
            pair
            for _, space in sorted(self.by_id.items())
            if space.definition.engine == "memtx" and not space.definition.is_temporary
            for pair in space.stored()
        ]

    def _put(self, space_id: int, row: Tuple) -> None:
        space = self.by_id.get(space_id)
        if space is None:
            raise StartRefused(
                f"the snapshot has a tuple of space {space_id}, which neither Tarantool 2.6 nor it defines"
            )
        space.confirmed[key_of_tuple(row, space.primary_parts)] = row

    # ---- changes

    def _must_define_space(self, row: Tuple) -> None:
        try:
            definition_of_rows(row, ())
        except ValueError as error:
            raise Rejected(Code.ALTER_SPACE, row[2], str(error)) from None

    def _must_define_index(self, row: Tuple) -> None:
        try:
            index_of_row(row)
        except ValueError as error:
            space = self.by_id.get(int(str(row[0])))
            name = row[0] if space is None else space.definition.name
            raise Rejected(Code.ALTER_SPACE, name, str(error)) from None

    def _space_changed(self, key: Hashable) -> None:
        assert isinstance(key, int), key
        self._refresh(key)

    def _index_changed(self, key: Hashable) -> None:
        assert isinstance(key, tuple), key
        self._refresh(key[0])

    def _refresh(self, space_id: int) -> None:
        """Create, alter or drop a space as the newest rows define it."""
        self.version += 1
        row = self.by_id[system.SPACE].prepared_version(space_id)[0]
        indexes = self.by_id[system.INDEX].scan(dirty=True)
        own = [index for index in indexes if index[0] == space_id]
        definition = None if row is None else definition_of_rows(row, own)
        space = self.by_id.pop(space_id, None)
        if space is not None:
            self.lookup.pop(space_id)
            self.lookup.pop(space.definition.name, None)
        if definition is None:
            if space is not None:
                self._dropped.setdefault(space_id, []).append((self._defined_by.get(space_id), space))
            return
        if space is None:
            space = self._undropped(space_id, row) or Space(definition)
        space.define(definition)
        self._defined_by[space_id] = row
        self._add(space)

    def _undropped(self, space_id: int, row: Tuple | None) -> Space | None:
        """The dropped space that this row defined, if its drop is rolled back. A new row makes a new space.

        Spaces whose rows no rollback brings back are forgotten.
        """
        dropped = self._dropped.pop(space_id, [])
        rows = self.by_id[system.SPACE]
        for number, entries in list(self._dropped.items()):
            if not any(entry[0] is each for entry in entries for each in rows.versions(number)):
                del self._dropped[number]
        if kept := [entry for entry in dropped if entry[0] is not row]:
            self._dropped[space_id] = kept
        return next((space for defined_by, space in dropped if defined_by is row), None)
