"""The material of a run: logs by master, the history of the clients, and what was configured."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, combinations

from checkers.history.history import Header, History
from checkers.history.operation import Operation
from checkers.logs.txlog.disturbances import Disturbances
from tests.checkers.logs.txlog.plain.records import Executed, Log, Made, Recovered, Recovering, Ref, Split
from tests.checkers.logs.txlog.plain.replay import NEVER, Base, Walk, bases

NO_HISTORY = History(header=Header(), events=(), operations=())


@dataclass(frozen=True, kw_only=True)
class Given:
    """`masters`: all that are configured; times are nanoseconds.

    split_ns          so long without progress, and silent masters are left out; 0: never
    idle_ns           between POSTs while nothing waits
    max_peer_lag_ns   so long a split cluster executes nothing
    agrees_within_ns  so long after the last fault and request nothing waits any more; 0: no bound is known
    executes_within_ns  a master needs to execute one transaction, with a new worker if the last one has ended
    is_deterministic  no transaction fails on one master alone
    """

    masters: Sequence[str]
    late: Sequence[str] = ()
    logs: Mapping[str, Log]
    history: History = NO_HISTORY
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
    def missing(self) -> str:
        """Why the logs are not all there, or not whole; "" if they are."""
        absent = [master for master in self.masters if master not in self.logs]
        damaged = [log.damage for log in self.logs.values() if log.damage]
        return f"{', '.join(absent)} left no log" if absent else "; ".join(damaged)

    def walks(self) -> dict[str, Walk]:
        return {
            master: Walk(master, self.logs[master].events) for master in self.masters if master in self.logs
        }

    @cached_property
    def made(self) -> Mapping[str, Made]:
        """Id → the record of the origin."""
        return {
            event.ref.id: event
            for log in self.logs.values()
            for event in log.events
            if isinstance(event, Made)
        }

    @cached_property
    def has_split(self) -> bool:
        """By the records of a master, which the faults do not contradict."""
        split = any(isinstance(event, Split) for log in self.logs.values() for event in log.events)
        pairs = combinations(self.masters, 2)
        return split and any(self.disturbances.may_be_apart(*pair) for pair in pairs)

    @cached_property
    def stamped(self) -> Mapping[str, Ref]:
        """Id → the transaction with its newest timestamp: a recovery may stamp it anew."""
        since = {name for log in self.logs.values() for name in _made_since_freeze(log)}
        stamped = {name: made.ref for name, made in self.made.items() if name not in since}
        recoveries = (
            event for log in self.logs.values() for event in log.events if isinstance(event, Recovered)
        )
        for event in sorted(recoveries, key=lambda event: event.epoch):
            stamped.update((ref.id, ref) for ref in event.queue if ref.id in stamped)
        return stamped

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """Id → the operation whose answer named it."""
        return {each.transaction: each for each in self.history.operations if each.transaction is not None}

    @cached_property
    def bases(self) -> Mapping[str, Mapping[tuple[int, int], Base]]:
        """Master → epoch and length of its synchronised queue → how long it had that."""
        return {master: bases(log) for master, log in self.logs.items() if not log.damage}

    @cached_property
    def clocks(self) -> Mapping[str, Clock]:
        return {master: Clock(log, self.operations) for master, log in self.logs.items()}


def _made_since_freeze(log: Log) -> list[str]:
    """The ids that a master made in a recovery that is not over."""
    since: list[str] | None = None
    for event in log.events:
        if isinstance(event, Recovering):
            since = []
        elif isinstance(event, Recovered):
            since = None
        elif isinstance(event, Made) and since is not None:
            since.append(event.ref.id)
    return since or []


class Clock:
    """When the records of a log were written, as far as clients know: logs have no times.

    A record is not older than the invocations of all transactions that were made before it. It is not younger than
    the answer of a transaction that the same master executed behind it.
    """

    def __init__(self, log: Log, operations: Mapping[str, Operation]) -> None:
        made: list[tuple[int, int]] = []
        done: list[tuple[int, int]] = []
        seen: set[str] = set()
        for event in log.events:
            if isinstance(event, Made) and event.ref.id in operations:
                made.append((event.place, operations[event.ref.id].invoke_ns))
            elif isinstance(event, Executed) and event.id in operations and event.id not in seen:
                seen.add(event.id)
                operation = operations[event.id]
                if (
                    operation.node == log.master
                    and operation.type == "ok"
                    and operation.complete_ns is not None
                ):
                    done.append((event.place, operation.complete_ns))
        self._made = [place for place, _ in made]
        self._not_before = [*accumulate((ns for _, ns in made), max)]
        self._done = [place for place, _ in done]
        self._not_after = [*accumulate((ns for _, ns in reversed(done)), min)][::-1]

    def not_before_ns(self, place: int) -> int:
        """0 if nothing is known."""
        count = bisect_right(self._made, place)
        return self._not_before[count - 1] if count else 0

    def not_after_ns(self, place: int) -> int:
        """NEVER if nothing is known."""
        at = bisect_left(self._done, place)
        return self._not_after[at] if at < len(self._done) else NEVER
