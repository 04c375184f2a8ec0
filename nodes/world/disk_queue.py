"""The records of one virtual machine on their way to its disk.

A group of records is written at once and synced a little later; several groups may be outstanding. When a group is
durable, the effects behind it leave, and the node hears of it at that moment or, by chance, later. On a full disk a
group fails, with all that is behind it, when those before it are done.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from typing import Literal, Protocol

from nodes.kernel.effects import UNFINISHED, Persist
from nodes.kernel.events import Event, Persisted, PersistFailed
from nodes.kernel.outbox import Durability, Outbox
from nodes.world.agenda import Agenda
from nodes.world.disk import VirtualDisk
from nodes.world.network import MICROSECOND, MILLISECOND

SYNC_NS = 150 * MICROSECOND
SLOW_SYNC_NS = 8 * MILLISECOND
WRITE_NS = 20 * MICROSECOND
LATE_NEWS_NS = 2 * MILLISECOND
"""How late a node may hear that its record is durable."""
WRITEBACK_NS = 1_500 * MILLISECOND
"""How long written bytes stay unsynced without a request to sync them (the seeded bug ack-before-fsync)."""

Kind = Literal["timer", "input"]


@dataclass(frozen=True, slots=True)
class Group:
    """Records that are synced together; `ends` are the file lengths that make them durable."""

    records: tuple[Persist, ...]
    ends: tuple[int, ...]
    starts: tuple[int | None, ...]
    """The file lengths before; None: the record made the file."""
    due_ns: int

    def files(self) -> Iterator[tuple[str, int | None]]:
        """Where each record was written, and the file's length before."""
        return zip(map(written_to, self.records), self.starts, strict=True)


class Writer(Protocol):
    """The machine whose records these are."""

    name: str
    disk: VirtualDisk

    @property
    def generation(self) -> int:
        """Another one after each start and each end of the process: what was planned before is void."""
        ...

    @property
    def outbox(self) -> Outbox: ...

    def soon(self, kind: Kind, generation: int, action: Callable[[], None]) -> None:
        """Do something now, or when a paused process goes on; nothing if it has ended since."""
        ...

    def step(self, event: Event) -> None:
        """Let the node take an event in. It may end the process, or start it again."""
        ...

    def pump(self) -> None:
        """Do the effects that may be done now, and write the records that wait."""
        ...

    def wrote(self, record: Persist, end: int) -> None:
        """A record was written and makes its file `end` bytes long."""
        ...

    def rests(self) -> None:
        """Called after the node has heard of a durable group."""
        ...


class DiskQueue:
    """The groups of one machine: `written` and not synced, and `unreported`, of which the node has not heard."""

    def __init__(self, writer: Writer, agenda: Agenda, chance: random.Random, durability: Durability) -> None:
        self.on_record: Callable[[str, str, str], None] | None = None
        """Called with "writes" (handed to the disk) or "wrote" (synced), the node, and the kind of record."""
        self._writer = writer
        self._agenda = agenda
        self._chance = chance
        self._durability = durability
        self._written: deque[Group] = deque()
        self._unreported: deque[Group] = deque()
        self._is_failing = False
        """A write has failed and the node has not heard of it yet: nothing more is written."""
        self._holds: dict[str, int] = {}
        self._sync_delay_ns = 0
        self._affected = 0
        """How many groups of records a slow or full disk has delayed or refused."""

    @property
    def is_at_rest(self) -> bool:
        """Nothing is on its way, and the node knows that."""
        is_busy = self._written or self._unreported or self._is_failing
        return not is_busy and self._writer.outbox.is_durable and self._durability == "synced"

    @property
    def takes_records(self) -> bool:
        return not self._is_failing

    # ---- faults

    def slow_down(self, delay_ns: int) -> None:
        """From now on every sync takes so much longer."""
        self._sync_delay_ns = delay_ns

    def take_affected(self) -> int:
        affected, self._affected = self._affected, 0
        return affected

    def hold(self, record: str) -> None:
        """Let records of a kind ("" for any) wait for their sync, and all behind them, until `release`."""
        self._holds[record] = self._holds.get(record, 0) + 1

    def release(self, record: str) -> None:
        left = self._holds.pop(record, 0) - 1
        if left > 0:
            self._holds[record] = left
        if self._written:
            self._agenda.after(SYNC_NS, self._sync, self._writer.generation)

    # ---- life and death of the process

    def process_starts(self) -> None:
        self._written.clear()
        self._unreported.clear()
        self._is_failing = False

    def process_ends(self) -> None:
        """The node hears of nothing more; what becomes of its records depends on how it ended."""
        self._unreported.clear()

    def process_killed(self) -> None:
        """Records that the operating system has stay. Later records are lost."""
        self._forget_later_files()
        while self._written:
            # From the newest back: as soon as one was written, all before it were.
            group = self._written.pop()
            if self._chance.random() < 0.5:
                self._written.clear()
                break
            for file, start in group.files():
                self._writer.disk.forget_unwritten(file, start or 0)

    def process_terminated(self) -> None:
        """All that was being written is synced."""
        for group in self._written:
            self._mark_synced(group)
        self._written.clear()

    def power_lost(self) -> int:
        """Everything that was not synced may be lost. Returns the bytes lost or spoilt."""
        self._written.clear()
        return self._writer.disk.lose_power(self._chance)

    def _forget_later_files(self) -> None:
        """A host syncs a file before it makes or lengthens the next: of what is not synced, one alone was written.

        Not even an empty file was made behind it: a node that finds one trusts that those before it are synced.
        """
        places = [place for group in self._written for place in group.files()]
        first = places[0][0] if places else ""
        for file, start in dropwhile(lambda place: place[0] == first, places):
            self._writer.disk.forget_unwritten(file, start)

    # ---- writing

    def write(self, records: list[Persist]) -> None:
        writer = self._writer
        if writer.disk.full and any(record.data for record in records):
            self._is_failing = True
            self._affected += 1
            self._agenda.after(WRITE_NS, writer.soon, "input", writer.generation, self._fail)
            return
        starts, ends = [], []
        for record in records:
            starts.append(writer.disk.length(written_to(record)))
            end = writer.disk.append(written_to(record), record.data)
            ends.append(end)
            writer.wrote(record, end)
        group = Group(tuple(records), tuple(ends), tuple(starts), self._due_ns())
        if self._durability == "written":
            self._agenda.after(WRITEBACK_NS, self._write_back, group, writer.generation)
            report = writer.soon, "input", writer.generation, lambda: self._durable(group)
            self._agenda.after(WRITE_NS, *report)
            return
        self._written.append(group)
        self._agenda.at(group.due_ns, self._sync, writer.generation)
        self._notify("writes", group)

    def _due_ns(self) -> int:
        delay_ns = SYNC_NS + int(self._chance.expovariate(1 / SYNC_NS))
        if self._chance.random() < 0.01:
            delay_ns += int(self._chance.random() * SLOW_SYNC_NS)
        if self._sync_delay_ns:
            self._affected += 1
            delay_ns += self._sync_delay_ns
        earliest_ns = self._written[-1].due_ns if self._written else 0
        return max(self._agenda.now_ns + delay_ns, earliest_ns)

    def _write_back(self, group: Group, generation: int) -> None:
        if generation == self._writer.generation:
            self._mark_synced(group)

    def _sync(self, generation: int) -> None:
        """Sync every group that is due, oldest first, up to one that is held."""
        writer = self._writer
        if generation != writer.generation:
            return
        while self._written and self._written[0].due_ns <= self._agenda.now_ns:
            group = self._written[0]
            if self._holds and ("" in self._holds or any(r.record in self._holds for r in group.records)):
                return
            self._written.popleft()
            self._mark_synced(group)
            self._notify("wrote", group)
            if generation != writer.generation:
                return  # its listener ended the process before the node could send anything about it
            writer.soon("input", generation, lambda group=group: self._durable(group))  # type: ignore[misc]
        if self._is_failing:
            writer.soon("input", generation, self._fail)

    def _mark_synced(self, group: Group) -> None:
        for record, end in zip(group.records, group.ends, strict=True):
            if record.is_whole:
                self._writer.disk.put_whole(record.file, record.data)
            else:
                self._writer.disk.sync(record.file, end)

    def _notify(self, does: str, group: Group) -> None:
        for record in group.records:
            if self.on_record is not None:
                self.on_record(does, self._writer.name, record.record)

    # ---- reports to the node

    def _durable(self, group: Group) -> None:
        """Let go what stood behind these records, and report them to the node now or a little later."""
        writer = self._writer
        for record in group.records:
            # Before the node hears of it, and before `pump`: what stood behind the record may leave now.
            writer.outbox.persisted(record.token)
        self._unreported.append(group)
        draw = self._chance.random()
        if draw < 0.8 and len(self._unreported) == 1:
            writer.pump()
            self._report_next()
        else:
            delay_ns = int(draw * LATE_NEWS_NS)
            self._agenda.after(delay_ns, writer.soon, "input", writer.generation, self._report_next)
            writer.pump()

    def _report_next(self) -> None:
        writer, generation = self._writer, self._writer.generation
        if self._unreported:
            for record in self._unreported.popleft().records:
                if writer.generation == generation:
                    writer.step(Persisted(record.token))
        if writer.generation == generation:
            writer.rests()

    def _fail(self) -> None:
        """Report records that the full disk did not take, once all before is durable and the node knows."""
        if not self._is_failing or self._written:
            return
        writer, generation = self._writer, self._writer.generation
        while self._unreported and writer.generation == generation:
            self._report_next()
        if writer.generation == generation:  # a report may have ended the process, or started it again
            self._is_failing = False
            writer.step(PersistFailed(writer.outbox.failed(), "no space left on device"))


def written_to(record: Persist) -> str:
    """A file that must appear whole is written under another name first."""
    return record.file + UNFINISHED if record.is_whole else record.file
