"""The material of a run: logs by master, the history of the clients, and what was configured.

Logs and operations are columns (`columns`, `asked`). Made of objects or read from tables, they are judged the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy

from checkers.history.history import Header, History
from checkers.logs.txlog import kernels
from checkers.logs.txlog.asked import OK, Asked, asked_of
from checkers.logs.txlog.columns import Columns, LogColumns, columns_of
from checkers.logs.txlog.disturbances import Disturbances
from checkers.logs.txlog.kernels import NEVER
from checkers.logs.txlog.queues import Bases, bases_of, synchronised
from checkers.logs.txlog.records import Log, Split

Array = Any  # numpy's
NO_HISTORY = History(header=Header(), events=(), operations=())


@dataclass(frozen=True, kw_only=True)
class Given:
    """`masters`: all that are configured; times are nanoseconds.

    late              masters that are added in the course of the run: another one counts them from its record on
    logs              of objects, or columns that were read
    told              the operations of the clients as columns; None: those of the history
    split_ns          so long without progress, and silent masters are left out; 0: never
    idle_ns           between POSTs while nothing waits
    max_peer_lag_ns   so long a split cluster executes nothing
    agrees_within_ns  so long after the last fault and request nothing waits any more; 0: no bound is known
    executes_within_ns  a master needs to execute one transaction, with a new worker if the last one has ended
    is_deterministic  no transaction fails on one master alone
    """

    masters: Sequence[str]
    late: Sequence[str] = ()
    logs: Mapping[str, Log] | Columns
    history: History = NO_HISTORY
    told: Asked | None = None
    strategy: str = "none"
    split_ns: int = 0
    idle_ns: int = 0
    max_peer_lag_ns: int = 0
    agrees_within_ns: int = 0
    executes_within_ns: int = 0
    is_deterministic: bool = True
    disturbances: Disturbances = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "disturbances", Disturbances(self.history, self.masters, self.split_ns, self.idle_ns)
        )

    @property
    def can_split(self) -> bool:
        return self.split_ns > 0

    @cached_property
    def columns(self) -> Columns:
        if isinstance(self.logs, Columns):
            return self.logs
        ids = (
            operation.transaction
            for operation in self.history.operations
            if operation.transaction is not None
        )
        return columns_of(self.logs, self.masters, ids)

    @property
    def kernels(self) -> Any:
        return self.columns.kernels

    @cached_property
    def asked(self) -> Asked:
        return asked_of(self.history.operations, self.columns.numbers) if self.told is None else self.told

    @cached_property
    def by_master(self) -> Mapping[str, LogColumns]:
        """The logs that there are, in the order of the masters."""
        logs = self.columns.logs
        return {master: logs[master] for master in self.masters if master in logs}

    @cached_property
    def missing(self) -> str:
        """Why the logs are not all there, or not whole; "" if they are."""
        absent = [master for master in self.masters if master not in self.columns.logs]
        damaged = [log.damage for log in self.columns.logs.values() if log.damage]
        return f"{', '.join(absent)} left no log" if absent else "; ".join(damaged)

    @cached_property
    def has_split(self) -> bool:
        """Whether a master recorded a split that the faults allow."""
        split = any(isinstance(event, Split) for log in self.columns.logs.values() for event in log.rare)
        pairs = combinations(self.masters, 2)
        return split and any(self.disturbances.may_be_apart(*pair) for pair in pairs)

    @cached_property
    def made(self) -> Made:
        """The transactions that masters made."""
        return Made(self.columns)

    @cached_property
    def stamped(self) -> Array:
        """By id the transaction with its newest timestamp, perhaps that of a recovery; -1: no master made it.

        Nor has it one yet if its master made it while a recovery waited, which is not over: the recovery stamps it.
        """
        columns, stamped = self.columns, self.made.ref.copy()
        for log in columns.logs.values():
            waits = int(log.rows.of_kind(kernels.RECOVERING)[-1:].sum())
            if waits > int(log.rows.of_kind(kernels.RECOVERED)[-1:].sum()):
                made = log.rows.of_kind(kernels.MADE)
                stamped[columns.id[log.rows.name[made[made > waits]]]] = -1
        queues = [
            (over.epoch, log.rows, int(row))
            for log in columns.logs.values()
            for over, row in zip(log.recoveries, log.rows.of_kind(kernels.RECOVERED), strict=True)
        ]
        for _, rows, row in sorted(queues, key=lambda queue: queue[0]):
            queue = rows.listed[rows.first[row] + rows.other[row] : rows.first[row + 1]]
            queue = queue[stamped[columns.id[queue]] >= 0]
            stamped[columns.id[queue]] = queue
        return stamped

    @cached_property
    def operation_of(self) -> Array:
        """By id the last operation whose answer named it; -1 for none."""
        last = numpy.full(len(self.columns.names), -1, dtype=numpy.int64)
        last[self.asked.transaction[self.asked.last]] = self.asked.last
        return last

    @cached_property
    def bases(self) -> Bases:
        return bases_of(self.columns)

    @cached_property
    def lacks(self) -> Mapping[str, Array]:
        """By master with a whole log, and by id: it is not in the synchronised queue behind all records."""
        lacks: dict[str, Array] = {}
        for master, log in self.by_master.items():
            if log.damage:
                continue
            synced = synchronised(self.columns, log)
            lacks[master] = numpy.ones(len(self.columns.names), dtype=numpy.bool_)
            lacks[master][self.columns.id[synced]] = False
        return lacks

    @cached_property
    def first_two(self) -> Mapping[str, tuple[Array, Array]]:
        """By master, and by id: its first two executions, as numbers in the order of the log; -1 for none."""
        executions: dict[str, tuple[Array, Array]] = {}
        for master, log in self.columns.logs.items():
            first, second = (numpy.full(len(self.columns.names), -1, dtype=numpy.int32) for _ in range(2))
            self.kernels.first_two(log.rows.name[log.rows.of_kind(kernels.EXECUTED)], first, second)
            executions[master] = first, second
        return executions

    @cached_property
    def clocks(self) -> Mapping[str, Clock]:
        return {master: Clock(self, log) for master, log in self.columns.logs.items()}


class Made:
    """By id: `ref`, the transaction as its origin made it (-1: none did), and the log and the row of its record."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        ids = len(columns.names)
        self.logs = [*columns.logs.values()]
        self.ref = numpy.full(ids, -1, dtype=numpy.int32)
        self.log = numpy.zeros(ids, dtype=numpy.int8)
        self.row = numpy.zeros(ids, dtype=numpy.int32)
        for number, log in enumerate(self.logs):
            rows = log.rows.of_kind(kernels.MADE)
            refs = log.rows.name[rows]
            self.ref[columns.id[refs]] = refs
            self.log[columns.id[refs]] = number
            self.row[columns.id[refs]] = rows

    @cached_property
    def count(self) -> int:
        return int((self.ref >= 0).sum())

    def place(self, name: int) -> tuple[str, int]:
        """Master and place of its record."""
        return self.logs[self.log[name]].master, int(self.row[name]) + 1

    def by(self, master: str) -> Array:
        """By id: this master made it."""
        number = next((at for at, log in enumerate(self.logs) if log.master == master), -1)
        return (self.ref >= 0) & (self.log == number)

    def in_order(self, mask: Array) -> list[int]:
        """The ids of a mask that were made, in the order of their first records, one log behind the other."""
        names: dict[int, None] = {}
        for log in self.logs:
            ids = self._columns.id[log.rows.name[log.rows.of_kind(kernels.MADE)]]
            names |= dict.fromkeys(ids[mask[ids]].tolist())
        return [*names]


class Clock:
    """When the records of a log were written, by the times of the clients: logs have no times.

    A record is not older than the invocations of all transactions that were made before it. It is not younger than
    the answer of a transaction that the same master executed behind it.
    """

    def __init__(self, given: Given, log: LogColumns) -> None:
        asked, rows = given.asked, log.rows
        made = rows.of_kind(kernels.MADE)
        operation = given.operation_of[given.columns.id[rows.name[made]]]
        is_known = operation >= 0
        self._made = made[is_known] + 1
        self._not_before = numpy.maximum.accumulate(asked.invoke_ns[operation[is_known]])
        done = rows.of_kind(kernels.EXECUTED)
        name = rows.name[done]
        operation = given.operation_of[name]
        is_first = given.first_two[log.master][0][name] == numpy.arange(len(done))
        may = numpy.flatnonzero((operation >= 0) & is_first)
        operation = operation[may]
        tells = (
            asked.on(log.master)[operation]
            & (asked.type[operation] == OK)
            & (asked.complete_ns[operation] >= 0)
        )
        self._done = done[may[tells]] + 1
        self._not_after = numpy.minimum.accumulate(asked.complete_ns[operation[tells]][::-1])[::-1]

    def not_before_ns(self, place: int) -> int:
        """0 if nothing is known."""
        count = int(numpy.searchsorted(self._made, place, "right"))
        return int(self._not_before[count - 1]) if count else 0

    def not_after_ns(self, place: int) -> int:
        """NEVER if nothing is known."""
        return int(self.not_after_all_ns(numpy.array([place]))[0])

    def not_after_all_ns(self, places: Array) -> Array:
        """`not_after_ns` of many places."""
        return numpy.append(self._not_after, NEVER)[numpy.searchsorted(self._done, places, "left")]
