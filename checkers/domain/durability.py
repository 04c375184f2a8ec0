"""Durability: what was acknowledged is in the final state, on every node that shows one.

Final states are the reads, transactions and dumps of phase "final". A value of a cell (write, cas, "w" of a
transaction) must be there, or one that may have replaced it: overwritten is not lost. The value before the first write
replaces nothing. An element of a cell (add, "append" of a transaction) must be in every list that shows the cell.
`effects` says how operations are read. An operation of unknown outcome may be there or not. If the record says that the
nodes had not settled, replicas may be behind: then only the final states of the fixed owner are judged.

Where nodes may stop for good and need not be equal in the end, `checkers.replicas.kept` requires less, by
`gone_everywhere`: an acknowledged write must not be gone from every node.

Rules: lost-write, lost-element. Cost: n log n. Cannot see: cells that no final state shows; values written twice to a
cell (a read does not tell which of the two writes is lost); elements of queues, which leave rightly (`queues`); sums
(`counter`), and rows to which the store added something (`monotonic`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from checkers.domain.effects import Cell, Effect, Sight, effects, sights
from checkers.domain.proof import caught_up, shown, verdict, while_active
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import Value, identity
from checkers.verdict import Verdict, Witness, witness

NAME = "durability"
MODEL = "what was acknowledged is in every final state"
WRITERS = frozenset({"write", "cas", "add", "txn"})


def check(history: History) -> Verdict:
    """Whether every acknowledged effect is in every final state. `details`: acknowledged (to cells that any of them
    shows), final_states, nodes."""
    written = _effects_of_cells(history)
    is_complete = caught_up(history)
    finals = [
        sight
        for operation in history.operations
        if operation.phase == "final" and operation.f in ("read", "dump", "txn") and operation.mode != "dirty"
        if is_complete(operation)
        for sight in sights(operation)
    ]
    witnesses: list[Witness] = []
    every: list[Operation] = []
    for cell, cell_finals in _by_cell(finals).items():
        witnesses += _lost(history, cell, written.get(cell, ()), cell_finals)
        every += (effect.operation for effect in written.get(cell, ()))
    acknowledged = sum(operation.type == "ok" for operation in every)
    submitted = sum(operation.is_submitted for operation in every)
    details: dict[str, Any] = {
        "acknowledged": acknowledged,
        "final_states": len(finals),
        "nodes": sorted({sight.operation.node for sight in finals if sight.operation.node is not None}),
        "vacuous": not acknowledged,
    }
    valid = f"{acknowledged} acknowledged effects are in {len(finals)} final states, or were replaced"
    return verdict(
        NAME, MODEL, witnesses, details, judged=len(finals) and (acknowledged or submitted), valid=valid
    )


def gone_everywhere(history: History, dumps: Sequence[Operation]) -> Iterator[Witness]:
    """For `kept`: values and elements of which no node's final dump has any trace."""
    held = [{sight.cell: sight for sight in sights(dump)} for dump in dumps]
    for cell, effects_of_cell in _effects_of_cells(history).items():
        shown_of = [
            cells.get(cell) or Sight(dump, cell, (None,), elements=False)
            for dump, cells in zip(dumps, held, strict=True)
        ]
        yield from _lost_everywhere(history, cell, effects_of_cell, shown_of)


def _lost_everywhere(
    history: History, cell: Cell, written: Sequence[Effect], shown_of: Sequence[Sight]
) -> Iterator[Witness]:
    """An element that no node has; or a value, if each node holds a value that it replaced, perhaps different ones."""
    if any(change.how == "holds" for change in written):
        lost = [list(_lost(history, cell, written, [sight])) for sight in shown_of]
        if all(lost):
            yield lost[0][0]
        return
    for effect in written:
        operation = effect.operation
        if operation.type == "ok" and all(
            effect.value not in sight.values and operation.precedes(sight.operation) for sight in shown_of
        ):
            yield _witness(history, "lost-element", cell, operation, shown_of[0], effect.value)


def _effects_of_cells(history: History) -> dict[Cell, list[Effect]]:
    written: dict[Cell, list[Effect]] = {}
    for operation in history.operations:
        if operation.f in WRITERS and operation.type != "fail":
            for effect in effects(operation):
                written.setdefault(effect.cell, []).append(effect)
    return written


def _by_cell(finals: Sequence[Sight]) -> dict[Cell, list[Sight]]:
    cells: dict[Cell, list[Sight]] = {}
    for sight in finals:
        cells.setdefault(sight.cell, []).append(sight)
    return cells


def _lost(
    history: History, cell: Cell, written: Sequence[Effect], finals: Sequence[Sight]
) -> Iterator[Witness]:
    elements = [effect for effect in written if effect.how == "has" and effect.operation.type == "ok"]
    values = [effect for effect in written if effect.how == "holds"]
    for final in finals:
        if final.elements or (elements and not values and final.values == (None,)):
            yield from _lost_elements(history, cell, elements, final)
        elif values:
            yield from _lost_value(history, cell, values, final)


def _lost_elements(
    history: History, cell: Cell, elements: Sequence[Effect], final: Sight
) -> Iterator[Witness]:
    there = set(final.values)
    for effect in elements:
        if effect.value not in there and effect.operation.precedes(final.operation):
            yield _witness(history, "lost-element", cell, effect.operation, final, effect.value)


def _lost_value(history: History, cell: Cell, values: Sequence[Effect], final: Sight) -> Iterator[Witness]:
    """An acknowledged write that surely replaced the shown value: it was invoked after all writes of that had ended."""
    (value,) = final.values
    writers = [write.operation for write in values if write.value == value]
    known = value in (None, identity(history.start.of(cell))) or writers
    if not known or any(writer.type == "info" for writer in writers) or _is_repeated(values):
        return
    over = max((writer.complete_index or 0 for writer in writers), default=-1)
    for effect in values:
        operation = effect.operation
        acknowledged = (
            operation.type == "ok" and effect.value is not None and operation.precedes(final.operation)
        )
        if acknowledged and operation.invoke_index > over:
            yield _witness(history, "lost-write", cell, operation, final, effect.value)
            return


def _is_repeated(values: Sequence[Effect]) -> bool:
    """Whether a value was written twice, or deleted: then the shown value may have been written again later."""
    return len({effect.value for effect in values}) < len(values) or any(
        effect.value is None for effect in values
    )


def _witness(
    history: History, rule: str, cell: Cell, operation: Operation, final: Sight, value: Value
) -> Witness:
    where = f" at {final.operation.node}" if final.operation.node else ""
    how = (
        "is missing"
        if rule == "lost-element"
        else f"is not there, but {shown(final.values[0])}, which was over before it"
    )
    lost_value = shown(value) if cell is None else f"{shown(value)} of {cell}"
    summary = f"{lost_value} was acknowledged to process {operation.process}, and in the final state{where} it {how}"
    return witness(
        rule,
        summary,
        [operation, final.operation],
        key=cell,
        node=final.operation.node,
        explanation=while_active(history, operation),
    )
