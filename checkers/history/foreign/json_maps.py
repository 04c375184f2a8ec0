"""Operation maps in JSON, as elle-cli reads them: one array, or one after the other (a comma may end each)."""

from __future__ import annotations

from checkers.history.foreign import json_values
from checkers.history.foreign.operation_maps import Maps, no_operations
from checkers.history.history import Header


def parse(data: bytes) -> Maps:
    """The operation maps in such a file, whose array may be the history of an object. Raises HistoryError."""
    found = json_values.parse(data, "an array of operations, or one a line,", "history")
    if not found.values:
        raise no_operations("an empty file")
    return Maps(found.values, found.line_of, Header(system="foreign"), found.torn)
