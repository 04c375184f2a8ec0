"""The columns of a history: those that it was read as, or made of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.history.columns import Columns, of_operations
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.stored import StoredOperations


def columns_of(history: History) -> Columns | None:
    """The operations as columns, made once; None if a value is neither nothing, nor a whole number, nor two."""
    operations = history.operations
    if isinstance(operations, StoredOperations):
        return operations.columns
    if history.made_columns is None:
        object.__setattr__(history, "made_columns", (of_operations(operations),))
    assert history.made_columns is not None
    return history.made_columns[0]


def operations_at(history: History, places: Any) -> Sequence[Operation]:
    """Some of the operations; no others are made."""
    operations = history.operations
    if isinstance(operations, StoredOperations):
        return operations.at(places)
    return [operations[place] for place in places.tolist()]
