"""Transactions as columns: the arrays that the kernels read, and how a history becomes these.

A transaction is a list of micro-operations `[f, key, value]`:

    ["append", k, v]   ["r", k, [v, …] | null]      list-append: values are unique per key
    ["w", k, v]        ["r", k, v | null]           rw-register: null is "never written" (or the value that the key
                                                    began with, if it had one)
    ["rp", k, …]       like "r", for a row of the answer to a predicate (a scan); null: a row that it did not find

Keys and values are any JSON; they are numbered here (a value by itself if it is an int that fits), and named again
where a person reads of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import NDArray

from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.start import PLAIN_START, Start
from checkers.history.values import Composite, identity, value_words

Int8s = NDArray[numpy.int8]
Int32s = NDArray[numpy.int32]
Int64s = NDArray[numpy.int64]
Workload = Literal["append", "rw-register"]

WORKLOADS: tuple[Workload, ...] = ("append", "rw-register")
OK, FAIL, INFO = 0, 1, 2
READ, WRITE, PREDICATE_READ = 0, 1, 2
UNKNOWN = -1
"""The length of a read without an answer."""
NIL = -(2**63)
"""The value of a register that was never written."""

_OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}
_WORDS = {"r": READ, "rp": PREDICATE_READ, "append": WRITE, "w": WRITE}
_WRITES = {"append": "append", "rw-register": "w"}


class Micros(NamedTuple):
    """The columns that kernels read of each micro-operation, and of the transactions that they are of (`Columns`)."""

    first: Int64s
    outcome: Int8s
    f: Int8s
    key: Int32s
    value: Int64s
    length: Int32s
    elements: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """n transactions in the order of their invocations, m micro-operations, k keys, e elements read.

    outcome   int8[n]     OK, FAIL or INFO
    process   int64[n]    the client
    invoke    int64[n]    event index of the invocation, ascending
    complete  int64[n]    event index of the completion; -1 if there is none. What begins at it is concurrent
    first     int64[n+1]  the micro-operations of transaction t are first[t] … first[t+1]-1
    f         int8[m]     READ, WRITE (append or write) or PREDICATE_READ
    key       int32[m]    0 … k-1
    value     int64[m]    what was written; what a register read gave (NIL: null); where a list read begins in
                          `elements`
    length    int32[m]    how many elements a list read has (null: 0); of a register read 0; UNKNOWN for reads without
                          an answer (those of failed and unsure transactions always)
    elements  int64[e]    the lists that were read, one after the other (append only)

    `key_names` and `value_names` (the latter for ids below 0, by -id-1) are for people; without them numbers stand.
    `start_names`: by key, what people call NIL if it is not null; of a list what it began with, which reads have not in
    `elements`. `without_start`: the last element of a list read that did not show that (0: there is none).
    `session_names`: by process, if sessions are not clients.
    `rank` float64[n]: the place of each transaction in the store's own order, NaN if that is not known; None: of none.
    """

    outcome: Int8s
    process: Int64s
    invoke: Int64s
    complete: Int64s
    first: Int64s
    f: Int8s
    key: Int32s
    value: Int64s
    length: Int32s
    elements: Int64s = field(default_factory=lambda: numpy.zeros(0, numpy.int64))
    key_count: int = 0
    key_names: Sequence[Any] | None = None
    value_names: Sequence[Any] | None = None
    session_names: Mapping[int, str] | None = None
    start_names: Mapping[int, str] = field(default_factory=dict)
    without_start: int = 0
    rank: NDArray[numpy.float64] | None = None
    has_real_time: bool = True
    """Whether the events have an order between processes; if not, no model with real time is judged."""

    def __post_init__(self) -> None:
        types = {
            **dict.fromkeys(("process", "invoke", "complete", "first", "value", "elements"), "int64"),
            **dict.fromkeys(("key", "length"), "int32"),
            **dict.fromkeys(("outcome", "f"), "int8"),
        }
        for name, wanted in types.items():
            column = getattr(self, name)
            if column.dtype != wanted or column.ndim != 1 or not column.flags.c_contiguous:
                raise ValueError(
                    f"expected {name} as contiguous {wanted}[…], got {column.dtype}, {column.ndim} axes"
                )
        count, micro = len(self.outcome), len(self.f)
        lengths = {len(self.process), len(self.invoke), len(self.complete), len(self.first) - 1, count}
        if len(lengths) > 1 or len({len(self.key), len(self.value), len(self.length), micro}) > 1:
            raise ValueError("expected columns of equal length (first: one longer); see Columns")
        if self.first[0] != 0 or self.first[-1] != micro or (numpy.diff(self.first) < 0).any():
            raise ValueError("expected first to ascend from 0 to the number of micro-operations")
        if count and (numpy.diff(self.invoke) <= 0).any():
            raise ValueError("expected transactions in the order of their invocations")
        if micro and (self.key.min() < 0 or self.key.max() >= self.key_count):
            raise ValueError(f"expected keys in 0 … {self.key_count - 1}")
        self._check_lists()

    def _check_lists(self) -> None:
        reads = (self.f != WRITE) & (self.length > 0)
        if not reads.any():
            return
        starts = self.value[reads]
        if starts.min() < 0 or (starts + self.length[reads]).max() > len(self.elements):
            raise ValueError("expected list reads to lie within elements")

    @property
    def micros(self) -> Micros:
        """The arrays that kernels read."""
        return Micros(*(getattr(self, name) for name in Micros._fields))

    def __len__(self) -> int:
        return len(self.outcome)

    def key_name(self, key: int) -> str:
        """The key as a person wrote it."""
        return str(key) if self.key_names is None else _shown(self.key_names[key])

    def value_name(self, value: int, key: int) -> str:
        """The value of a key as a person wrote it."""
        if value == NIL:
            return self.start_names.get(key, "null")
        return str(value) if self.value_names is None or value >= 0 else _shown(self.value_names[-value - 1])

    def owner(self, micro: int) -> int:
        """The transaction of a micro-operation."""
        return int(numpy.searchsorted(self.first, micro, side="right")) - 1


def _shown(name: Any) -> str:
    """As it stands in JSON, but for sets; a text without quotes."""
    return name if isinstance(name, str) and name else repr(Composite(name))


Session = Callable[[Operation], str | None]
"""The session of an operation: it keeps the order of operations with the same name; None: it has no session."""


def columns_of(history: History, workload: Workload, session: Session | None = None) -> Columns:
    """The operations with f "txn" as columns. Raises ModelError for a value that is no transaction of `workload`.

    `session`: gives the session of each operation, if its client is not the session.
    """
    operations = [operation for operation in history.operations if operation.f == "txn"]
    reader = _Reader(workload, history.start)
    columns = reader.read(operations, reader.transaction)
    columns = replace(columns, has_real_time=history.has_real_time)
    return (
        columns
        if session is None
        else _in_sessions(columns, [session(operation) for operation in operations])
    )


def columns_of_entries(
    operations: Sequence[Operation], entries: Callable[[Operation], Iterable[tuple[int, Any, Any]]]
) -> Columns:
    """Operations that write and read single values: `entries` gives (f, key, value) of each.

    Unlike those of a history, a value may be written twice, and an unsure operation shows what it read.
    """

    def take(operation: Operation) -> None:
        for f, key, value in entries(operation):
            reader.micro.append((f, reader.key(key), reader.number(value), 0))

    reader = _Reader("rw-register", PLAIN_START)
    return reader.read(operations, take)


def ranked(columns: Columns, transaction_order: Mapping[int, float]) -> Columns:
    """The columns with the store's own order of transactions: by the index of an invocation or completion, a number.

    Raises ModelError for an index that is no transaction's, a number that two of them have, or one that has two.
    """
    number = {int(event): txn for txn, event in enumerate(columns.invoke.tolist())}
    number |= {int(event): txn for txn, event in enumerate(columns.complete.tolist()) if event >= 0}
    rank = numpy.full(len(columns), numpy.nan)
    holders: dict[float, int] = {}
    for event, place in transaction_order.items():
        if event not in number:
            raise ModelError(
                expected="an event of a transaction in the transaction order", came=str(event), index=None
            )
        other = holders.setdefault(place, number[event])
        if other != number[event]:
            raise ModelError(
                expected="a number once in the transaction order", came=f"{place} twice", index=event
            )
    if len(set(holders.values())) < len(holders):
        one_number = "one number for each transaction in the transaction order"
        raise ModelError(expected=one_number, came="two for one of them", index=None)
    # Places in the order: numbers such as nanoseconds are too large for a double to tell them apart.
    for place, known in enumerate(sorted(holders)):
        rank[holders[known]] = place
    return replace(columns, rank=rank)


def _in_sessions(columns: Columns, names: Sequence[str | None]) -> Columns:
    numbers: dict[str, int] = {}
    process = [
        -1 - place if name is None else numbers.setdefault(name, len(numbers))
        for place, name in enumerate(names)
    ]
    session_names = {number: name for name, number in numbers.items()}
    return replace(columns, process=numpy.array(process, numpy.int64), session_names=session_names)


_WITHOUT_START = ("without start",)  # no value's identity


class _Reader:
    """Numbers keys and values as they come."""

    def __init__(self, workload: Workload, start: Start) -> None:
        self.workload = workload
        self.start = start
        # By key: what it holds before the first write, if that is not nothing.
        self.begun: dict[int, Any] = {}
        self.keys: dict[Any, int] = {}
        self.key_names: list[Any] = []
        self.values: dict[Any, int] = {}
        self.value_names: list[Any] = []
        self.micro: list[tuple[int, int, int, int]] = []
        self.elements: list[int] = []

    def read(self, operations: Sequence[Operation], take: Callable[[Operation], None]) -> Columns:
        first = [0]
        for operation in operations:
            take(operation)
            first.append(len(self.micro))
        micro = numpy.array(self.micro, dtype=numpy.int64).reshape(-1, 4)
        completes = [UNKNOWN if txn.complete_index is None else txn.complete_index for txn in operations]
        return Columns(
            outcome=numpy.array([_OUTCOMES[txn.type] for txn in operations], numpy.int8),
            process=numpy.array([txn.process for txn in operations], numpy.int64),
            invoke=numpy.array([txn.invoke_index for txn in operations], numpy.int64),
            complete=numpy.array(completes, numpy.int64),
            first=numpy.array(first, numpy.int64),
            f=micro[:, 0].astype(numpy.int8),
            key=micro[:, 1].astype(numpy.int32),
            value=numpy.ascontiguousarray(micro[:, 2]),
            length=micro[:, 3].astype(numpy.int32),
            elements=numpy.array(self.elements, numpy.int64),
            key_count=len(self.keys),
            key_names=tuple(self.key_names),
            value_names=tuple(self.value_names),
            start_names={key: _shown(value) for key, value in self.begun.items()},
            without_start=self.values.get(_WITHOUT_START, 0),
        )

    def transaction(self, operation: Operation) -> None:
        if not isinstance(operation.value, list | tuple):
            raise _not_a_transaction(operation, "a list of micro-operations", operation.value)
        for micro in operation.value:
            if not isinstance(micro, list | tuple) or len(micro) != 3 or micro[0] not in self._words():
                words = ", ".join(self._words())
                raise _not_a_transaction(operation, f"[f, key, value] with f one of {words}", micro)
            f, key, value = micro
            number = self.key(key)
            self.micro.append((_WORDS[f], number, *self._value(operation, _WORDS[f], number, value)))

    def _words(self) -> tuple[str, ...]:
        return ("r", "rp", _WRITES[self.workload])

    def _value(self, operation: Operation, f: int, key: int, value: Any) -> tuple[int, int]:
        begun = self.begun.get(key)
        if f == WRITE:
            if begun is not None and self.workload == "rw-register" and identity(value) == identity(begun):
                return NIL, 0
            if value is None or (
                begun is not None and identity(value) in map(identity, self._elements(begun))
            ):
                began = (
                    ""
                    if value is None and begun is not None
                    else f", with which {_shown(self.key_names[key])} began,"
                )
                expected = f"a value other than {value_words(value)}{began} to be written"
                raise _not_a_transaction(operation, expected, value)
            return self.number(value), 0
        if operation.type != "ok":
            return 0, UNKNOWN
        if self.workload == "rw-register":
            return (NIL if identity(value) == identity(begun) else self.number(value)), 0
        if value is not None and not isinstance(value, list | tuple):
            raise _not_a_transaction(operation, "a list or null as what was read", value)
        start, shown, there = len(self.elements), list(value or []), len(begun or ())
        is_there = begun is None or list(map(identity, shown[:there])) == list(map(identity, begun))
        self.elements += map(self.number, shown[there:] if is_there else shown)
        if not is_there:
            self.elements.append(self._named(_WITHOUT_START, None))
        return start, len(self.elements) - start

    def _elements(self, begun: Any) -> Sequence[Any]:
        """The elements that a list began with; no value of a register is one."""
        return list(begun) if self.workload == "append" else ()

    def key(self, key: Any) -> int:
        number = self.keys.setdefault(identity(key), len(self.keys))
        if number == len(self.key_names):
            self.key_names.append(key)
            begun = self.start.of(key)
            if self.workload == "append" and begun is not None and not isinstance(begun, list | tuple):
                raise ModelError(expected="a list as the start value", came=_shown(begun), index=None)
            if begun is not None and (self.workload == "rw-register" or len(begun)):
                self.begun[number] = begun
        return number

    def number(self, value: Any) -> int:
        """A natural number stands for itself; any other value gets a number below zero."""
        return value if type(value) is int and 0 <= value < 2**62 else self._named(identity(value), value)

    def _named(self, same: Any, value: Any) -> int:
        number = self.values.setdefault(same, -len(self.values) - 1)
        if -number > len(self.value_names):
            self.value_names.append(value)
        return number


def _not_a_transaction(operation: Operation, expected: str, came: Any) -> ModelError:
    return ModelError(expected=expected, came=_shown(came), index=operation.invoke_index)
