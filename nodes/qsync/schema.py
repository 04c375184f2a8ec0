"""The spaces of a node, and the system spaces that say which there are.

What stands in `_space` and `_index` decides: a row that is prepared there makes, alters or drops a space at once, and
undoes that when it is rolled back, as Tarantool's triggers do. Each such step counts `version` up, which clients
compare. A new node's system spaces are those of Tarantool 2.6, filled with what the configuration says.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from nodes.qsync import system_spaces as system
from nodes.qsync.access import users_and_privileges
from nodes.qsync.configuration import Configuration
from nodes.qsync.definitions import (
    SpaceDefinition,
    definition_of_rows,
    index_rows,
    space_row,
)
from nodes.qsync.keys import Tuple
from nodes.qsync.spaces import Space, key_of_tuple


class Schema:
    """All spaces, by number and by name."""

    def __init__(self, configuration: Configuration) -> None:
        self.by_id: dict[int, Space] = {}
        self.lookup: dict[object, Space] = {}
        """By id and by name."""
        self.version = 1
        self._dropped: dict[int, Space] = {}
        """Dropped by a transaction that may still be rolled back."""
        for definition in (*system.definitions(), *configuration.spaces):
            self._add(Space(definition))
        for view, source in system.VIEWS.items():
            self.by_id[view].source = self.by_id[source]
        self._fill(configuration)
        self.by_id[system.SPACE].on_change = self._space_changed
        self.by_id[system.INDEX].on_change = self._index_changed

    def user_spaces(self) -> Iterator[Space]:
        """Those that are not the system's own."""
        return (space for number, space in sorted(self.by_id.items()) if number > system.SYSTEM_ID_MAX)

    def free_id(self) -> int:
        return max(*self.by_id, system.SYSTEM_ID_MAX) + 1

    # ---- the first content

    def _add(self, space: Space) -> None:
        definition = space.definition
        self.by_id[definition.id] = self.lookup[definition.id] = self.lookup[definition.name] = space

    def _fill(self, configuration: Configuration) -> None:
        for definition in [space.definition for space in self.by_id.values()]:
            self._put(system.SPACE, space_row(definition))
            for row in index_rows(definition):
                self._put(system.INDEX, row)
        self._put(system.SCHEMA, ("cluster", configuration.cluster_uuid))
        self._put(system.SCHEMA, ("max_id", system.SYSTEM_ID_MAX))
        self._put(system.SCHEMA, ("version", *system.SCHEMA_VERSION))
        for member in configuration.members:
            self._put(system.CLUSTER, (member.id, member.uuid))
        users, privileges = users_and_privileges(configuration.users)
        for row in users:
            self._put(system.USER, row)
        for row in privileges:
            self._put(system.PRIVILEGE, row)

    def _put(self, space_id: int, row: Tuple) -> None:
        space = self.by_id[space_id]
        space.confirmed[key_of_tuple(row, space.primary_parts)] = row

    # ---- changes

    def _space_changed(self, key: Hashable) -> None:
        assert isinstance(key, int), key
        self._refresh(key)

    def _index_changed(self, key: Hashable) -> None:
        assert isinstance(key, tuple), key
        self._refresh(key[0])

    def _refresh(self, space_id: int) -> None:
        """Let the newest rows decide."""
        self.version += 1
        space = self.by_id.pop(space_id, None)
        if space is not None:
            self.lookup.pop(space_id)
            self.lookup.pop(space.definition.name, None)
            self._dropped[space_id] = space
        definition = self.newest_definition(space_id)
        if definition is None:
            return
        space = self._dropped.pop(space_id, None)
        if space is None:
            space = Space(definition)
        else:
            space.define(definition)
        self._add(space)

    def newest_definition(self, space_id: int) -> SpaceDefinition | None:
        """What the newest rows, confirmed or not, say of a space."""
        row = self.by_id_or_dropped(system.SPACE).prepared_version(space_id)[0]
        if row is None:
            return None
        rows = self.by_id_or_dropped(system.INDEX).scan(dirty=True)
        return definition_of_rows(row, [index for index in rows if index[0] == space_id])

    def by_id_or_dropped(self, space_id: int) -> Space:
        """Also in the moment in which a system space itself is defined anew."""
        return self.by_id.get(space_id) or self._dropped[space_id]
