"""The content of a run's folder, read for the report in one pass and in bounded memory.

The content of a file never raises here: a missing, torn or garbled file gives its readable part and a sentence in
`Material.notes`, which the page shows. For this reason, and because of memory, it does not use `jsonl.read`, which
rightly refuses an inconsistent history; the page still shows the lines before the bad one. A history of millions of
operations is kept as columns (`Load`). Only items that the page draws one by one are kept in full: faults, node
states, and the operations of the witnesses with their neighbours on the same key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy
from numpy.typing import NDArray

from checkers.history import Event, Header, History, HistoryError, Operation, jsonl, segments
from checkers.history.columns import Columns
from checkers.history.errors import NOT_JSON
from checkers.history.operation import FASTEST_NS, paired
from checkers.history.stored import StoredEvents, StoredOperations
from harness.judge.causes import ranked
from harness.pages.json_door import Json, as_list, as_time_ns, as_whole
from harness.pages.run_columns import Gathered, RunColumns, of_completion, run_columns
from harness.results.run_folder import in_todays_words

WITNESSES_DRAWN = 8
NEIGHBOURS_KEPT = 5_000
MONITOR_LINES_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class Load:
    """All client operations as columns, in the order of invocation; `complete`: the index of the completion event."""

    start_ns: NDArray[numpy.int64]
    end_ns: NDArray[numpy.int64]
    complete: NDArray[numpy.int64]
    outcome: NDArray[numpy.int8]
    node: NDArray[numpy.int32]
    writes: NDArray[numpy.bool_]
    """True for every operation that is not a read: if it was acknowledged, it changed something."""
    nodes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start_ns)

    def count(self, outcome: int) -> int:
        return int((self.outcome == outcome).sum())


@dataclass(slots=True)
class Material:
    """All data of a report."""

    folder: Path
    plan: Json
    verdict: Json
    header: Header
    load: Load
    columns: RunColumns
    """All operations with their places in history.jsonl, those of the final phase included."""
    operations: dict[int, Operation]
    """By history index, of the invocation and of the completion: the operations that witnesses name."""
    neighbours: tuple[Operation, ...]
    """Other operations on the keys of the witnesses, near them in time."""
    nemesis: tuple[Event, ...]
    monitor: Iterable[Event]
    harness: tuple[Event, ...]
    end_ns: int
    lines: int
    notes: list[str] = field(default_factory=list)
    stories: dict[str, Any] = field(default_factory=dict)
    """By node: a cache that `harness.pages.node_states.story_of` fills."""

    @property
    def has_times(self) -> bool:
        """Whether the record's times are those of a clock, not places in a file."""
        return not self.lines or self.end_ns > FASTEST_NS * self.lines

    @property
    def nodes(self) -> tuple[str, ...]:
        """Node names, from the header if it has them, else in order of appearance."""
        met = [event.node for event in self.monitor if event.node] + [
            node for node in self.load.nodes if node
        ]
        return self.header.nodes or tuple(dict.fromkeys(met))


@dataclass(slots=True)
class _Wanted:
    """Which operations to keep in full: those that a witness names, and those on its key around its time."""

    indexes: frozenset[int]
    places: tuple[tuple[str, int, int], ...]

    def names(self, operation: Operation) -> bool:
        return not self.indexes.isdisjoint(operation.events)

    def named(self, columns: Columns) -> NDArray[numpy.bool_]:
        """`names` for all operations."""
        indexes = numpy.array(sorted(self.indexes), dtype=numpy.int64)
        return numpy.isin(columns.invoke, indexes) | numpy.isin(columns.complete, indexes)

    def near(self, columns: Columns) -> NDArray[numpy.bool_]:
        """`is_near` for all operations."""
        is_near = numpy.zeros(len(columns), dtype=numpy.bool_)
        ends_ns = numpy.maximum(columns.complete_ns, columns.invoke_ns)
        for key, first, last in self.places:
            on_key = columns.key == columns.code(key)
            is_near |= on_key & (columns.invoke_ns <= last) & (ends_ns >= first)
        return is_near

    def is_near(self, operation: Operation) -> bool:
        start_ns, end_ns = operation.invoke_ns, operation.complete_ns or operation.invoke_ns
        return any(
            operation.key == key and start_ns <= last and end_ns >= first for key, first, last in self.places
        )


def read(folder: Path, verdict: Json | None = None, history: History | None = None) -> Material:
    """All data of the page, except the nodes' logs, of which it needs a part (`node_logs`).

    `verdict`: used in place of the one in the folder. `history`: that of the folder, if it was read already.
    """
    notes: list[str] = []
    plan = _document(folder / "plan.json", notes)
    verdict = in_todays_words(_document(folder / "verdict.json", notes)) if verdict is None else verdict
    gathering = _Gathering(_wanted(verdict))
    path = folder / "history.jsonl"
    stored = _stored(path) if history is None else history
    if stored is None or not gathering.take_columns(stored):
        _gather(path, gathering, notes)
    if gathering.out_of_time:
        notes.append(
            f"{path.name}: {gathering.out_of_time:,} lines are not shown: expected times since the run's beginning."
        )
    if gathering.unkept:
        notes.append(
            f"{path.name}: the last {gathering.unkept:,} lines of nemesis, monitor and harness are not shown: the "
            f"states of nodes are those of the {MONITOR_LINES_KEPT:,} lines before."
        )
    material = gathering.material(folder, plan, verdict)
    material.notes = notes
    return material


def _stored(path: Path) -> History | None:
    """The history if it is a large record that reads without an error, else None."""
    try:
        return jsonl.read_stored(path)
    except (OSError, HistoryError):
        return None


def witness_indexes(witness: Json) -> tuple[int, ...]:
    return tuple(index for index in map(as_whole, as_list(witness.get("events"))) if index is not None)


def _wanted(verdict: Json) -> _Wanted:
    indexes: set[int] = set()
    places: list[tuple[str, int, int]] = []
    for sighted in ranked(verdict)[:WITNESSES_DRAWN]:
        witness = sighted.witness
        indexes.update(witness_indexes(witness))
        start_ns, end_ns = as_time_ns(witness.get("start_ns")), as_time_ns(witness.get("end_ns"))
        if start_ns is not None and end_ns is not None and isinstance(witness.get("key"), str):
            margin_ns = (end_ns - start_ns) // 4 + 1_000_000
            places.append((witness["key"], start_ns - margin_ns, end_ns + margin_ns))
    return _Wanted(frozenset(indexes), tuple(places))


def _document(path: Path, notes: list[str]) -> Json:
    try:
        document = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        notes.append(f"{path.name} is missing.")
    except (OSError, *NOT_JSON) as problem:
        notes.append(f"{path.name} cannot be read: {problem}.")
    else:
        if isinstance(document, dict):
            return document
        notes.append(f"{path.name} is not a JSON object.")
    return {}


def _gather(path: Path, gathering: _Gathering, notes: list[str]) -> None:
    """Takes the lines of a history up to the first unreadable one; `notes` get its place and the reason."""
    decode, number, line, at = msgspec.json.Decoder(Event).decode, 0, b"", 0
    try:
        with segments.stream(path) as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    gathering.header = _header(line, notes)
                else:
                    gathering.take(decode(line), at)
                at += len(line)
    except FileNotFoundError:
        notes.append(f"{path.name} is missing: no operations can be shown.")
    except OSError as problem:
        notes.append(f"{path.name} cannot be read: {problem.strerror}.")
    except HistoryError as problem:
        notes.append(f"{path.name} cannot be read further: {problem}; what stands before it is shown.")
    except NOT_JSON as problem:
        torn = not line.endswith(b"\n")
        damage = "is torn (the run was cut short)" if torn else f"cannot be read ({problem})"
        notes.append(f"{path.name}: line {number:,} {damage}; what stands before it is shown.")
    else:
        if number < 2:
            notes.append(f"{path.name} is empty: nothing was recorded.")


def _header(line: bytes, notes: list[str]) -> Header:
    try:
        return jsonl.parse_header(line)
    except HistoryError as refusal:
        notes.append(f"history.jsonl: {refusal}.")
        return Header()


def _load(columns: RunColumns) -> Load:
    """The operations before the final phase."""
    count = int((~columns.final).sum())
    is_first = not columns.final[:count].any()  # as a rule: nothing needs to be copied then
    chosen = slice(count) if is_first else numpy.flatnonzero(~columns.final)
    return Load(
        start_ns=columns.start_ns[chosen],
        end_ns=columns.end_ns[chosen],
        complete=columns.complete[chosen],
        outcome=columns.outcome[chosen],
        node=columns.node[chosen],
        writes=columns.writes[chosen],
        nodes=columns.nodes,
    )


class _Monitor:
    """The events of the monitor. Reports of nodes are many, so each event is made when it is iterated over."""

    def __init__(self, history: History) -> None:
        self._states = history.states
        self._rare = tuple(history.told("monitor"))

    def __iter__(self) -> Iterator[Event]:
        reports = (
            Event(
                index=state.index,
                time_ns=state.time_ns,
                type="info",
                process="monitor",
                f="state",
                node=state.node,
                value=state.status,
            )
            for state in self._states
        )
        return merge(self._rare, reports, key=attrgetter("index"))


class _Gathering:
    """Takes a history line by line."""

    def __init__(self, wanted: _Wanted) -> None:
        self.wanted = wanted
        self.header = Header()
        self.open: dict[int, tuple[Event, int]] = {}
        self.columns: Gathered | RunColumns = Gathered()
        self.operations: dict[int, Operation] = {}
        self.neighbours: list[Operation] = []
        self.events: dict[str, list[Event]] = {"nemesis": [], "monitor": [], "harness": []}
        self.monitor: _Monitor | None = None
        """The monitor's events of a stored record, in place of those in `events`."""
        self.last_ns = 0
        self.lines = 0
        self.out_of_time = 0
        """Lines that are left out, because their times are no times of a run."""
        self.unkept = 0
        """Lines that are left out, because there are so many of their kind."""

    def take_columns(self, history: History) -> bool:
        """Take a history that was read as columns. False if it was not, or if its lines must be read one by one."""
        operations, events = history.operations, history.events
        if not (isinstance(operations, StoredOperations) and isinstance(events, StoredEvents)):
            return False
        last_ns = events[len(events) - 1].time_ns if events else 0
        if events.lines is None or history.torn is not None or as_time_ns(last_ns) is None:
            return False
        columns = operations.columns
        self.header, self.lines, self.last_ns = history.header, len(events), last_ns
        self.events["nemesis"] += history.told("nemesis")
        used = history.told("harness", "used")
        self.events["harness"] += merge(history.told("harness"), used, key=attrgetter("index"))
        self.monitor = _Monitor(history)
        is_named = self.wanted.named(columns)
        for operation in operations.at(of_completion(columns, numpy.flatnonzero(is_named))):
            self.operations.update(dict.fromkeys(operation.events, operation))
        near = numpy.flatnonzero(self.wanted.near(columns) & ~is_named)
        self.neighbours += operations.at(of_completion(columns, near)[:NEIGHBOURS_KEPT])
        self.columns = run_columns(columns, events.lines)
        return True

    def _take_other(self, event: Event) -> None:
        events = self.events.get(str(event.process))
        if events is None or event.f == "skipped":
            return
        if len(events) < MONITOR_LINES_KEPT:
            events.append(event)
        else:
            self.unkept += 1

    def take(self, event: Event, at: int) -> None:
        """`at`: the place of its line in the file, in bytes."""
        if as_time_ns(event.time_ns) is None:
            self.out_of_time += 1
            return
        self.lines += 1
        self.last_ns = max(self.last_ns, event.time_ns)
        match event:
            case Event(process=str()):
                self._take_other(event)
            case Event(process=int() as process, type="invoke"):
                if process in self.open:
                    self._end(*self.open.pop(process), None, -1)
                self.open[process] = event, at
            case Event(process=int() as process):
                begun = self.open.pop(process, None)
                if begun is not None:
                    self._end(*begun, event, at)

    def _end(self, invoke: Event, at: int, completion: Event | None, end_at: int) -> None:
        operation = paired(invoke, completion)
        assert isinstance(self.columns, Gathered)
        self.columns.take(operation, at, end_at)
        if self.wanted.names(operation):
            self.operations.update(dict.fromkeys(operation.events, operation))
        elif self.wanted.is_near(operation) and len(self.neighbours) < NEIGHBOURS_KEPT:
            self.neighbours.append(operation)

    def material(self, folder: Path, plan: Json, verdict: Json) -> Material:
        for invoke, at in self.open.values():
            self._end(invoke, at, None, -1)
        columns = self.columns.columns() if isinstance(self.columns, Gathered) else self.columns
        return Material(
            folder=folder,
            plan=plan,
            verdict=verdict,
            header=self.header,
            load=_load(columns),
            columns=columns,
            operations=self.operations,
            neighbours=tuple(self.neighbours),
            nemesis=tuple(self.events["nemesis"]),
            monitor=tuple(self.events["monitor"]) if self.monitor is None else self.monitor,
            harness=tuple(self.events["harness"]),
            end_ns=self.last_ns,
            lines=self.lines,
        )
