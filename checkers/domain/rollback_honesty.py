"""Rollback honesty: what the store said it surely did not do is never seen.

"fail" is a promise: the operation had no effect, and has none later. So no answer may show a value or an element that
only failed operations wrote. `effects` says what operations write and show. What was also written by an operation
that succeeded, or whose outcome nobody knows, proves nothing. Reads of mode "dirty" are left out, for they may show
what is rolled back later.

Rule: failed-yet-seen. Cost: linear. Cannot see: effects that nobody reads; counters and balances, where a value does
not tell who wrote it (`counter`, `bank`).
"""

from __future__ import annotations

from typing import Any

from checkers.domain.effects import Cell, effects, sights
from checkers.domain.proof import is_judged, shown, verdict, while_active, witness
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.value_order import NEVER, Value
from checkers.verdict import Verdict, Witness

NAME = "rollback-honesty"
MODEL = "what surely failed is never seen"


def check(history: History) -> Verdict:
    """Whether no failed effect was seen. `details`: failed (effects), sights, by_node (violations)."""
    failed: dict[tuple[Cell, Value], Operation] = {}
    possible: set[tuple[Cell, Value]] = set()
    shown_first = _shown_first(history)
    for operation in history.operations:
        for effect in effects(operation):
            place = (effect.cell, effect.value)
            if operation.type == "fail" and shown_first.get(place, NEVER) > operation.invoke_index:
                failed.setdefault(place, operation)
            else:  # it may have been done, or it was there before
                possible.add(place)
    witnesses: list[Witness] = []
    by_node: dict[str, int] = {}
    seen = 0
    told: set[tuple[Cell, Value, str | None]] = set()
    for operation in history.operations if failed else ():
        if not is_judged(operation):
            continue
        for sight in sights(operation):
            for value in sight.values:
                seen += 1
                place = (sight.cell, value)
                if value is None or place not in failed or place in possible:
                    continue
                by_node[operation.node or ""] = by_node.get(operation.node or "", 0) + 1
                if (
                    *place,
                    operation.node,
                ) not in told:  # one witness a node: what it shows once it shows often
                    told.add((*place, operation.node))
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


def _shown_first(history: History) -> dict[tuple[Cell, Value], int]:
    """The event at which each value was first shown: what was there before anybody asked for it came from elsewhere."""
    first: dict[tuple[Cell, Value], int] = {}
    for operation in history.operations:
        for sight in sights(operation):
            for value in sight.values:
                place = (sight.cell, value)
                first[place] = min(first.get(place, NEVER), operation.complete_index or 0)
    return first


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
