"""A whole run as recorded: the operations of the clients, the active faults, the observations of the monitor.

Built from events by `History.of`, which pairs them. Pairing is strict, because a history that does not add up
must not be judged: a process has at most one open operation, and a completion needs its invocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.faults import FaultSpan, fault_spans
from checkers.history.operation import Event, Operation, Outcome, Phase, answers, paired
from checkers.history.others import Others, is_frequent
from checkers.history.start import PLAIN_START, Start
from checkers.history.stored import StoredEvents, StoredOperations, without_collections
from checkers.history.values import value_words

if TYPE_CHECKING:
    from networkx import DiGraph

    from checkers.history.columns import Columns

MOST = 1 << 63
FORMAT = "qsync-history"
VERSION = 1
OBSERVING = "refusals-observe"
"""In the header of a history of another notation: its refusals are those of our nodes."""
TIMELESS = "no-real-time"
"""In the header of a history that has the order of each session and no order between them: its indexes say nothing
about real time."""


Origin = Literal["ours", "parquet", "edn", "json", "log", "text", "binary", "folder"]
"""The kind of file that a history came from: the first two are written by this project."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `owner` is the fixed owner of the run (None: it may change); `effects` says what operations do
    (`checkers.history.declared`); `extra` keeps unknown fields.
    """

    system: str = ""
    cluster: str = ""
    workload: str = ""
    nodes: tuple[str, ...] = ()
    quorum: int | None = None
    owner: str | None = None
    heartbeat_ns: int | None = None
    seed: int | str | None = None
    effects: dict[str, str] = {}
    extra: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class State:
    """A node's report of itself to the monitor; `status["up"]` is False if it did not answer."""

    index: int
    time_ns: int
    node: str
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Crash:
    """A node that ended although no fault ended it. `time_ns`: when its end was noticed."""

    index: int
    time_ns: int
    node: str
    how: str
    last_words: tuple[str, ...] = ()
    """The last lines that it printed."""
    out_of_memory: str = ""
    """The kernel's words, if the kernel ended the node for want of memory."""


@dataclass(frozen=True, slots=True)
class Stall:
    """The harness itself stood still for so long."""

    index: int
    time_ns: int
    stalled_ms: float


class _CutAsked(msgspec.Struct):
    cut: str


class _CutEnded(_CutAsked):
    state: str
    named: str | None = None


_TOLD: Final = {
    ("harness", "settled"): bool,
    ("operator", "cut-asked"): _CutAsked,
    ("operator", "cut-ended"): _CutEnded,
}
"""(process, f) → the form of the values that a verdict stands on, of lines that have no reader of their own below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The record of one run, paired. `torn`: the loss at the end of the file, None if there is none. `start`: the
    objects' state before the run.
    """

    header: Header
    events: Sequence[Event]
    operations: Sequence[Operation]
    faults: tuple[FaultSpan, ...] = ()
    states: tuple[State, ...] = ()
    crashes: tuple[Crash, ...] = ()
    stalls: tuple[Stall, ...] = ()
    told_members: tuple[Event, ...] = ()
    """Lines with the members from then on: see `checkers.history.members`."""
    torn: str | None = None
    origin: Origin = "ours"
    start: Start = PLAIN_START
    made_columns: Columns | None = field(default=None, init=False, repr=False, compare=False)
    """Kept by `columns`."""

    @classmethod
    def of(
        cls,
        header: Header,
        events: Sequence[Event],
        *,
        operations: StoredOperations | None = None,
        torn: str | None = None,
        first_line: int = 2,
    ) -> History:
        """Pair `events` (in index order). `first_line` is the file's line of event 0, for messages.

        `operations`: those of events that were read, and paired, as columns. Raises HistoryError if they do not add up.
        """
        others = _others(events)
        for (process, f), told in _TOLD.items():
            for event in _of_process(others, process, (f,)):
                try:
                    msgspec.convert(event.value, told)
                except msgspec.ValidationError as error:
                    raise _not_ours(event, first_line, "a value of its form", str(error)) from error
        return cls(
            header=header,
            events=events if isinstance(events, StoredEvents) else tuple(events),
            operations=operations_of(events, first_line) if operations is None else operations,
            faults=fault_spans([*_of_process(others, "nemesis", ())], first_line),
            states=tuple(_state(event, first_line) for event in _of_process(others, "monitor", ("state",))),
            crashes=tuple(_crash(event, first_line) for event in _of_process(others, "monitor", ("crash",))),
            stalls=tuple(_stall(event, first_line) for event in _of_process(others, "harness", ("stall",))),
            told_members=tuple(_of_process(others, "harness", ("members",))),
            torn=torn,
        )

    @property
    def is_foreign(self) -> bool:
        """Whether another tool wrote it, about a store of which we know nothing."""
        return self.origin not in ("ours", "parquet")

    @property
    def has_real_time(self) -> bool:
        """Whether the order of events is that of real time; if not, it is that of each process alone."""
        return TIMELESS not in self.header.extra

    @property
    def failed_cas_observes(self) -> bool:
        """Whether a refusal observed the state: a cas a value other than the expected one, a dequeue no element.

        Our nodes promise that what they compared with was confirmed. Other stores may not.
        """
        return not self.is_foreign or OBSERVING in self.header.extra

    def starting_at(self, start: Start | Any) -> History:
        """The same history of objects that began so: a value of JSON for all keys, or a `Start`."""
        return replace(self, start=start if isinstance(start, Start) else Start(value=start))

    @property
    def others(self) -> Iterable[Event]:
        """The events that are no client's: of the nemesis, the monitor, the harness and the operator."""
        return _others(self.events)

    def told(self, process: str, *names: str) -> Iterator[Event]:
        """The events of this process with one of these names (f), in order. Without names: all that are not frequent
        (`others.is_frequent`).
        """
        return _of_process(_others(self.events), process, names)

    @property
    def columns(self) -> Columns:
        """The operations as columns: those that they were read as, or made once.

        Raises HistoryError of a time or a process beyond 64 bits.
        """
        if isinstance(self.operations, StoredOperations):
            return self.operations.columns
        if self.made_columns is None:
            from checkers.history.columns import of_operations

            object.__setattr__(self, "made_columns", of_operations(self.operations))
        assert self.made_columns is not None
        return self.made_columns

    def at(self, places: Any) -> Sequence[Operation]:
        """The operations at these places (an array of numpy). No other objects are made."""
        if isinstance(self.operations, StoredOperations):
            return self.operations.at(places)
        return [self.operations[place] for place in places.tolist()]

    @property
    def names(self) -> set[str]:
        """The f of all operations."""
        return self.columns.names

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many operations ended in which way."""
        return self.columns.outcomes

    @property
    def has_finals(self) -> bool:
        """Whether some operation is of the final phase."""
        return bool(self.columns.is_final.any())

    @property
    def settled(self) -> bool | None:
        """Whether all nodes were quiet and equal before the harness asked for the dumps; None: not recorded."""
        reports = [event.value for event in self.told("harness", "settled")]
        return reports[-1] is True if reports else None

    @property
    def dumps(self) -> tuple[Operation, ...]:
        """The dumps of each node at the end: everything it holds."""
        return self.select(f="dump", phase="final")

    def keys(self, *, f: str | Iterable[str] | None = None, phase: Phase | None = None) -> set[str | None]:
        """The keys of such operations."""
        return self.columns.keys(self.columns.places(_names(f), None, phase, None))

    def only(self, keys: Container[str | None]) -> History:
        """The history with the operations on these keys alone. Its lines keep their numbers."""
        return replace(self, operations=self.select(keys=keys))

    def select(
        self,
        *,
        f: str | Iterable[str] | None = None,
        outcome: Outcome | None = None,
        phase: Phase | None = None,
        node: str | None = None,
        keys: Container[str | None] | None = None,
    ) -> tuple[Operation, ...]:
        """The operations that match all arguments (of `keys` one), in order of invocation."""
        columns = self.columns
        places = columns.places(_names(f), outcome, phase, node)
        return tuple(self.at(places if keys is None else _under(keys, columns, places)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The operations as a stream of Arrow, for polars, pandas, DuckDB, pyarrow: see `checkers.history.frames`."""
        from checkers.history import frames

        same = {"refusal_observed": self.failed_cas_observes, "real_time": self.has_real_time}
        stream = frames.reader(len(self.operations), self.at, same)
        return stream.__arrow_c_stream__(requested_schema)

    def happened_before(self, operations: Sequence[Operation] | None = None) -> DiGraph:
        """The order of real time, transitively reduced: a graph of networkx over these operations, or over all.

        `checkers.history.happened_before` says what its nodes and edges hold. ValueError if they are too many, or if
        the history has no real time.
        """
        if not self.has_real_time:
            raise ValueError(
                "expected a history with real time, got one that has the order of each session alone"
            )
        from checkers.history.happened_before import happened_before

        return happened_before(self.operations if operations is None else operations)


def _names(f: str | Iterable[str] | None) -> set[str] | None:
    return None if f is None else {f} if isinstance(f, str) else set(f)


def _under(keys: Container[str | None], columns: Columns, places: Any) -> Any:
    """The places whose operations have one of the keys."""
    import numpy

    return places[numpy.array([word in keys for word in columns.words])[columns.key[places]]]


def _others(events: Sequence[Event]) -> Others | list[Event]:
    if isinstance(events, StoredEvents):
        return events.others
    return [event for event in events if not isinstance(event.process, int)]


def _of_process(others: Others | list[Event], process: str, names: Collection[str]) -> Iterator[Event]:
    if isinstance(others, Others):
        return (event for event in others.named(names) if event.process == process)
    return (
        event
        for event in others
        if event.process == process and (event.f in names if names else not is_frequent(event))
    )


def by_key(operations: Iterable[Operation]) -> dict[str | None, list[Operation]]:
    """Operations in their order under the key that they are about."""
    groups: dict[str | None, list[Operation]] = {}
    for operation in operations:
        groups.setdefault(operation.key, []).append(operation)
    return groups


def operations_of(events: Iterable[Event], first_line: int) -> tuple[Operation, ...]:
    """The operations of events in their order. Raises HistoryError if they do not add up."""
    with without_collections():
        return _operations(events, first_line)


def _operations(events: Iterable[Event], first_line: int) -> tuple[Operation, ...]:
    """The operations of these events. Keeps the events of open operations alone: there may be millions of others."""
    made: list[Operation | None] = []
    running: dict[int, tuple[int, Event]] = {}
    for event in events:
        process = event.process
        if not isinstance(process, int):
            continue
        if process >= MOST or process < -MOST or event.time_ns >= MOST:
            raise _too_large(event, first_line)
        if event.type == "invoke":
            if process in running:
                raise _open_twice(running[process][1], event, first_line)
            running[process] = len(made), event
            made.append(None)
        else:
            opened = running.pop(process, None)
            if opened is None:
                raise _nothing_open(event, first_line)
            place, invoke = opened
            _same_question(invoke, event, first_line)
            made[place] = paired(invoke, event)
    for place, invoke in running.values():
        made[place] = paired(invoke, None)
    return tuple(operation for operation in made if operation is not None)


def _too_large(event: Event, first_line: int) -> HistoryError:
    return HistoryError(
        expected="a time and a process that 64 bits hold",
        came=f"time_ns {event.time_ns} and process {event.process}",
        attempt="count times in nanoseconds since the run began, and number the clients from 0 on",
        line=event.index + first_line,
    )


def _open_twice(first: Event, second: Event, first_line: int) -> HistoryError:
    return HistoryError(
        expected=f"process {second.process} to end its {first.f} of line {first.index + first_line} first",
        came=f"its next invocation ({second.f})",
        attempt="give a process a new number after an operation that never ended",
        line=second.index + first_line,
    )


def _nothing_open(event: Event, first_line: int) -> HistoryError:
    return HistoryError(
        expected=f"an open operation of process {event.process}",
        came=f"the end ({event.type}) of one that was never begun",
        attempt="check that the file is whole and its lines are in the order in which they were written",
        line=event.index + first_line,
    )


def _same_question(invoke: Event, completion: Event, first_line: int) -> None:
    if not answers(invoke, completion):
        asked, answered = (
            f"{event.f}{'' if event.key is None else f' of key {event.key}'} with value {value_words(event.value)}"
            for event in (invoke, completion)
        )
        raise HistoryError(
            expected=f"the end of {asked} of line {invoke.index + first_line}",
            came=f"the end ({completion.type}) of {answered}",
            attempt="check that no two clients share a process number",
            line=completion.index + first_line,
        )


def _state(event: Event, first_line: int) -> State:
    node, value = _of_a_node(event, first_line)
    return State(event.index, event.time_ns, node, value)


def _crash(event: Event, first_line: int) -> Crash:
    node, value = _of_a_node(event, first_line)
    last_words = value.get("last_words")
    words = tuple(map(str, last_words)) if isinstance(last_words, list | tuple) else ()
    how = str(value.get("how", "in an unknown way"))
    at_ns = value.get("at_ns")
    time_ns = min(at_ns, event.time_ns) if type(at_ns) is int else event.time_ns  # True is an int, too
    return Crash(event.index, time_ns, node, how, words, str(value.get("out_of_memory") or ""))


def _of_a_node(event: Event, first_line: int) -> tuple[str, dict[str, Any]]:
    if event.node is None or not isinstance(event.value, dict):
        came = f"node {event.node!r} and value {event.value!r}"
        raise _not_ours(event, first_line, "a node and an object as its value", came)
    return event.node, event.value


def _stall(event: Event, first_line: int) -> Stall:
    stalled_ms: Any = event.value.get("stalled_ms") if isinstance(event.value, dict) else None
    if type(stalled_ms) not in (int, float) or not 0 <= stalled_ms < MOST:
        came = f"value {event.value!r}"
        raise _not_ours(event, first_line, "a number of milliseconds as its stalled_ms", came)
    return Stall(event.index, event.time_ns, float(stalled_ms))


def _not_ours(event: Event, first_line: int, expected: str, came: str) -> HistoryError:
    return HistoryError(
        expected=f"a {event.process} line ({event.f}) with {expected}",
        came=came,
        attempt="check that the line was written by this version's harness",
        line=event.index + first_line,
    )
