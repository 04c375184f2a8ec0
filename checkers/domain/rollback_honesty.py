"""Rollback honesty: no read shows a write that the store reported as surely failed.

"fail" is a promise: the operation had no effect, and has none later. So no answer may show a value or an element that
only failed operations wrote. `effects` says what operations write and show. Three kinds of values prove nothing: those
that an operation with another outcome (ok, or unknown) wrote too, those shown before their write was invoked, and those
that the object held before the first operation. Reads of mode "dirty" are skipped, because they may show what is rolled
back later.

Rule: failed-yet-seen. Cost: linear. Cannot see: effects that no operation reads; counters and balances, where a value
does not identify its writer (`counter`, `bank`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from checkers.domain.effects import Cell, effects, sights
from checkers.domain.proof import is_judged, shown, verdict, while_active
from checkers.history.history import History
from checkers.history.line_kernels import FAIL, OK, OTHER, PAIR
from checkers.history.operation import Operation
from checkers.history.start import Start
from checkers.history.values import Value, identity
from checkers.verdict import Verdict, Witness, witness

NAME = "rollback-honesty"
MODEL = "what surely failed is never seen"


class Place(NamedTuple):
    """A value as one that a cell holds, or as an element that it has."""

    cell: Cell
    is_element: bool
    value: Value


def check(history: History) -> Verdict:
    """Whether no failed effect was seen. `details`: failed (effects), sights, by_node (violations)."""
    failed: dict[Place, Operation] = {}
    possible: set[Place] = set()
    operations, shown_by_others = _concerned(history)
    for operation in operations:
        for effect in effects(operation):
            place = Place(effect.cell, effect.how == "has", effect.value)
            if operation.type != "fail":
                possible.add(place)
            elif place not in failed or operation.invoke_index < failed[place].invoke_index:
                failed[place] = operation
    possible |= _shown_before(operations, failed)
    possible |= {place for place in failed if _was_there(history.start, place)}
    witnesses: list[Witness] = []
    by_node: dict[str, int] = {}
    seen = shown_by_others if failed else 0
    shown_at: set[tuple[Place, str | None]] = set()
    for operation in operations if failed else ():
        if not is_judged(operation):
            continue
        for sight in sights(operation):
            for value in sight.values:
                seen += 1
                place = Place(sight.cell, sight.elements, value)
                if value is None or place not in failed or place in possible:
                    continue
                by_node[operation.node or ""] = by_node.get(operation.node or "", 0) + 1
                if (place, operation.node) not in shown_at:  # what a node shows once it shows often
                    shown_at.add((place, operation.node))
                    witnesses.append(_witness(history, failed[place], operation, sight.cell, value))
    details: dict[str, Any] = {"failed": len(failed), "sights": seen}
    details["by_node"] = dict(sorted(by_node.items()))
    valid = f"none of {len(failed)} failed effects was ever seen"
    if not (failed and seen):
        details["vacuous"] = True
        valid = f"nothing {'was shown' if failed else 'surely failed'}, so nothing could be seen of it"
    return verdict(NAME, MODEL, witnesses, details, judged=len(history.operations), valid=valid)


def _concerned(history: History) -> tuple[Sequence[Operation], int]:
    """The operations that may concern failed ones, and how many values all other operations showed.

    Of registers these are few: the other operations wrote and showed numbers that no failed one wrote.
    """
    if not history.names <= {"read", "write", "cas", "dump"}:
        return history.operations, 0
    import numpy

    columns = history.columns
    is_ok, failed = columns.type == OK, columns.type == FAIL
    is_cas, is_read = columns.f == columns.code("cas"), columns.f == columns.code("read")
    wrote = failed & ~is_read
    if (columns.kind[wrote] == OTHER).any():  # it may have written a number all the same, under any key
        return history.operations, 0
    values = columns.new[wrote]
    concerned = wrote | (columns.kind == OTHER) | (columns.f == columns.code("dump"))
    shares = numpy.isin(columns.new, values) | ((columns.kind == PAIR) & numpy.isin(columns.old, values))
    concerned |= numpy.isin(columns.key, numpy.unique(columns.key[wrote])) & shares
    shows = ~concerned & is_ok & (columns.mode != columns.code("dirty"))
    shown = (shows & is_read).sum() + (shows & is_read & (columns.kind == PAIR)).sum()
    shown += (shows & is_cas & (columns.kind == PAIR)).sum()
    return history.at(numpy.flatnonzero(concerned)), int(shown)


def _shown_before(operations: Sequence[Operation], failed: Mapping[Place, Operation]) -> set[Place]:
    """Values that were shown before the first of their failed operations was invoked: their source is another one."""
    before: set[Place] = set()
    for operation in operations if failed else ():
        for sight in sights(operation):
            for value in sight.values:
                place = Place(sight.cell, sight.elements, value)
                if place in failed and operation.precedes(failed[place]):
                    before.add(place)
    return before


def _was_there(start: Start, place: Place) -> bool:
    """Whether the object held the value before the first operation."""
    held = start.of(place.cell)
    if place.is_element:
        return isinstance(held, list | tuple) and place.value in map(identity, held)
    return held is not None and identity(held) == place.value


def _witness(history: History, failed: Operation, seen: Operation, cell: Cell, value: Value) -> Witness:
    where = f" at {seen.node}" if seen.node else ""
    error = f" ({failed.error})" if failed.error else ""
    summary = f"the {seen.f} by process {seen.process}{where} showed {shown(value)}, whose {failed.f} had failed{error}"
    return witness(
        "failed-yet-seen",
        summary,
        [failed, seen],
        key=cell,
        node=seen.node,
        explanation=while_active(history, failed),
    )
