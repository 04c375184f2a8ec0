"""The queues of a master over its log, as pictures need them, and about when each record was written.

Logs have no times. Three things say when a master was at a record: clients (it made their transaction after they asked,
and executed that before they had the answer), the lines that it logged at splits and recoveries, and its reports to
the monitor. Between two such records time is spread evenly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from checkers.history.errors import NOT_JSON
from checkers.history.faults import ENDS_PROCESSES
from checkers.history.history import History
from harness.systems.txlog.logs import Placed
from nodes.txlog.refs import Ref, refs_of

LINES = "log.jsonl"
LOGGED = {"split": "missing", "recovering": "epoch", "recovered": "epoch"}
"""Kinds of records that a line of the same word announces, and the field that says which."""


@dataclass(slots=True)
class Queues:
    """The queues behind the applied records. `executed`: how many entries the state has, from the first."""

    synced: list[Ref] = field(default_factory=list)
    incoming: dict[str, Ref] = field(default_factory=dict)
    executed: int = 0
    counter: int = 0
    missing: tuple[str, ...] = ()
    is_recovering: bool = False

    def apply(self, record: Placed) -> None:
        match [record.kind, *record.fields]:
            case ["made", counter, ts, name, _]:
                self.counter = counter
                self.incoming[name] = Ref(ts, name, record.master)
            case ["heard", _, counter, _, refs]:
                self.counter = counter
                self.incoming.update((ref.id, ref) for ref in refs_of(refs))
            case ["added", index, refs, *_]:
                self._append(index, refs_of(refs))
            case ["caught-up", index, refs, _]:
                self._append(index, refs_of(refs))
                self.counter = max(self.counter, *(ref.ts for ref in refs_of(refs)), 0)
            case ["executed", index, *_] | ["restored", index, *_]:
                self.executed = index
            case ["split", missing, _]:
                self.missing = tuple(missing)
            case ["rejoined", *_]:
                self.missing = ()
            case ["recovering", *_]:
                self.is_recovering = True
            case ["thawed"]:
                self.is_recovering = False
            case ["recovered", _, common, _, _, refs, queue, counter, *_]:
                self.missing, self.is_recovering, self.counter = (), False, counter
                self._append(common, refs_of(refs))
                self.incoming = {ref.id: ref for ref in refs_of(queue)}

    def _append(self, index: int, refs: Sequence[Ref]) -> None:
        self.synced[index:] = refs
        for ref in refs:
            self.incoming.pop(ref.id, None)

    def copy(self) -> Queues:
        return replace(self, synced=list(self.synced), incoming=dict(self.incoming))

    @property
    def waiting(self) -> list[Ref]:
        return sorted(self.incoming.values(), key=lambda ref: (ref.ts, ref.id))


class Row(NamedTuple):
    """The queues behind a record, in numbers."""

    synced: int
    incoming: int
    executed: int
    counter: int
    missing: tuple[str, ...]
    is_recovering: bool

    @property
    def is_apart(self) -> bool:
        return bool(self.missing) or self.is_recovering


NOTHING = Row(0, 0, 0, 0, (), False)


def rows_of(records: Sequence[Placed]) -> list[Row]:
    """One for each record, and `NOTHING` in front of the first: its index is the place of the record."""
    queues = Queues()
    rows = [NOTHING]
    for record in records:
        queues.apply(record)
        rows.append(
            Row(
                len(queues.synced),
                len(queues.incoming),
                queues.executed,
                queues.counter,
                queues.missing,
                queues.is_recovering,
            )
        )
    return rows


def at(records: Sequence[Placed], places: Collection[int]) -> dict[int, Queues]:
    """The queues behind the records of these places; 0: before the first."""
    by_place: dict[int, Queues] = {}
    queues = Queues()
    for place in range(max(places, default=0) + 1):
        if place:
            queues.apply(records[place - 1])
        if place in places:
            by_place[place] = queues.copy()
    return by_place


# ---- times


def times_ns(records: Sequence[Placed], rows: Sequence[Row], history: History, lines: bytes) -> list[int]:
    """About when each record was written: nanoseconds of the run, never falling. `rows`: by `rows_of`."""
    known: dict[int, int] = {}
    # The order is the precedence: a later source overrides an earlier one.
    for place, time_ns in (
        *_by_monitor(records, rows, history),
        *_by_clients(records, history),
        *_by_lines(records, lines),
        *_by_faults(records, history),
    ):
        known[place] = time_ns
    return _spread(known, len(records))


def _spread(known: Mapping[int, int], count: int) -> list[int]:
    """`known`: place, counted from 1, → time; a time below an earlier one is that one."""
    times: list[int] = []
    before, before_ns = 0, 0
    for place in sorted(place for place in known if 1 <= place <= count):
        time_ns = max(known[place], before_ns)
        step = place - before
        start_ns = before_ns if times else time_ns
        times += [start_ns + (time_ns - start_ns) * number // step for number in range(1, step + 1)]
        before, before_ns = place, time_ns
    return times + [before_ns] * (count - before)


def _by_clients(records: Sequence[Placed], history: History) -> Iterator[tuple[int, int]]:
    asked = {op.transaction: op for op in history.operations if op.transaction is not None}
    executed: set[str] = set()
    for record in records:
        match [record.kind, *record.fields]:
            case ["made", _, _, name, _] if name in asked:
                yield record.place, asked[name].invoke_ns
            case ["executed", _, name, _] if name in asked and name not in executed:
                executed.add(name)
                operation = asked[name]
                if operation.node == record.master and operation.type == "ok" and operation.complete_ns:
                    yield record.place, operation.complete_ns


def _by_lines(records: Sequence[Placed], lines: bytes) -> Iterator[tuple[int, int]]:
    """Lines and records have the same order. A crash can lose a record and keep its line."""
    announced = [record for record in records if record.kind in LOGGED]
    first = 0
    for line in lines.splitlines():
        fields = _line(line)
        word, time_ns = fields.get("message"), fields.get("time_ns")
        if not isinstance(word, str) or word not in LOGGED or not isinstance(time_ns, int):
            continue
        first_field = fields.get(LOGGED[word])
        for number in range(first, len(announced)):
            record = announced[number]
            if record.kind == word and record.fields and record.fields[0] == first_field:
                yield record.place, time_ns
                first = number + 1
                break


def _by_faults(records: Sequence[Placed], history: History) -> Iterator[tuple[int, int]]:
    """A process ends with the fault that kills it, and the next one starts when that is healed."""
    for record in records:
        if record.kind != "life" or record.life == 1:
            continue
        reports = (state for state in history.states if state.node == record.master)
        seen_ns = next(
            (report.time_ns for report in reports if report.status.get("life") == record.life), None
        )
        healed = [
            span
            for span in history.faults
            if span.does in ENDS_PROCESSES
            and record.master in span.nodes
            and span.heal_asked_ns is not None
            and (seen_ns is None or span.heal_asked_ns <= seen_ns)
        ]
        if healed:
            last = max(healed, key=lambda span: span.heal_asked_ns or 0)
            if last.first_effect_ns is not None:
                yield record.place - 1, last.first_effect_ns
            yield record.place, last.heal_asked_ns or 0


def _line(line: bytes) -> Mapping[str, Any]:
    try:
        fields = msgspec.json.decode(line)
    except NOT_JSON:
        return {}
    return fields if isinstance(fields, dict) else {}


def _by_monitor(
    records: Sequence[Placed], rows: Sequence[Row], history: History
) -> Iterator[tuple[int, int]]:
    """For each report the last record behind which the queues are the same."""
    last = {
        str((record.life, row.counter, row.synced, row.executed)): record.place
        for record, row in zip(records, rows[1:], strict=True)
    }
    for state in history.states:
        if records and state.node == records[0].master:
            status = state.status
            key = str(tuple(status.get(name) for name in ("life", "counter", "synchronised", "executed")))
            if (place := last.pop(key, None)) is not None:  # later reports say only that nothing has changed
                yield place, state.time_ns


def place_at(times: Sequence[int], time_ns: int) -> int:
    """How many records were written before this time."""
    return bisect_left(times, time_ns)
