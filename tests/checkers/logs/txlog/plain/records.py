"""The records of a master as values: what its log says, in the order in which the master wrote it.

A log is a sequence of lists, `[kind, …]`, the first at place 1:

| record | |
|---|---|
| `["life", life, strategy]` | the process starts |
| `["peer", name]`, `["matched"]` | a master was added; this one takes submissions from now on |
| `["made", counter, ts, id, steps]` | a client's transaction is accepted |
| `["heard", from, counter, last, refs]` | a POST: the own counter, the poster's (None: not used), what was unknown |
| `["acquired", [[id, steps], …]]` | updates of transactions of other masters |
| `["added", index, refs, bound, posters, missing]` | a round: refs follow the first `index` synchronised ones |
| `["caught-up", index, refs, from]` | the same, by a forerunner's difference |
| `["executed", index, id, hash]` | the state has so many transactions |
| `["split", missing, backup]`, `["rejoined", joins]` | masters are left out; they take part again |
| `["recovering", epoch, backup]` | queues and counter are frozen |
| `["recovered", epoch, common, winner, votes, refs, queue, counter, last]` | the next epoch begins with these |
| `["restored", index, hash]` | the state is that of the backup; a while after "recovered", perhaps in the next split |
| `["worker-lost", worker]`, `["worker-back", worker]` | a worker has ended; a new one is there |
| `["strategy", name]` | an operator chose a different strategy |

Refs are `[ts, id, origin]`; a backup is None or begins with its index and its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Record = Sequence[Any]


class Ref(NamedTuple):
    """A transaction in a queue; queues are sorted by `(ts, id)`."""

    ts: int
    id: str
    origin: str

    @property
    def key(self) -> tuple[int, str]:
        return self.ts, self.id


class Backup(NamedTuple):
    """A state: so many executed transactions, and its hash."""

    executed: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Life:
    place: int
    life: int
    strategy: str


@dataclass(frozen=True, slots=True)
class Made:
    place: int
    counter: int
    ref: Ref
    steps: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Heard:
    place: int
    peer: str
    counter: int
    last: int | None
    refs: Sequence[Ref]


@dataclass(frozen=True, slots=True)
class Acquired:
    place: int
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Added:
    place: int
    index: int
    refs: Sequence[Ref]
    bound: int
    posters: Sequence[str]
    absent: Sequence[str]


@dataclass(frozen=True, slots=True)
class CaughtUp:
    place: int
    index: int
    refs: Sequence[Ref]
    source: str


@dataclass(frozen=True, slots=True)
class Executed:
    place: int
    index: int
    id: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class Split:
    place: int
    missing: Sequence[str]
    backup: Backup | None


@dataclass(frozen=True, slots=True)
class Rejoined:
    place: int


@dataclass(frozen=True, slots=True)
class Recovering:
    place: int
    epoch: int
    backup: Backup | None


@dataclass(frozen=True, slots=True)
class Recovered:
    place: int
    epoch: int
    common: int
    winner: str
    votes: Mapping[str, int]
    refs: Sequence[Ref]
    queue: Sequence[Ref]
    counter: int
    last: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Restored:
    place: int
    index: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Chosen:
    place: int
    strategy: str


@dataclass(frozen=True, slots=True)
class Lagged:
    place: int
    lag_ns: int


@dataclass(frozen=True, slots=True)
class Thawed:
    place: int


@dataclass(frozen=True, slots=True)
class Joined:
    place: int
    master: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Of no weight for the checks: `matched`, `worker-lost`, `worker-back`."""

    place: int


Appended = Added | CaughtUp | Recovered
"""The records after which the synchronised queue is a different one."""
Event = (
    Life
    | Made
    | Heard
    | Acquired
    | Added
    | CaughtUp
    | Executed
    | Split
    | Rejoined
    | Recovering
    | Recovered
    | Restored
    | Chosen
    | Lagged
    | Thawed
    | Joined
    | Passed
)


@dataclass(frozen=True, slots=True)
class Log:
    """What one master left. `damage` says why not all of it could be read; "" if it was."""

    master: str
    events: Sequence[Event]
    damage: str = ""


def log_of(master: str, records: Sequence[Record], damage: str = "") -> Log:
    """The log of these records. A record that has not the form of the table is damage; what is before it counts."""
    events: list[Event] = []
    for place, record in enumerate(records, 1):
        try:
            events.append(_event(master, place, record))
        except (TypeError, ValueError, LookupError) as error:
            return Log(master, events, f"record {place} of {master} cannot be read: {error}")
    return Log(master, events, damage)


def _event(master: str, place: int, record: Record) -> Event:
    match record:
        case ["heard", peer, counter, last, refs]:
            return Heard(place, peer, counter, last, refs_of(refs))
        case ["executed", index, name, digest]:
            return Executed(place, index, name, digest)
        case ["made", counter, ts, name, steps]:
            return Made(place, counter, Ref(ts, name, master), steps)
        case ["acquired", found]:
            return Acquired(place, [name for name, _ in found])
        case ["added", index, refs, bound, posters, absent]:
            return Added(place, index, refs_of(refs), bound, posters, absent)
        case ["caught-up", index, refs, source]:
            return CaughtUp(place, index, refs_of(refs), source)
        case ["matched"] | ["worker-lost" | "worker-back", _]:
            return Passed(place)
    return _rare(place, record)


def _rare(place: int, record: Record) -> Event:
    match record:
        case ["life", life, strategy]:
            return Life(place, life, strategy)
        case ["split", missing, backup]:
            return Split(place, tuple(missing), _backup(backup))
        case ["rejoined", *_]:
            return Rejoined(place)
        case ["recovering", epoch, backup]:
            return Recovering(place, epoch, _backup(backup))
        case ["recovered", epoch, common, winner, votes, refs, queue, counter, last, *_]:
            return Recovered(
                place, epoch, common, winner, dict(votes), refs_of(refs), refs_of(queue), counter, dict(last)
            )
        case ["restored", index, digest]:
            return Restored(place, index, digest)
        case ["strategy", name]:
            return Chosen(place, name)
        case ["max-peer-lag", int() as lag_ns]:
            return Lagged(place, lag_ns)
        case ["thawed"]:
            return Thawed(place)
        case ["peer", str() as name]:
            return Joined(place, name)
    raise ValueError(f"no record of a master: {record!r}"[:100])


def refs_of(told: Sequence[Sequence[Any]]) -> list[Ref]:
    return [Ref(ts, name, origin) for ts, name, origin in told]


def _backup(told: Sequence[Any] | None) -> Backup | None:
    return None if told is None else Backup(told[0], told[1])
