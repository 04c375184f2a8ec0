"""Rollback honesty: no read shows a write that the store reported as surely failed.

"fail" is a promise: the operation had no effect, and has none later. So no answer may show a value or an element that
only failed operations wrote. `effects` says what operations write and show. Two kinds of values prove nothing: those
that an operation with another outcome (ok, or unknown) wrote too, and those shown before their write was invoked,
because they were there first. Reads of mode "dirty" are skipped, because they may show what is rolled back later.

Rule: failed-yet-seen. Cost: linear. Cannot see: effects that no operation reads; counters and balances, where a value
does not identify its writer (`counter`, `bank`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from checkers.domain.effects import Cell, effects, sights
from checkers.domain.proof import is_judged, shown, verdict, while_active, witness
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.value_order import Value
from checkers.verdict import Verdict, Witness

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
    for operation in history.operations:
        for effect in effects(operation):
            place = Place(effect.cell, effect.how == "has", effect.value)
            if operation.type != "fail":
                possible.add(place)
            elif place not in failed or operation.invoke_index < failed[place].invoke_index:
                failed[place] = operation
    possible |= _shown_before(history, failed)
    witnesses: list[Witness] = []
    by_node: dict[str, int] = {}
    seen = 0
    told: set[tuple[Place, str | None]] = set()
    for operation in history.operations if failed else ():
        if not is_judged(operation):
            continue
        for sight in sights(operation):
            for value in sight.values:
                seen += 1
                place = Place(sight.cell, sight.elements, value)
                if value is None or place not in failed or place in possible:
                    continue
                by_node[operation.node or ""] = by_node.get(operation.node or "", 0) + 1
                if (place, operation.node) not in told:  # what a node shows once it shows often
                    told.add((place, operation.node))
                    witnesses.append(_witness(history, failed[place], operation, sight.cell, value))
    details: dict[str, Any] = {
        "failed": len(failed),
        "sights": seen,
        "by_node": dict(sorted(by_node.items())),
    }
    valid = f"none of {len(failed)} failed effects was ever seen"
    if not failed:
        details["vacuous"] = True
        valid = "nothing surely failed, so nothing could be seen of it"
    return verdict(NAME, MODEL, witnesses, details, judged=len(history.operations), valid=valid)


def _shown_before(history: History, failed: Mapping[Place, Operation]) -> set[Place]:
    """Values that were shown before the first of their failed operations was asked: they came from elsewhere."""
    before: set[Place] = set()
    for operation in history.operations if failed else ():
        for sight in sights(operation):
            for value in sight.values:
                place = Place(sight.cell, sight.elements, value)
                if place in failed and operation.precedes(failed[place]):
                    before.add(place)
    return before


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
