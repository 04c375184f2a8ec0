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
| `["thawed"]` | a recovery waits for the digest of a master that is away: queues and counter go on meanwhile |
| `["recovered", epoch, common, winner, votes, refs, queue, counter, last, …]` | the next epoch begins with these |
| `["restored", index, hash]` | the state is that of the backup; a while after "recovered", perhaps in the next split |
| `["worker-lost", worker]`, `["worker-back", worker]` | a worker has ended; a new one is there |
| `["strategy", name]` | an operator chose a different strategy |
| `["max-peer-lag", ns]` | an operator chose this MaxPeerLag, until the next start |

Refs are `[ts, id, origin]`; a backup is None or begins with its index and its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from checkers.logs.txlog import kernels

Record = Sequence[Any]
MOST = 1 << 62
"""Numbers of a record are less."""


class Ref(NamedTuple):
    """A transaction in a queue; queues are sorted by `(ts, id)`."""

    ts: int
    id: str
    origin: str

    @property
    def text(self) -> str:
        return f"{self.id} (ts {self.ts})"


class Backup(NamedTuple):
    """A state: so many executed transactions, and its hash."""

    executed: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Life:
    place: int
    strategy: str


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
    backup: Backup | None


@dataclass(frozen=True, slots=True)
class Thawed:
    place: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Without the transactions, which are columns."""

    place: int
    epoch: int
    common: int
    winner: str
    votes: Mapping[str, int]
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
    """An operator chose this MaxPeerLag."""

    place: int
    lag_ns: int


@dataclass(frozen=True, slots=True)
class Joined:
    """An operator has added this master."""

    place: int
    master: str


Rare = Life | Split | Rejoined | Recovering | Thawed | Recovered | Restored | Chosen | Lagged | Joined
"""The records that are few in a long log: they stay objects. All others are only columns."""


class Row(NamedTuple):
    """A record on its way into columns: `columns.Rows` says what the fields are, by kind."""

    kind: int
    number: int = 0
    other: int = 0
    what: Any = None
    refs: Sequence[Any] = ()
    queue: Sequence[Ref] = ()
    more: Any = None
    """Steps of "made", the hash of "executed", or the rare record."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log that one master left. `damage` says why not all of it could be read; "" if it was."""

    master: str
    rows: Sequence[Row]
    damage: str = ""


def log_of(master: str, records: Sequence[Record], damage: str = "") -> Log:
    """The log of these records. A malformed record is damage; the records before it count."""
    rows: list[Row] = []
    for place, record in enumerate(records, 1):
        try:
            rows.append(_row(master, place, record))
        except (TypeError, ValueError, LookupError, RecursionError) as error:
            return Log(master, rows, f"record {place} of {master} cannot be read: {error}")
    return Log(master, rows, damage)


def _row(master: str, place: int, record: Record) -> Row:
    match record:
        case ["heard", peer, counter, last, refs]:
            posted = -1 if last is None else _number(last)
            return Row(kernels.HEARD, _number(counter), posted, _word(peer), _refs(refs))
        case ["executed", index, name, digest]:
            return Row(kernels.EXECUTED, _number(index, 1), 0, _word(name), more=_hash(digest))
        case ["made", counter, ts, name, steps]:
            does = [(*step,) for step in steps]
            return Row(kernels.MADE, _number(counter), 0, _ref(ts, name, master), more=does)
        case ["acquired", updates]:
            return Row(kernels.ACQUIRED, refs=[_word(name) for name, _ in updates])
        case ["added", index, refs, bound, posters, absent]:
            return Row(
                kernels.ADDED, _number(index), _number(bound), (_words(posters), _words(absent)), _refs(refs)
            )
        case ["caught-up", index, refs, source]:
            return Row(kernels.CAUGHT_UP, _number(index), 0, _word(source), _refs(refs))
        case ["matched"] | ["worker-lost" | "worker-back", _]:
            return Row(kernels.PASSED)
    return _rare(place, record)


def _rare(place: int, record: Record) -> Row:
    match record:
        case ["life", _, strategy]:
            return Row(kernels.LIFE, more=Life(place, _word(strategy)))
        case ["split", missing, backup]:
            gone = _words(missing)
            return Row(kernels.SPLIT, 0, len(gone), more=Split(place, gone, _backup(backup)))
        case ["rejoined", *_]:
            return Row(kernels.REJOINED, more=Rejoined(place))
        case ["recovering", _, backup]:
            return Row(kernels.RECOVERING, more=Recovering(place, _backup(backup)))
        case ["thawed"]:
            return Row(kernels.THAWED, more=Thawed(place))
        case ["recovered", epoch, common, winner, votes, refs, queue, counter, last, *_]:
            over = Recovered(
                *(place, _number(epoch), _number(common), _word(winner)),
                *(_numbers(votes), _number(counter), _numbers(last)),
            )
            return Row(kernels.RECOVERED, common, len(refs), None, _refs(refs), _refs(queue), over)
        case ["restored", index, digest]:
            executed = _number(index)
            return Row(kernels.RESTORED, executed, more=Restored(place, executed, _hash(digest)))
        case ["strategy", name]:
            return Row(kernels.CHOSEN, more=Chosen(place, _word(name)))
        case ["max-peer-lag", lag_ns]:
            return Row(kernels.LAGGED, more=Lagged(place, _number(lag_ns)))
        case ["peer", name]:
            return Row(kernels.JOINED, more=Joined(place, _word(name)))
    raise ValueError(f"no record of a master: {record!r}"[:100])


def _number(value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < MOST:
        raise ValueError(f"expected a whole number from {least} to below 2^62, got {value!r}"[:100])
    return int(value)


def _numbers(values: Mapping[Any, Any]) -> dict[str, int]:
    return {_word(name): _number(value) for name, value in dict(values).items()}


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a name, got {value!r}"[:100])
    return value


def _words(values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"expected a list of names, got {values!r}"[:100])
    return tuple(map(_word, values))


def _hash(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"expected a hash, got {value!r}"[:100])
    return value


def _ref(ts: Any, name: Any, origin: Any) -> Ref:
    return Ref(_number(ts), _word(name), _word(origin))


def _refs(refs: Sequence[Sequence[Any]]) -> list[Ref]:
    return [_ref(ts, name, origin) for ts, name, origin in refs]


def _backup(backup: Sequence[Any] | None) -> Backup | None:
    return None if backup is None else Backup(_number(backup[0]), _hash(backup[1]))
