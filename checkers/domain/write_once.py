"""Rows that are written once, in a synchronous space and in asynchronous spaces: what each read of them must show.

| f | value |
|---|---|
| insert | {"spaces": {space: [key, …]}, "fails": ""}: one transaction; with `fails` set, a statement of it must fail |
| read | ok: {"from": a, "below": b, "spaces": {space: [key, …]}}: the rows of these with a ≤ key < b at one moment |
| dump | ok: {"spaces": {space: [[key, key], …]}}: all that a node holds |

A row that is there is not written again or deleted, so a lost row stays lost, and no later write hides it. An insert
with a row of the synchronous space is a synchronous transaction; every other insert is asynchronous. The rules:

| rule | violation |
|---|---|
| never-written | a row that no client had asked to write by then |
| failed-yet-seen | a row of an insert that surely failed |
| torn-transaction | some rows of an insert without the rest |
| later-without-earlier | a row without one that was acknowledged before its insert began |
| gone-back | a node shows less than it has shown before |
| stale | a read that must be fresh, without a row that was acknowledged before it began |
| lost-row | a final state without an acknowledged row |
| lost-where-answered | an asynchronous row that is not on the node that acknowledged it |

Where the owner stays the same (`is_fixed`), asynchronous transactions keep to the order of the log like synchronous
ones, and no node may lack one in the end. Elsewhere an acknowledgement of an asynchronous transaction promises only
that its rows stay on the node that gave it, over crashes, snapshots and joins. Reads of mode "dirty" show what may be
rolled back: of them only the first three rules hold, and of the second only for inserts that had to fail.

Cost: linear in the rows of all reads, and n log n in those of inserts. Cannot see: values of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.domain.proof import caught_up, verdict, while_active
from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.members import answered_by
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.values import value_words
from checkers.replicas.kept import last_dumps
from checkers.verdict import Verdict, Witness, witness

NAME = "write-once"
MODEL = "acknowledged rows stay, whole and in the order of the log"

Row = tuple[str, int]
Range = tuple[int | None, int | None, frozenset[str] | None]
Reads = Callable[[str | None, str | None], bool]


@dataclass(frozen=True, slots=True)
class Insert:
    operation: Operation
    rows: frozenset[Row]
    is_sync: bool

    @property
    def must_fail(self) -> bool:
        return bool(self.operation.value.get("fails"))

    @property
    def acknowledged_at(self) -> int:
        """The index of its acknowledgement; NEVER if there is none."""
        complete = self.operation.complete_index if self.operation.type == "ok" else None
        return NEVER if complete is None else complete


@dataclass(frozen=True, slots=True)
class Sight:
    """The rows from `low` to below `high` that a read or a dump showed; a read, of the spaces that it asked."""

    operation: Operation
    rows: frozenset[Row]
    low: int | None
    high: int | None
    spaces: frozenset[str] | None = None
    """None: all."""

    @property
    def is_dirty(self) -> bool:
        return self.operation.mode == "dirty"

    @property
    def range(self) -> Range:
        """The range that the read asked for: few ranges are read often."""
        return self.low, self.high, self.spaces

    def meets(self, other: Sight) -> bool:
        """Whether a row may be in the ranges of both."""
        return (
            (self.low is None or other.high is None or self.low < other.high)
            and (other.low is None or self.high is None or other.low < self.high)
            and (self.spaces is None or other.spaces is None or not self.spaces.isdisjoint(other.spaces))
        )

    def covers(self, row: Row) -> bool:
        is_asked = self.spaces is None or row[0] in self.spaces
        return (
            is_asked
            and (self.low is None or self.low <= row[1])
            and (self.high is None or row[1] < self.high)
        )

    def missing(self, insert: Insert) -> frozenset[Row]:
        """The rows of an insert that should be here and are not."""
        return frozenset(row for row in insert.rows - self.rows if self.covers(row))


@dataclass(slots=True)
class Ledger:
    """The inserts of a history, their promises, and the witnesses against them."""

    history: History
    reads: Reads
    is_fixed: bool
    inserts: list[Insert] = field(default_factory=list)
    of_row: dict[Row, list[Insert]] = field(default_factory=dict)
    witnesses: list[Witness] = field(default_factory=list)

    def is_ordered(self, insert: Insert) -> bool:
        """Whether every node promises the insert's place in the order."""
        return insert.is_sync or self.is_fixed

    def shown_of(self, row: Row, sight: Sight) -> Insert | None:
        """The insert whose row a sight shows: the first that may have happened of those asked for by then."""
        end = sight.operation.complete_index or 0
        asked = (insert for insert in self.of_row.get(row, ()) if insert.operation.invoke_index < end)
        return min(asked, key=lambda insert: insert.operation.type == "fail", default=None)

    def add(self, rule: str, summary: str, sight: Sight, *inserts: Insert) -> None:
        named = [insert.operation for insert in inserts]
        explanation = while_active(self.history, named[0]) if named else ()
        node = sight.operation.node
        self.witnesses.append(
            witness(rule, summary, [*named, sight.operation], node=node, explanation=explanation)
        )


def check(
    history: History,
    *,
    reads: Reads = lambda role, mode: role == "owner",
    is_fixed: bool = True,
    is_equal: bool = True,
    is_ordered: bool = True,
    synchronous: str = "once",
) -> Verdict:
    """Whether every sight of the rows keeps to the rules.

    `reads`: which reads must be fresh, by role and mode; `is_fixed`: one owner for the whole run; `is_equal`: all nodes
    hold the same in the end; `is_ordered`: replicas keep to the order. `details`: inserts, sights,
    acknowledged, asynchronous (of the acknowledged ones). Raises ModelError for values of another form.
    """
    ledger = Ledger(history, reads, is_fixed)
    for operation in history.select(f="insert"):
        rows = frozenset(_rows(operation))
        insert = Insert(operation, rows, any(space == synchronous for space, _ in rows))
        ledger.inserts.append(insert)
        for row in rows:
            # A second one if the first failed, or may have failed.
            ledger.of_row.setdefault(row, []).append(insert)
    sights = [_sight(operation) for operation in history.select(f="read", outcome="ok")]
    dumps = [_sight(operation) for operation in last_dumps(history)]
    acknowledged = sorted(
        (insert for insert in ledger.inserts if insert.acknowledged_at < NEVER),
        key=lambda insert: insert.acknowledged_at,
    )
    ordered = [insert for insert in acknowledged if ledger.is_ordered(insert)]
    by_key = sorted((key, place) for place, insert in enumerate(ordered) for _, key in insert.rows)
    by_range: dict[Range, list[Insert]] = {}

    def within(sight: Sight) -> Sequence[Insert]:
        """The inserts that the sight covers."""
        if sight.range not in by_range:
            first = 0 if sight.low is None else bisect_left(by_key, (sight.low,))
            end = len(by_key) if sight.high is None else bisect_left(by_key, (sight.high,))
            near = (ordered[place] for place in sorted({place for _, place in by_key[first:end]}))
            by_range[sight.range] = [insert for insert in near if any(map(sight.covers, insert.rows))]
        return by_range[sight.range]

    for sight in (*sights, *dumps):
        _possible(ledger, sight)
        if not sight.is_dirty and is_ordered:
            _in_order(ledger, sight, within(sight))
    for sight in sights:
        if not sight.is_dirty and reads(sight.operation.role, sight.operation.mode):
            _fresh(ledger, sight, within(sight))
    if is_ordered:
        _forward(ledger, [sight for sight in sights if not sight.is_dirty], dumps)
    _at_the_end(ledger, acknowledged, dumps, is_equal=is_equal)
    asynchronous = sum(not insert.is_sync for insert in acknowledged)
    details: dict[str, Any] = {
        "inserts": len(ledger.inserts),
        "acknowledged": len(acknowledged),
        "asynchronous": asynchronous,
        "sights": len(sights) + len(dumps),
        "vacuous": not acknowledged,
    }
    return verdict(
        NAME,
        MODEL,
        ledger.witnesses,
        details,
        judged=len(ledger.inserts) and len(sights) + len(dumps),
        valid=f"{len(acknowledged)} acknowledged inserts ({asynchronous} asynchronous) are whole in "
        f"{len(sights)} reads and {len(dumps)} final states that must show them",
    )


def gone_everywhere(
    history: History, dumps: Sequence[Operation], *, synchronous: str = "once"
) -> Iterator[Witness]:
    """For `kept`: acknowledged synchronous inserts of which no node holds anything."""
    held = {row for dump in dumps for row in _sight(dump).rows}
    for operation in history.select(f="insert", outcome="ok"):
        rows = frozenset(_rows(operation))
        if any(space == synchronous for space, _ in rows) and not rows & held:
            summary = (
                f"{_named(rows)}, acknowledged to process {operation.process}, are on no node in the end"
            )
            yield witness("lost-row", summary, [operation, *dumps])


def _rows(operation: Operation) -> Iterator[Row]:
    """The rows that an insert writes, or a read shows; of a dump the keys of all spaces that have numbers for keys.

    Raises ModelError for an insert or a read with something else.
    """
    spaces = operation.value.get("spaces") if isinstance(operation.value, Mapping) else None
    if operation.f != "dump" and not (
        isinstance(spaces, Mapping) and all(map(_are_numbers, spaces.values()))
    ):
        came = value_words(operation.value, 60)
        expected = "the rows as {spaces: {space: [whole number, …]}}"
        raise ModelError(expected=expected, came=came, index=operation.invoke_index)
    for space, keys in spaces.items() if isinstance(spaces, Mapping) else ():
        for key in keys if isinstance(keys, list | tuple) else ():
            match key:
                case int():
                    yield space, key
                case [int() as first, *_]:
                    yield space, first


def _are_numbers(keys: Any) -> bool:
    return isinstance(keys, list | tuple) and all(type(key) is int for key in keys)


def _sight(operation: Operation) -> Sight:
    value = operation.value if isinstance(operation.value, Mapping) else {}
    spaces = value.get("spaces") if operation.f == "read" else None
    asked = frozenset(spaces) if isinstance(spaces, Mapping) else None
    bounds = low, high = value.get("from"), value.get("below")
    if any(bound is not None and type(bound) is not int for bound in bounds):
        came = value_words(list(bounds), 60)
        raise ModelError(expected="whole numbers as from and below", came=came, index=operation.invoke_index)
    return Sight(operation, frozenset(_rows(operation)), low, high, asked)


def _named(rows: frozenset[Row]) -> str:
    space, key = min(rows)
    return f"rows {key} of {space}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")


def _where(sight: Sight) -> str:
    operation = sight.operation
    return f"the {operation.f} at {operation.node or '?'} (event {operation.complete_index})"


def _possible(ledger: Ledger, sight: Sight) -> None:
    """Every row was asked for, did not surely fail, and is shown with all rows of its transaction."""
    named: set[int] = set()
    for row in sorted(sight.rows):
        insert = ledger.shown_of(row, sight)
        if insert is None:
            ledger.add(
                "never-written",
                f"{_where(sight)} shows row {row[1]} of {row[0]}, which no client wrote",
                sight,
            )
            continue
        if insert.operation.invoke_index in named:
            continue
        named.add(insert.operation.invoke_index)
        failed = insert.operation.type == "fail" and (insert.must_fail or not sight.is_dirty)
        if failed:
            words = f"{_where(sight)} shows {_named(insert.rows)}, whose insert had failed ({insert.operation.error})"
            ledger.add("failed-yet-seen", words, sight, insert)
        elif missing := sight.missing(insert):
            words = f"{_where(sight)} shows a part of an insert: without {_named(missing)}"
            ledger.add("torn-transaction", words, sight, insert)


def _first_missing(sight: Sight, inserts: Sequence[Insert]) -> Insert | None:
    """The first of these inserts, by their acknowledgements, that the sight does not show."""
    return next((insert for insert in inserts if not insert.rows & sight.rows), None)


def _in_order(ledger: Ledger, sight: Sight, acknowledged: Sequence[Insert]) -> None:
    missing = _first_missing(sight, acknowledged)
    if missing is None:
        return
    for row in sorted(sight.rows):
        insert = ledger.shown_of(row, sight)
        if (
            insert is not None
            and ledger.is_ordered(insert)
            and insert.operation.invoke_index > missing.acknowledged_at
        ):
            words = (
                f"{_where(sight)} shows {_named(insert.rows)} without {_named(missing.rows)}, which were "
                "acknowledged before the former were asked for"
            )
            ledger.add("later-without-earlier", words, sight, missing, insert)
            return


def _fresh(ledger: Ledger, sight: Sight, acknowledged: Sequence[Insert]) -> None:
    missing = _first_missing(sight, acknowledged)
    if missing is not None and missing.acknowledged_at < sight.operation.invoke_index:
        words = f"{_where(sight)} lacks {_named(missing.rows)}, acknowledged before it was asked"
        ledger.add("stale", words, sight, missing)


def _forward(ledger: Ledger, sights: Sequence[Sight], dumps: Sequence[Sight]) -> None:
    """A node keeps showing every row that it has shown."""
    by_node: dict[str, list[Sight]] = {}
    for sight in (*sights, *dumps):
        by_node.setdefault(answered_by(ledger.history, sight.operation), []).append(sight)
    for own in by_node.values():
        ended = sorted(own, key=lambda sight: sight.operation.complete_index or 0)
        ranges = {sight.range: sight for sight in own}
        beside = {
            name: [other for other in ranges.values() if other.meets(one)] for name, one in ranges.items()
        }
        shown_in: dict[Range, dict[Row, Sight]] = {name: {} for name in ranges}
        place = 0
        for sight in sorted(own, key=lambda sight: sight.operation.invoke_index):
            # Those that were over before this one was asked. It never runs past the last: this one ends later itself.
            while (ended[place].operation.complete_index or 0) < sight.operation.invoke_index:
                before = ended[place]
                is_within = all(map(before.covers, before.rows))
                for other in beside[before.range] if is_within else ranges.values():
                    is_whole = is_within and other.range == before.range
                    rows = before.rows if is_whole else filter(other.covers, before.rows)
                    shown_in[other.range].update(dict.fromkeys(rows, before))
                place += 1
            shown = shown_in[sight.range]
            lost = next((row for row in shown if row not in sight.rows), None)
            if lost is not None:
                words = (
                    f"{_where(sight)} lacks row {lost[1]} of {lost[0]}, which {_where(shown[lost])} had shown"
                )
                insert = ledger.shown_of(lost, sight)
                ledger.add("gone-back", words, sight, *filter(None, [insert]))
                break


def _at_the_end(
    ledger: Ledger, acknowledged: Sequence[Insert], dumps: Sequence[Sight], *, is_equal: bool
) -> None:
    is_complete = caught_up(ledger.history)
    for dump in dumps:
        if is_equal and is_complete(dump.operation):
            lost = next(
                (
                    insert
                    for insert in acknowledged
                    if ledger.is_ordered(insert) and not insert.rows <= dump.rows
                ),
                None,
            )
            if lost is not None:
                words = f"{_where(dump)} lacks {_named(lost.rows)}, which had been acknowledged"
                ledger.add("lost-row", words, dump, lost)
        server = answered_by(ledger.history, dump.operation)
        for insert in acknowledged:
            if insert.is_sync or insert.rows <= dump.rows or insert.operation.node != dump.operation.node:
                continue
            if answered_by(ledger.history, insert.operation) == server:
                words = f"{_where(dump)} lacks {_named(insert.rows)}, which that node itself had acknowledged"
                ledger.add("lost-where-answered", words, dump, insert)
                break
