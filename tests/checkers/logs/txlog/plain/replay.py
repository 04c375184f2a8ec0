"""The queues of a master, from its records alone: a walk through the log that stops where a check wants to look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.checkers.logs.txlog.plain.records import (
    Added,
    Appended,
    CaughtUp,
    Chosen,
    Event,
    Heard,
    Life,
    Log,
    Made,
    Recovered,
    Recovering,
    Ref,
    Rejoined,
    Split,
    Thawed,
)

NEVER = 1 << 62
"""The place of a record that never came, and the time of what never happened."""


@dataclass(slots=True)
class Replay:
    """The state of one master behind the records that were applied.

    synced    the synchronised queue; `of_entry`: which record put each entry there; `left_out`: the masters that
              were left out then
    place     id → how many entries the synchronised queue has up to its first occurrence
    queue     id → incoming transaction
    missing   the masters that are left out
    last      peer → the newest counter that came with all that the peer had made
    """

    master: str
    synced: list[Ref] = field(default_factory=list)
    of_entry: list[Appended] = field(default_factory=list)
    left_out: list[tuple[str, ...]] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)
    queue: dict[str, Ref] = field(default_factory=dict)
    counter: int = 0
    last: dict[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    epoch: int = 0
    strategy: str = ""
    is_recovering: bool = False
    is_frozen: bool = False

    def apply(self, event: Event) -> None:
        match event:
            case Heard(peer=peer, counter=counter, last=last, refs=refs):
                self.counter = counter
                self._enqueue(refs)
                if last is not None:
                    self.last[peer] = max(last, self.last.get(peer, 0))
            case Made(counter=counter, ref=ref):
                self.counter = counter
                self._enqueue((ref,))
            case Added(index=index):
                self._append(index, event)
            case CaughtUp(index=index, refs=refs):
                self._append(index, event)
                self.counter = max(self.counter, *(ref.ts for ref in refs), 0)
            case Recovered():
                self._recovered(event)
            case Recovering():
                self.is_recovering = self.is_frozen = True
            case Thawed():
                self.is_frozen = False
            case Split(missing=missing):
                self.missing = tuple(missing)
            case Rejoined():
                self.missing, self.last = (), {}
            case Life(strategy=strategy) | Chosen(strategy=strategy):
                self.strategy = strategy

    def _enqueue(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            if ref.id not in self.place:
                self.queue.setdefault(ref.id, ref)

    def _append(self, index: int, event: Appended) -> None:
        for gone in self.synced[index:]:
            if self.place.get(gone.id, 0) > index:
                del self.place[gone.id]
        del self.synced[index:], self.of_entry[index:], self.left_out[index:]
        for ref in event.refs:
            self.synced.append(ref)
            self.of_entry.append(event)
            self.left_out.append(self.missing)
            self.place.setdefault(ref.id, len(self.synced))
            self.queue.pop(ref.id, None)

    def _recovered(self, event: Recovered) -> None:
        self.epoch, self.missing, self.is_recovering, self.is_frozen = event.epoch, (), False, False
        self._append(event.common, event)
        self.queue = {ref.id: ref for ref in event.queue}
        self.counter, self.last = event.counter, dict(event.last)


class Walk:
    """A replay that goes from one epoch to the next: all masters' walks stop together, and can be compared."""

    def __init__(self, master: str, events: Iterable[Event]) -> None:
        self.replay = Replay(master)
        self._events = iter(events)
        self._next = next(self._events, None)

    @property
    def next(self) -> Event | None:
        """The record that would be applied next; None at the end of the log."""
        return self._next

    def step(self) -> Event:
        """Apply the next record."""
        event = self._next
        assert event is not None
        self.replay.apply(event)
        self._next = next(self._events, None)
        return event

    def ends_epoch(self) -> bool:
        """The next record begins a new epoch, or there is none."""
        return self._next is None or isinstance(self._next, Recovered)


class Base(NamedTuple):
    """A length of the synchronised queue in one epoch: the record that ended it (NEVER), the counter until then."""

    ends: int
    counter: int


def bases(log: Log) -> Mapping[tuple[int, int], Base]:
    """By epoch and length."""
    found: dict[tuple[int, int], Base] = {}
    replay = Replay(log.master)
    for event in log.events:
        if isinstance(event, Added | CaughtUp | Recovered):
            found[replay.epoch, len(replay.synced)] = Base(event.place, replay.counter)
        replay.apply(event)
    found[replay.epoch, len(replay.synced)] = Base(NEVER, replay.counter)
    return found
