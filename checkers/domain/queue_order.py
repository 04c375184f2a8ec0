"""Queue order: the rules for *submitted* writes, which were answered when they were in the queue, not acknowledged.

A store with a queue of transactions that wait for a quorum can answer a client when its write is in the queue
(commit wait modes `submit` and `none`). Such an answer is not an acknowledgement: in the history the operation has no
outcome (info, error "submitted"), and may take effect at any time after its invocation, or never. But it is less open
than a lost answer, because the write has its place in the queue. Every write invoked after that answer stands behind
it, and a confirmation covers all writes in front. So once a later write is known to be confirmed (it was acknowledged,
or a read that had to be fresh has shown it), the submitted write has taken effect, or never will.

Without this rule a submitted write would excuse the loss of an acknowledged one: "it took effect late and replaced it".

| rule | what was seen |
|---|---|
| overtaken | a read that had to show a later write, known by then, still shows the value of a submitted write |
| out-of-order | in a list, an element stands behind one that was asked for after its answer |
| half-applied | one part of a submitted transaction was shown, and a final state lacks another (or the same) part |
| late | a submitted write that must have been decided was missing, and is shown later (in a list or set: ever) |

Reads that must be fresh are those of `reads` (role, mode), and what transactions that wrote have read; the final states
of nodes that had settled judge overtaken and half-applied. Only values that one operation alone wrote are judged.

Cost: n log n, and for each submitted write the reads between its confirmation and its last sight. Cannot see: submitted
writes that no read showed; writes with values that do not identify them (counters, balances).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.domain.durability import WRITERS
from checkers.domain.effects import Cell, Effect, Sight, effects, sights
from checkers.domain.proof import caught_up, is_judged, shown, verdict, while_active
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.values import Value, many
from checkers.verdict import Verdict, Witness, witness

NAME = "queue-order"
MODEL = "what was submitted is decided in its turn"
Reads = Callable[[str | None, str | None], bool]
Place = tuple[Cell, Value]


def check(
    history: History, *, reads: Reads = lambda role, mode: role != "replica", final_state: bool = True
) -> Verdict:
    """Whether every submitted write that was seen took effect in its turn.

    `final_state`: nodes must be equal in the end.
    `details`: submitted, seen (of them, by any read but dirty ones), violations, by_rule.
    """
    cells = _cells(history, reads, final_state)
    known = _known(history, cells)
    closings = _Closings.of(known)
    witnesses: list[Witness] = []
    for name, cell in cells.items():
        of_cell = _Closings.of(write for write in known if name in write.cells)
        witnesses += _overtaken(history, name, cell, of_cell)
        witnesses += _out_of_order(history, name, cell)
        witnesses += _late(history, name, cell, closings)
    submitted = [each for each in history.operations if each.is_submitted]
    for operation in submitted:
        witnesses += _half_applied(history, operation, cells)
    shown_writes = {
        writer.invoke_index
        for cell in cells.values()
        for value, writer in cell.submitted.items()
        if value in cell.shown
    }
    by_rule: dict[str, int] = {}
    for each in witnesses:
        by_rule[each.rule] = by_rule.get(each.rule, 0) + 1
    details: dict[str, Any] = {
        "submitted": len(submitted),
        "seen": len(shown_writes),
        "by_rule": by_rule,
        "vacuous": not shown_writes,
    }
    valid = f"{many(len(shown_writes), 'submitted write')} of {len(submitted)} seen, each in its turn"
    return verdict(NAME, MODEL, witnesses, details, judged=len(submitted), valid=valid)


@dataclass(slots=True)
class _Cell:
    """The writes to one cell, and the reads and dumps that showed their values."""

    writers: dict[Value, Operation] = field(default_factory=dict)
    """By value: the one operation that may have written it."""
    fresh: list[Sight] = field(default_factory=list)
    """In order of invocation."""
    deletions: list[Operation] = field(default_factory=list)
    """Those that may have taken effect."""
    final: list[Sight] = field(default_factory=list)
    """Of dumps, and of final reads that need not be fresh."""
    others: list[Sight] = field(default_factory=list)
    _shown: dict[Value, Sight] | None = None

    @property
    def submitted(self) -> dict[Value, Operation]:
        return {value: writer for value, writer in self.writers.items() if writer.is_submitted}

    @property
    def all(self) -> Iterator[Sight]:
        yield from self.fresh
        yield from self.final
        yield from self.others

    @property
    def ends(self) -> Iterator[Sight]:
        """The final sights. Each must show every confirmed value, or the value that replaced it."""
        yield from (sight for sight in self.fresh if sight.operation.phase == "final")
        yield from self.final

    @property
    def shown(self) -> dict[Value, Sight]:
        """Each value that was shown, with its first sight."""
        if self._shown is None:
            self._shown = {}
            for sight in sorted(self.all, key=_completed):
                for value in sight.values:
                    self._shown.setdefault(value, sight)
        return self._shown


def _cells(history: History, reads: Reads, final_state: bool) -> dict[Cell, _Cell]:
    cells: dict[Cell, _Cell] = {}
    wrote: dict[Place, list[Effect]] = {}
    is_complete = caught_up(history)
    for operation in history.operations:
        if operation.f in WRITERS and operation.type != "fail":
            for effect in effects(operation):
                wrote.setdefault((effect.cell, effect.value), []).append(effect)
        if not is_judged(operation):
            continue
        has_written = operation.f != "read" and any(True for _ in effects(operation))
        is_final = final_state and operation.phase == "final" and is_complete(operation)
        for sight in sights(operation):
            cell = cells.setdefault(sight.cell, _Cell())
            if operation.f != "dump" and (has_written or reads(operation.role, operation.mode)):
                cell.fresh.append(sight)
            else:
                (cell.final if is_final else cell.others).append(sight)
    for (name, value), group in wrote.items():
        if value is None:
            cells.setdefault(name, _Cell()).deletions += [write.operation for write in group]
        elif len(group) == 1:
            cells.setdefault(name, _Cell()).writers[value] = group[0].operation
    return cells


# ---- what is known to be confirmed


@dataclass(frozen=True, slots=True)
class _Known:
    """A write that surely was confirmed by event `index`: by its own answer, or by that of the read `shown_by`."""

    operation: Operation
    cells: tuple[Cell, ...]
    index: int
    shown_by: Operation | None = None

    @property
    def witnesses(self) -> tuple[Operation, ...]:
        return (self.operation,) if self.shown_by is None else (self.operation, self.shown_by)


def _known(history: History, cells: dict[Cell, _Cell]) -> list[_Known]:
    first: dict[Place, Operation] = {}
    for name, cell in cells.items():
        for sight in sorted(cell.fresh, key=_completed):
            for value in sight.values:
                first.setdefault((name, value), sight.operation)
    known: list[_Known] = []
    for operation in history.operations:
        written = [*effects(operation)] if operation.f in WRITERS else []
        names = tuple(dict.fromkeys(effect.cell for effect in written))
        if written and operation.type == "ok" and operation.complete_index is not None:
            known.append(_Known(operation, names, operation.complete_index))
        elif written and operation.is_submitted:
            showing = [
                first[effect.cell, effect.value]
                for effect in written
                if (effect.cell, effect.value) in first
                and cells[effect.cell].writers.get(effect.value) is operation
            ]
            if showing:
                soonest = min(showing, key=lambda operation: operation.complete_index or 0)
                known.append(_Known(operation, names, soonest.complete_index or 0, soonest))
    return known


def _completed(sight: Sight) -> int:
    return sight.operation.complete_index or 0


@dataclass(frozen=True, slots=True)
class _Closings:
    """When earlier answers were decided: known writes by invocation, and of each and all later ones the first known."""

    invoked: Sequence[int]
    first: Sequence[_Known]

    @classmethod
    def of(cls, known: Iterable[_Known]) -> _Closings:
        chosen = sorted(known, key=lambda write: write.operation.invoke_index)
        first = list(chosen)
        # A write invoked even later stands behind, too: so the soonest known one of all from here on decides.
        for position in range(len(first) - 2, -1, -1):
            if first[position + 1].index < first[position].index:
                first[position] = first[position + 1]
        return cls([write.operation.invoke_index for write in chosen], first)

    def after(self, writer: Operation) -> _Known | None:
        """Of the writes invoked after this one was answered, the one that was known first."""
        assert writer.queued_index is not None
        # Invoked after the answer: what was invoked before it may stand in front.
        position = bisect_right(self.invoked, writer.queued_index)
        return self.first[position] if position < len(self.first) else None


# ---- the rules


def _overtaken(history: History, name: Cell, cell: _Cell, closings: _Closings) -> Iterator[Witness]:
    for sight in (*cell.fresh, *cell.final):
        if sight.elements:
            continue
        (value,) = sight.values
        writer = cell.writers.get(value)
        if writer is None or not writer.is_submitted:
            continue
        later = closings.after(writer)
        if later is not None and later.index < sight.operation.invoke_index:
            summary = (
                f"{_where(sight)} showed {shown(value)} of {name}, which was only submitted, although "
                f"{_words(later.operation, name)} was asked for after that and confirmed before "
                f"the {sight.operation.f} began"
            )
            yield _witness(
                history, "overtaken", summary, name, [writer, *later.witnesses, sight.operation], sight
            )


def _out_of_order(history: History, name: Cell, cell: _Cell) -> Iterator[Witness]:
    for sight in cell.all:
        if not sight.elements or sight.operation.f not in ("txn", "dump"):
            continue
        newest: Operation | None = None
        for value in sight.values:
            writer = cell.writers.get(value)
            if writer is None:
                continue
            queued = writer.queued_index if writer.is_submitted else None
            if newest is not None and queued is not None and newest.invoke_index > queued:
                summary = (
                    f"{_where(sight)} showed {shown(value)} in {name} behind {_words(newest, name)}, "
                    "which was asked for after that had been submitted"
                )
                yield _witness(
                    history, "out-of-order", summary, name, [writer, newest, sight.operation], sight
                )
                return
            if newest is None or writer.invoke_index > newest.invoke_index:
                newest = writer


def _late(history: History, name: Cell, cell: _Cell, closings: _Closings) -> Iterator[Witness]:
    fresh = sorted(cell.fresh, key=lambda sight: sight.operation.invoke_index)
    invoked = [read.operation.invoke_index for read in fresh]
    showed = [frozenset(read.values) for read in fresh]
    last_of = {value: sight for sight in fresh for value in sight.values}
    for value, writer in cell.submitted.items():
        decided = closings.after(writer) if value in cell.shown else None
        if decided is None:
            continue
        last = last_of.get(value)
        ends = NEVER if last is None else last.operation.invoke_index
        for position in range(bisect_right(invoked, decided.index), len(fresh)):
            sight = fresh[position]
            if not sight.elements and (last is None or sight.operation.invoke_index > ends):
                break
            if value in showed[position] or not _must_show(sight, last):
                continue
            named = [writer, *decided.witnesses, sight.operation]
            summary = (
                f"{_where(sight)} did not show {shown(value)} of {name}, which was only submitted and is seen "
                f"elsewhere, although {_words(decided.operation, name)}, asked for after that, was confirmed before"
            )
            yield _witness(
                history, "late", summary, name, [*named, *([last.operation] if last else [])], sight
            )
            break


def _half_applied(history: History, operation: Operation, cells: dict[Cell, _Cell]) -> Iterator[Witness]:
    written = [
        part
        for part in effects(operation)
        if part.cell in cells and cells[part.cell].writers.get(part.value) is operation
    ]
    sights_of = (cells[effect.cell].shown.get(effect.value) for effect in written)
    first = min((sight for sight in sights_of if sight is not None), key=_completed, default=None)
    if first is None:
        return
    for effect in written:
        for sight in cells[effect.cell].ends:
            is_lacking = _lacks(sight, effect, cells[effect.cell].deletions)
            if is_lacking and _completed(first) < sight.operation.invoke_index:
                summary = (
                    f"{_where(sight)} lacks {shown(effect.value)} of {effect.cell} at the end, although the "
                    f"transaction that wrote it, and was only submitted, had been seen: {_where(first)} showed "
                    f"{', '.join(map(shown, first.values))} of {first.cell}"
                )
                named = [operation, first.operation, sight.operation]
                yield _witness(history, "half-applied", summary, effect.cell, named, sight)
                return


def _lacks(sight: Sight, effect: Effect, deletions: Sequence[Operation]) -> bool:
    """Whether the effect is missing. Elements stay; a value may have been replaced, or deleted by a later deletion."""
    if sight.elements:
        return effect.how == "has" and effect.value not in sight.values
    return sight.values == (None,) and all(deletion.precedes(effect.operation) for deletion in deletions)


def _must_show(sight: Sight, last: Sight | None) -> bool:
    """Elements stay; a value may have been replaced before, but then no later read shows it again."""
    if sight.elements:
        return True
    ended = sight.operation.complete_index
    return last is not None and ended is not None and ended < last.operation.invoke_index


def _where(sight: Sight) -> str:
    operation = sight.operation
    at = f" at {operation.node}" if operation.node else ""
    return f"the {operation.f} by process {operation.process}{at}"


def _words(operation: Operation, name: Cell) -> str:
    value = next((effect.value for effect in effects(operation) if effect.cell == name), None)
    kind = "deletion" if operation.is_deletion else operation.f
    return f"a later {kind}" if value is None else f"{shown(value)}"


def _witness(
    history: History, rule: str, summary: str, name: Cell, operations: Sequence[Operation], sight: Sight
) -> Witness:
    return witness(
        rule,
        summary,
        operations,
        key=name,
        node=sight.operation.node,
        explanation=while_active(history, operations[0]),
    )
