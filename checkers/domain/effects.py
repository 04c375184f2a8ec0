"""The writes and sights of operations of any workload, in two words: a cell holds a value, or has an element.

| operation | wrote | shows |
|---|---|---|
| write v (a list v: see txn) | the cell of its key holds v | |
| cas [old, new] or [old, new, was] | the cell of its key holds new, if that is not old | old |
| read | | the cell of its key: a value; of a list: its elements; of steps: see txn |
| add v | the cell of its key has v | |
| enqueue v; dequeue, drain | the cell of its key has v | elements |
| txn [["w", k, v], ["append", k, v], ["r", k, …]] | cell k holds, has | cell k |
| dump {"spaces": {space: [[k, v], …]}} | | cell k of every space |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from checkers.history.operation import Operation
from checkers.history.value_rows import is_to_itself
from checkers.history.values import Value, identity

Cell = str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """`how`: the cell "holds" the value, or it "has" it as an element."""

    operation: Operation
    cell: Cell
    how: Literal["holds", "has"]
    value: Value


@dataclass(frozen=True, slots=True)
class Sight:
    """The part of a cell that an operation showed: a value, or elements."""

    operation: Operation
    cell: Cell
    values: tuple[Value, ...]
    elements: bool


def effects(operation: Operation) -> Iterator[Effect]:
    """The writes of the operation, or those that it would have done."""
    cell, value = operation.key, operation.value
    match operation.f:
        case "write" if not isinstance(value, list):
            yield Effect(operation, cell, "holds", identity(value))
        case "cas" if isinstance(value, list) and len(value) in (2, 3) and not is_to_itself(value):
            yield Effect(operation, cell, "holds", identity(value[1]))
        case "add" | "enqueue":
            yield Effect(operation, cell, "has", identity(value))
        case "txn" | "write":
            for f, key, element in _micro(value):
                if f in ("w", "append"):
                    yield Effect(operation, key, "holds" if f == "w" else "has", identity(element))


def sights(operation: Operation) -> Iterator[Sight]:
    """The sights in the operation's answer; empty unless it was answered ok."""
    if operation.type != "ok":
        return
    cell, value = operation.key, operation.value
    match operation.f:
        case "read" | "drain":
            micro = list(_micro(value))
            if micro:
                yield from (_sight(operation, key, shown) for f, key, shown in micro if f == "r")
            elif not isinstance(value, dict):
                yield _sight(operation, cell, value)
        case "dequeue" if not operation.saw_empty:
            yield Sight(operation, cell, (identity(value),), elements=True)
        case "cas" if isinstance(value, list) and len(value) in (2, 3):
            yield _sight(operation, cell, value[0])
        case "txn":
            yield from (_sight(operation, key, shown) for f, key, shown in _micro(value) if f == "r")
        case "dump":
            yield from (_sight(operation, str(key), shown) for key, shown in _rows(value))


def _sight(operation: Operation, cell: Cell, value: Any) -> Sight:
    if isinstance(value, list):
        return Sight(operation, cell, tuple(map(identity, value)), elements=True)
    return Sight(operation, cell, (identity(value),), elements=False)


def _micro(value: Any) -> Iterator[tuple[str, str, Any]]:
    for micro in value if isinstance(value, list) else ():
        if isinstance(micro, list) and len(micro) == 3 and isinstance(micro[0], str):
            yield micro[0], str(micro[1]), micro[2]


def _rows(value: Any) -> Iterator[tuple[Any, Any]]:
    spaces = value.get("spaces") if isinstance(value, dict) else None
    for rows in spaces.values() if isinstance(spaces, dict) else ():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and len(row) == 2:
                yield row[0], row[1]
