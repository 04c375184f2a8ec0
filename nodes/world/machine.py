"""A virtual machine: one node with its disk, clock, timers and outbox, and the faults that can befall it.

While a process is paused, everything that would reach it waits. When it goes on, either its timers or its
input come first: a real event loop does one or the other, so chance decides here.

The disk works beside the node: a group of records is written at once and synced a little later; several groups may
be outstanding. Effects behind a record leave when it is durable, and the node hears of it at that moment or,
by chance, later. On a full disk a group fails, with all that is behind it, when those before it are done.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from traceback import extract_tb
from typing import Literal, Protocol

from nodes.kernel.chance import Streams
from nodes.kernel.effects import (
    UNFINISHED,
    Again,
    CancelTimer,
    Connect,
    Disconnect,
    Log,
    Persist,
    Remove,
    Send,
    SetTimer,
    Truncate,
)
from nodes.kernel.errors import StartAgain, StartRefused
from nodes.kernel.events import (
    Accepted,
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Persisted,
    PersistFailed,
    Received,
    Started,
    TimerFired,
)
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability, Outbox
from nodes.kernel.trace import Tracer
from nodes.world.agenda import Agenda
from nodes.world.clock import NodeClock
from nodes.world.disk import VirtualDisk, WatchesDisk
from nodes.world.network import MICROSECOND, MILLISECOND, Network

Kind = Literal["timer", "input"]

SYNC_NS = 150 * MICROSECOND
SLOW_SYNC_NS = 8 * MILLISECOND
WRITE_NS = 20 * MICROSECOND
AGAIN_NS = 1 * MICROSECOND
"""How soon an event comes that a node asked for once more: time goes on even if it asks for ever."""
LATE_NEWS_NS = 2 * MILLISECOND
"""How late a node may hear that its record is durable."""
WRITEBACK_NS = 1_500 * MILLISECOND
"""How long written bytes stay unsynced without a request to sync them (the seeded bug ack-before-fsync)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Records that are synced together; `ends` are the file lengths that make them durable."""

    records: tuple[Persist, ...]
    ends: tuple[int, ...]
    starts: tuple[int | None, ...]
    """The file lengths before; None: the record made the file."""
    due_ns: int


class WatchesMachine(WatchesDisk, Protocol):
    """Hears what a machine hands to its disk and its links, in the moment in which it does; it changes nothing."""

    hears: frozenset[type]
    """The messages that it wants to hear of."""

    def writes(self, record: Persist, end: int, link: int | None) -> None:
        """A record was written and makes its file `end` bytes long; `link`: on it came what the node answers by it."""

    def sends(self, link: int, message: object) -> None:
        """A message left the node: all that had to be on disk before is there, as far as the node cares."""

    def emptied(self) -> None:
        """Another node, on an empty disk, takes this one's place."""

    def rests(self, node: Node) -> None:
        """All records that the node handed out are durable, and the node knows that."""


class Machine:
    """One node in the virtual world; an endpoint of the network."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Node],
        agenda: Agenda,
        network: Network,
        streams: Streams,
        durability: Durability = "synced",
    ) -> None:
        self.name = name
        self.disk = VirtualDisk()
        self.clock = NodeClock()
        self.state: Literal["down", "up", "paused"] = "down"
        self.node: Node | None = None
        self.on_log: Callable[[str, Log], None] = lambda name, line: None
        self.on_crash: Callable[[str, str], None] = lambda name, how: None
        self.trace: Callable[[str], None] | None = None
        self.on_end: Callable[[Node], None] | None = None
        """Called with a node at the end of its life."""
        self.on_record: Callable[[str, str, str], None] | None = None
        """Called with "writes" (handed to the disk) or "wrote" (synced), the node, and the kind of record."""
        self._watch: WatchesMachine | None = None
        self._heard = frozenset[type]()
        self._serving: int | None = None
        """The link of the message that the node is taking in."""
        self.tracing: Callable[[int], Tracer] | None = None
        """From the number of a life to what records its messages."""
        self._tracer: Tracer | None = None
        self._lives = 0
        self._make = make
        self._agenda = agenda
        self._network = network
        self._durability = durability
        self._disk_chance: random.Random = streams[f"disk {name}"]
        self._pause_chance: random.Random = streams[f"pause {name}"]
        self._life = 0
        self._outbox = Outbox()
        self._groups: deque[Group] = deque()
        self._late: deque[Group] = deque()
        self._holds: dict[str, int] = {}
        self._sync_delay_ns = 0
        self._disk_affected = 0
        """How many groups of records a slow or full disk has delayed or refused."""
        self._timers: dict[str, int] = {}
        self._timer_numbers = 0
        self._links: dict[int, str] = {}
        self._muted: set[int] = set()
        """Links that the node has given up while the effect that ends them still waits."""
        self._is_failing = False
        """A write has failed and the node has not heard of it yet: nothing more is written."""
        self._waiting: list[tuple[Kind, Callable[[], None]]] = []

    def watch(self, watch: WatchesMachine) -> None:
        """From now on `watch` hears of this machine."""
        self._watch = self.disk.watch = watch
        self._heard = watch.hears

    # ---- life and death

    def start(self) -> None:
        """Start the process: the node reads its disk."""
        assert self.state == "down", self.state
        self._life += 1
        self._outbox = Outbox()
        self._groups.clear()
        self._late.clear()
        self._timers.clear()
        self._links.clear()
        self._muted.clear()
        self._waiting.clear()
        self._is_failing = False
        self.state = "up"
        self._lives += 1
        self._tracer = self.tracing(self._lives) if self.tracing is not None else None
        self.node = self._make()
        self._step(Started(self.disk.files()))

    def kill(self) -> None:
        """kill -9: what was written stays, records not yet written are gone, connections end."""
        self._die()
        self._forget_later_files()
        while self._groups:
            group = self._groups.pop()
            if self._disk_chance.random() < 0.5:
                self._groups.clear()
                break
            self._forget_unwritten(group)
        self._network.process_died(self, silently=False)

    def _forget_unwritten(self, group: Group) -> None:
        for record, start in zip(group.records, group.starts, strict=True):
            self.disk.forget_unwritten(_written_to(record), start or 0)

    def _forget_later_files(self) -> None:
        """A host syncs a file before it makes or lengthens the next: of what is not synced, one alone was written.

        Not even an empty file was made behind it: a node that finds one trusts that those before it are synced.
        """
        first = ""
        for group in self._groups:
            for record, start in zip(group.records, group.starts, strict=True):
                first = first or _written_to(record)
                if _written_to(record) != first:
                    self.disk.forget_unwritten(_written_to(record), start)
                    first = "/"  # nothing behind it either

    def terminate(self) -> None:
        """SIGTERM: the process ends in order; all that it was writing is synced, and its peers hear of its end."""
        self._die()
        for group in self._groups:
            self._mark_synced(group)
        self._groups.clear()
        self._network.process_died(self, silently=False)

    def configure(self, make: Callable[[], Node]) -> None:
        """The process that is started next is another, on this disk."""
        self._make = make

    def replace(self, make: Callable[[], Node]) -> None:
        """Another node takes this one's place, on an empty disk; `start` starts it."""
        assert self.state == "down", self.state
        self._make = make
        self.disk = VirtualDisk()
        if self._watch is not None:
            self.disk.watch = self._watch
            self._watch.emptied()

    def lose_power(self) -> int:
        """Everything that was not synced may be lost; peers hear nothing. Returns the bytes lost or spoilt."""
        self._die()
        self._groups.clear()
        lost = self.disk.lose_power(self._disk_chance)
        self._network.process_died(self, silently=True)
        return lost

    def pause(self) -> None:
        if self.state == "up":
            self.state = "paused"

    def resume(self) -> None:
        if self.state != "paused":
            return
        self.state = "up"
        waiting, self._waiting = self._waiting, []
        if self._pause_chance.random() < 0.5:
            waiting.sort(key=lambda entry: entry[0] != "timer")
        life = self._life
        for _, action in waiting:
            if self._life == life and self.state == "up":
                action()

    def _die(self) -> None:
        if self.node is not None and self.on_end is not None:
            self.on_end(self.node)
        self.state = "down"
        self._life += 1
        self.node = None
        self._waiting.clear()
        self._late.clear()

    def _crash(self, how: str) -> None:
        self.kill()
        self.on_crash(self.name, how)

    def status(self) -> Mapping[str, object] | None:
        return self.node.status() if self.node is not None and self.state == "up" else None

    # ---- events in

    def _soon(self, kind: Kind, life: int, action: Callable[[], None]) -> None:
        """Do something to this life of the process, or keep it until a paused one goes on."""
        if life != self._life or self.state == "down":
            return
        if self.state == "paused":
            self._waiting.append((kind, action))
        else:
            action()

    def _step(self, event: Event) -> None:
        assert self.node is not None
        if self.trace is not None:
            self.trace(f"{self.name} {event!r}")
        tracer = self._tracer
        try:
            plain = event if tracer is None else tracer.opened(event)
            effects = self.node.step(plain, self.clock.read(self._agenda.now_ns))
        except StartRefused as refused:
            self._crash(f"refused to start: {refused}")
            return
        except StartAgain as over:
            self.on_log(self.name, Log("warning", "starts again", {"why": str(over)}))
            self.kill()
            self.start()
            return
        except Exception as broken:  # whatever it is, the node is broken and ends
            where = extract_tb(broken.__traceback__)[-1].name
            self._crash(f"{type(broken).__name__} in {where}: {broken}")
            return
        self._serving = event.link if type(event) is Received else None
        self._carry_out(effects if tracer is None else tracer.closed(effects))
        self._serving = None

    # ---- the endpoint of the network

    def accepted(self, link: int) -> None:
        self._soon("input", self._life, lambda: self._accept(link))

    def _accept(self, link: int) -> None:
        self._links[link] = ""
        self._network.greet(link, self)
        self._step(Accepted(link))

    def connected(self, link: int) -> None:
        self._soon("input", self._life, lambda: self._step(Connected(link, self._links[link])))

    def connect_failed(self, link: int, reason: str) -> None:
        self._soon("input", self._life, lambda: self._step(ConnectFailed(self._links.pop(link), reason)))

    def received(self, link: int, message: object) -> None:
        if self.state == "up":
            self._deliver(Received(link, message))
        else:
            self._soon("input", self._life, lambda: self.received(link, message))

    def _deliver(self, event: Event) -> None:
        """Once more; what came on a link that the node has given up since is dropped."""
        if type(event) is not Received or (event.link in self._links and event.link not in self._muted):
            self._step(event)

    def ended(self, link: int, reason: str) -> None:
        self._soon("input", self._life, lambda: self._end(link, reason))

    def _end(self, link: int, reason: str) -> None:
        if self._links.pop(link, None) is not None and link not in self._muted:
            self._step(Disconnected(link, reason))

    # ---- effects out

    def _carry_out(self, effects: object) -> None:
        queued: list[Persist | Remove | Send | Connect | Disconnect] = []
        assert isinstance(effects, list | tuple)
        for effect in effects:
            match effect:
                case Send() | Persist() | Connect() | Remove():
                    queued.append(effect)
                case Disconnect(link):
                    self._muted.add(link)
                    queued.append(effect)
                case SetTimer(name, after_ns):
                    self._set_timer(name, after_ns)
                case Log():
                    self.on_log(self.name, effect)
                case CancelTimer(name):
                    self._timers.pop(name, None)
                case Truncate(file, size):
                    self.disk.truncate(file, size)
                case Again(event):
                    action = partial(self._deliver, event)
                    self._agenda.after(AGAIN_NS, self._soon, "input", self._life, action)
        if queued:
            self._outbox.put(queued)
            self._pump()

    def _pump(self) -> None:
        """Do what may be done, and hand records to the disk."""
        network = self._network
        for effect in self._outbox.take_released():
            match effect:
                case Send(link, message):
                    if link in self._links:
                        if type(message) in self._heard:
                            assert self._watch is not None
                            self._watch.sends(link, message)
                        network.send(link, self, message)
                case Remove(file):
                    self.disk.remove(file)
                case Connect(peer):
                    self._links[network.connect(self, peer)] = peer
                case Disconnect(link):
                    self._muted.discard(link)
                    if self._links.pop(link, None) is not None:
                        network.close(link, self)
        if not self._is_failing and (records := self._outbox.take_records()):
            self._write(records)

    def _set_timer(self, name: str, after_ns: int) -> None:
        self._timer_numbers += 1
        number = self._timers[name] = self._timer_numbers
        life = self._life
        self._agenda.after(self.clock.true_duration_ns(after_ns), self._timer_due, name, number, life)

    def _timer_due(self, name: str, number: int, life: int) -> None:
        self._soon("timer", life, lambda: self._fire(name, number))

    def _fire(self, name: str, number: int) -> None:
        if self._timers.get(name) == number:
            del self._timers[name]
            self._step(TimerFired(name))

    # ---- the disk

    def fill_disk(self, full: bool) -> None:
        """From now on writes fail (or work again)."""
        self.disk.full = full

    def slow_disk(self, delay_ns: int) -> None:
        """From now on every sync takes so much longer."""
        self._sync_delay_ns = delay_ns

    def take_disk_affected(self) -> int:
        affected, self._disk_affected = self._disk_affected, 0
        return affected

    def hold_record(self, record: str) -> None:
        """Let the next record of a kind ("" for any) wait for its sync, and all behind it, until `release_record`."""
        self._holds[record] = self._holds.get(record, 0) + 1

    def release_record(self, record: str) -> None:
        left = self._holds.pop(record, 0) - 1
        if left > 0:
            self._holds[record] = left
        if self._groups:
            self._agenda.after(SYNC_NS, self._sync, self._life)

    def _write(self, records: list[Persist]) -> None:
        if self.disk.full and any(record.data for record in records):
            self._is_failing = True
            self._disk_affected += 1
            self._agenda.after(WRITE_NS, self._soon, "input", self._life, self._fail)
            return
        starts, ends = [], []
        for record in records:
            starts.append(self.disk.length(_written_to(record)))
            end = self.disk.append(_written_to(record), record.data)
            ends.append(end)
            if self._watch is not None:
                self._watch.writes(record, end, self._serving)
        group = Group(tuple(records), tuple(ends), tuple(starts), self._due_ns())
        if self._durability == "written":
            self._agenda.after(WRITEBACK_NS, self._write_back, group, self._life)
            self._agenda.after(WRITE_NS, self._soon, "input", self._life, lambda: self._durable(group))
            return
        self._groups.append(group)
        self._agenda.at(group.due_ns, self._sync, self._life)
        self._tell_records("writes", group)

    def _tell_records(self, does: str, group: Group) -> None:
        for record in group.records:
            if self.on_record is not None:
                self.on_record(does, self.name, record.record)

    def _due_ns(self) -> int:
        delay_ns = SYNC_NS + int(self._disk_chance.expovariate(1 / SYNC_NS))
        if self._disk_chance.random() < 0.01:
            delay_ns += int(self._disk_chance.random() * SLOW_SYNC_NS)
        if self._sync_delay_ns:
            self._disk_affected += 1
            delay_ns += self._sync_delay_ns
        earliest_ns = self._groups[-1].due_ns if self._groups else 0
        return max(self._agenda.now_ns + delay_ns, earliest_ns)

    def _fail(self) -> None:
        """Report records that the full disk did not take, once all before is durable and the node knows."""
        if not self._is_failing or self._groups:
            return
        while self._late:
            self._tell_next()
        if self.node is not None:
            self._is_failing = False
            self._step(PersistFailed(self._outbox.failed(), "no space left on device"))

    def _write_back(self, group: Group, life: int) -> None:
        if life == self._life:
            self._mark_synced(group)

    def _mark_synced(self, group: Group) -> None:
        for record, end in zip(group.records, group.ends, strict=True):
            if record.is_whole:
                self.disk.put_whole(record.file, record.data)
            else:
                self.disk.sync(record.file, end)

    def _sync(self, life: int) -> None:
        """Sync every group that is due, oldest first, up to one that is held."""
        if life != self._life:
            return
        while self._groups and self._groups[0].due_ns <= self._agenda.now_ns:
            group = self._groups[0]
            if self._holds and ("" in self._holds or any(r.record in self._holds for r in group.records)):
                return
            self._groups.popleft()
            self._mark_synced(group)
            self._tell_records("wrote", group)
            if life != self._life:
                return  # its listener ended the process before the node could send anything about it
            self._soon("input", life, lambda group=group: self._durable(group))  # type: ignore[misc]
        if self._is_failing:
            self._soon("input", life, self._fail)

    def _durable(self, group: Group) -> None:
        """Let go what stood behind these records, and tell the node now or a little later."""
        for record in group.records:
            self._outbox.persisted(record.token)
        self._late.append(group)
        draw = self._disk_chance.random()
        if draw < 0.8 and len(self._late) == 1:
            self._pump()
            self._tell_next()
        else:
            delay_ns = int(draw * LATE_NEWS_NS)
            self._agenda.after(delay_ns, self._soon, "input", self._life, self._tell_next)
            self._pump()

    def _tell_next(self) -> None:
        life = self._life
        if self._late:
            for record in self._late.popleft().records:
                if self._life == life:
                    self._step(Persisted(record.token))
        if self._watch is not None and self._life == life and self._rests():
            assert self.node is not None
            self._watch.rests(self.node)

    def _rests(self) -> bool:
        is_busy = self._groups or self._late or self._is_failing or not self._outbox.is_durable
        return not is_busy and self._durability == "synced"


def _written_to(record: Persist) -> str:
    """A file that must appear whole is written under another name first."""
    return record.file + UNFINISHED if record.is_whole else record.file
