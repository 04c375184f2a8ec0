"""The durable state of a master, and the file of the records that make it.

Every change is a record: it is written to `txlog.log` first and then applied, and a master that starts applies the
same records again. A message that follows a record leaves when that record is on disk.

| record | |
|---|---|
| `["life", life, strategy]` | the process starts with its configured strategy; its ids are `origin-life-number` |
| `["peer", name]` | an operator added a master |
| `["matched"]` | all masters have posted the own base and settings: this master takes submissions from now on |
| `["made", counter, ts, id, steps]` | a client's transaction, before it is answered "accepted" |
| `["heard", from, counter, last, refs]` | a POST: the own counter, the poster's (None: not used), its unknown refs |
| `["acquired", [[id, steps], …]]` | updates of transactions of other masters |
| `["added", index, refs, bound, posters, missing]` | a round: refs follow the first `index` synchronised ones |
| `["caught-up", index, refs, from]` | a forerunner's difference |
| `["executed", index, id, hash]` | the state has `index` transactions, before "executed" is answered |
| `["split", missing, backup]` | masters are left out; `backup`: a state, or None if there is one or none is taken |
| `["rejoined", joins]` | masters that were left out take part again (strategy `none`) |
| `["recovering", epoch, backup]` | queues and counter are frozen: they are this master's digest of the epoch |
| `["thawed"]` | a master is away whose digest lacks: queues and counter go on; the digest stays as it was |
| `["recovered", epoch, common, winner, votes, refs, queue, counter, last, digests]` | the next epoch begins |
| `["restored", index, hash]` | the state is that of the backup; a while after "recovered", perhaps in the next split |
| `["worker-lost", worker]` | an update has shown that this worker, counted from 0, has ended |
| `["worker-back", worker]` | a new worker has taken its place |
| `["strategy", name]` | an operator chose a different strategy |
| `["max-peer-lag", ns]` | an operator chose this MaxPeerLag; it lasts until the next start |

Refs are `[ts, id, origin]`; a state is `[index, hash, [[space, key, value], …]]`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from nodes.kernel.continuations import Then
from nodes.kernel.effects import Truncate
from nodes.kernel.errors import StartRefused
from nodes.records import Record, framed, records_of
from nodes.steps import Step
from nodes.txlog.evaluation import State, Told
from nodes.txlog.refs import Ref, lists_of, refs_of
from nodes.txlog.site import Site

FILE = "txlog.log"


@dataclass(frozen=True, slots=True)
class Digest:
    """The queues and the counter of one master in a recovery: the same until that recovery is over everywhere.

    The first `start` entries, up to `base`, are the same on all masters: its backup is a state behind these.
    """

    master: str
    epoch: int
    start: int
    base: str
    synced: tuple[Ref, ...]
    """The entries behind `base`."""
    queue: tuple[Ref, ...]
    counter: int

    def to_list(self) -> list[object]:
        """The fields of its message."""
        return [
            self.master,
            self.epoch,
            self.start,
            self.base,
            lists_of(self.synced),
            lists_of(self.queue),
            self.counter,
        ]

    @classmethod
    def from_list(cls, fields: Sequence[Any]) -> Digest:
        master, epoch, start, base, synced, queue, counter = fields
        return cls(master, epoch, start, base, tuple(refs_of(synced)), tuple(refs_of(queue)), counter)


class Journal:
    def __init__(self, site: Site) -> None:
        self._site = site
        self.life = 0
        self.strategy: str = site.configuration.strategy
        self.configured: str = self.strategy
        """The configured strategy; an operator may have chosen a different one since the last start."""
        self.is_changed = False
        """The strategy has changed, and not all masters have posted the new one since."""
        self.peers = [name for name in site.configuration.masters if name != site.name]
        self.is_matched = not self.peers
        self.counter = 0
        self.last: dict[str, int] = {}
        """Peer → its newest counter, up to which all its transactions are known."""
        self.synced: list[Ref] = []
        self.place: dict[str, int] = {}
        """Id → its place in the synchronised queue, counted from 1."""
        self.checksums = [0]
        """Length → the checksum of that many first entries of the synchronised queue."""
        self.queue: list[Ref] = []
        self.queued: set[str] = set()
        self.updates: dict[str, list[Step]] = {}
        self.state = State()
        self.executed = 0
        self.workers = list(range(site.configuration.workers))
        """The workers whose end the master has not detected."""
        self.backup: State | None = None
        self.is_restoring = False
        """The executed transactions differ from the synchronised ones: first the backup must be restored."""
        self.missing: tuple[str, ...] = ()
        self.epoch = 0
        self.joins = 0
        """How often parts have joined without a recovery. Older POSTs do not count."""
        self.is_recovering = False
        """Queues and counter are frozen."""
        self.frozen: Digest | None = None
        """The own digest of the last recovery."""
        self.digests: list[Digest] = []
        """The digests of the other masters in the last recovery that is over here."""
        self.max_peer_lag_ns = site.configuration.max_peer_lag_ns

    # ---- questions

    @property
    def base(self) -> str:
        """The id of the last synchronised transaction; "" before the first."""
        return self.synced[-1].id if self.synced else ""

    def index_of(self, base: str) -> int | None:
        """How many entries the synchronised queue has up to this base; None if the base is not in it."""
        return self.place.get(base) if base else 0

    @property
    def checksum(self) -> int:
        """The checksum of the synchronised queue."""
        return self.checksums[-1]

    def begins_with(self, base: str, index: int, checksum: int) -> bool:
        """Whether the first `index` synchronised entries are those of a queue with this base and checksum.

        The base alone is not enough: queues that contradict each other may have it, even at the same place.
        """
        return self.index_of(base) == index and self.checksums[index] == checksum

    @property
    def masters(self) -> tuple[str, ...]:
        return tuple(sorted((self._site.name, *self.peers)))

    @property
    def is_settling(self) -> bool:
        """A split, a recovery or a restore is under way."""
        return bool(self.missing) or self.awaits_digests or self.is_restoring

    @property
    def awaits_digests(self) -> bool:
        """The recovery of this epoch has begun, and is not over."""
        return self.frozen is not None and self.frozen.epoch == self.epoch

    def waiting(self) -> list[Ref]:
        """The incoming transactions that a round may add.

        In a split, a transaction of a missing master can come too late: it sorts before entries that are synchronised
        already, and waits for the recovery; without a strategy there is none. One whose updates are not here waits,
        too: perhaps no master of the part has them.
        """
        if not self.missing:
            return self.queue
        key = self._site.decisions.sort_key
        last = key(self.synced[-1]) if self.synced and self.strategy != "none" else ()
        return [
            ref
            for ref in self.queue
            if key(ref) > last and (ref.origin not in self.missing or self.is_acquired(ref))
        ]

    def is_acquired(self, ref: Ref) -> bool:
        return ref.id in self.updates

    def is_known(self, name: str) -> bool:
        return name in self.place or name in self.queued

    # ---- records

    def read(self, files: Mapping[str, bytes]) -> None:
        """Raises StartRefused."""
        data = files.get(FILE, b"")
        records, whole = records_of(FILE, data)
        if whole < len(data):
            self._site.out.append(Truncate(FILE, whole))
        for record in records:
            self.apply(record)
        # What a killed process wrote may be lost with the power until this sync: no message may rest on it before.
        if data:
            self._site.sync(FILE)
        decisions = self._site.decisions
        self.counter = decisions.counter_after_restart(self.counter)
        self._set_queue(decisions.queue_after_restart(self.queue))
        configured: str = self._site.configuration.strategy
        if gone := sorted(name for name in self.last if name not in self.peers):
            raise StartRefused(
                f"a master of the log cannot be left out of the masters: expected {', '.join(gone)} among "
                f"{', '.join(self.masters)}"
            )
        if self.is_settling and configured != self.strategy:
            if configured != self.configured:
                raise StartRefused(
                    "the strategy of a master cannot change during a split: "
                    f"expected {self.strategy}, got {configured}"
                )
            configured = self.strategy  # an operator chose it; it stays until the split is over
        self.write(["life", self.life + 1, configured])

    def write(self, record: Record, then: Then | None = None) -> None:
        # First the record: all messages of this step that come behind it wait until it is on disk.
        self._site.persist(FILE, framed(record), record[0], then)
        self.apply(record)

    def apply(self, record: Record) -> None:
        """Raises StartRefused."""
        match record:
            case ["life", life, strategy]:
                self._choose(strategy)
                self.configured = self.configured if self.is_settling else strategy
                self.life = life
                self.workers = list(range(self._site.configuration.workers))
                self.max_peer_lag_ns = self._site.configuration.max_peer_lag_ns
            case ["peer", name]:
                self.peers.append(name)
            case ["matched"]:
                self.is_matched, self.is_changed = True, False
            case ["made", counter, ts, name, steps]:
                self.counter = counter
                self.updates[name] = steps
                self._enqueue([Ref(ts, name, self._site.name)])
            case ["heard", peer, counter, last, refs]:
                self._enqueue(refs_of(refs))
                self.counter = counter
                if last is not None:
                    self.last[peer] = max(last, self.last.get(peer, 0))
            case ["acquired", updates]:
                self.updates.update(dict(updates))
            case ["added", index, refs, _, _, _]:
                self._append(index, refs_of(refs))
            case ["caught-up", index, refs, _]:
                self._append(index, refs_of(refs))
                self.counter = max(self.counter, *(ref.ts for ref in self.synced[index:]))
            case ["executed", index, name, _]:
                self._execute(self.state, name)
                self.executed = index
            case ["worker-lost", worker]:
                self.workers.remove(worker)
            case ["worker-back", worker]:
                self.workers.append(worker)
            case ["strategy", name]:
                self._choose(name)
            case ["max-peer-lag", lag_ns]:
                self.max_peer_lag_ns = lag_ns
            case _:
                self._apply_of_splits(record)

    def _apply_of_splits(self, record: Record) -> None:
        match record:
            case ["split", missing, backup]:
                self.missing = tuple(missing)
                self._back_up(backup)
            case ["rejoined", joins]:
                # A round counts only what a POST with this number of joins has said (docs/decisions/0049).
                self.joins, self.missing, self.last = joins, (), dict.fromkeys(self.last, 0)
            case ["recovering", epoch, backup]:
                self.is_recovering, self.digests = True, []
                self._back_up(backup)
                start = 0 if self.backup is None else self.backup.index
                self.frozen = Digest(
                    self._site.name,
                    epoch,
                    start,
                    self.synced[start - 1].id if start else "",
                    tuple(self.synced[start:]),
                    tuple(self.queue),
                    self.counter,
                )
            case ["thawed"]:
                self.is_recovering = False
            case ["recovered", epoch, common, _, _, refs, queue, counter, last, digests]:
                self.epoch, self.is_recovering, self.missing = epoch, False, ()
                self.digests = [Digest.from_list(digest) for digest in digests]
                self._append(common, refs_of(refs))
                self._set_queue(refs_of(queue))
                self.counter, self.last = counter, dict(last)
                self.is_restoring |= self.executed > common
                if not self.is_restoring:
                    self.backup = None
            case ["restored", *_]:
                assert self.backup is not None
                self.is_restoring = False
                self.state = self.backup.copy()
                if not self.missing and not self.awaits_digests:
                    self.backup = None
                self.executed = self._site.decisions.executed_after_restore(self.executed, self.state.index)
            case _:
                raise StartRefused(f"{FILE} has a record that does not follow: {record!r}"[:120])

    def _choose(self, strategy: str) -> None:
        if self.life and strategy != self.strategy and self.peers:
            self.is_matched, self.is_changed = False, True
        self.strategy = strategy

    def _execute(self, state: State, name: str) -> Told:
        one_in = self._site.configuration.spurious
        fails = bool(one_in) and crc32(f"{self._site.name} {name}".encode()) % one_in == 0
        return state.apply(name, self.updates[name], self._stored, fails=fails)

    def _stored(self, value: object) -> object:
        return self._site.decisions.value_of(value, self._site.name)

    def _back_up(self, backup: list[object] | None) -> None:
        if backup is not None:
            self.backup = State.from_list(backup)

    def _enqueue(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            insort(self.queue, ref, key=self._site.decisions.sort_key)
            self.queued.add(ref.id)

    def _set_queue(self, refs: Iterable[Ref]) -> None:
        self.queue = sorted(refs, key=self._site.decisions.sort_key)
        self.queued = {ref.id for ref in self.queue}

    def _append(self, index: int, refs: Sequence[Ref]) -> None:
        """Keep the first `index` synchronised entries, and append `refs`, which leave the incoming queue."""
        for gone in self.synced[index:]:
            self.place.pop(gone.id, None)
        del self.synced[index:]
        del self.checksums[index + 1 :]
        for ref in refs:
            self.synced.append(ref)
            self.place[ref.id] = len(self.synced)
            self.checksums.append(crc32(f"{ref.ts} {ref.id} ".encode(), self.checksum))
        added = {ref.id for ref in refs}
        self.queue = self._site.decisions.queue_after_add(self.queue, added)
        self.queued = {ref.id for ref in self.queue}

    # ---- backups

    def state_at(self, index: int) -> State:
        """The state behind the first `index` entries, all of which are executed."""
        if (before := self.state.before(index)) is not None:
            return before
        state = State()
        for ref in self.synced[:index]:
            self._execute(state, ref.id)
        return state

    def execute(self) -> Told:
        """Execute the next synchronised transaction, whose updates are here; returns its answer."""
        ref = self.synced[self.executed]
        answer = self._execute(self.state, ref.id)
        self.executed += 1
        record: Record = ["executed", self.executed, ref.id, self.state.hash]
        self._site.persist(FILE, framed(record), record[0])
        return answer
