"""A virtual machine: one node with its disk, clock, timers and outbox, and the faults that can befall it.

While a process is paused, everything that would reach it waits. When it goes on, its timers come first, or all
comes in the order in which it would have reached the process: a real event loop does one or the other, so chance
decides here. The disk works beside the node (`nodes.world.disk_queue`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from traceback import extract_tb
from typing import Literal, Protocol

from nodes.kernel.chance import Streams
from nodes.kernel.effects import (
    Again,
    CancelTimer,
    Connect,
    Disconnect,
    Effect,
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
from nodes.world.disk_queue import DiskQueue, Kind
from nodes.world.network import MICROSECOND, Network

AGAIN_NS = 1 * MICROSECOND
"""How soon an event comes that a node asked for once more: time goes on even if it asks for ever."""


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
        self._watch: WatchesMachine | None = None
        self._heard = frozenset[type]()
        self._serving: int | None = None
        """The link of the message that the node is taking in."""
        self.tracing: Callable[[int], Tracer] | None = None
        """From the number of a life to what records its messages."""
        self._tracer: Tracer | None = None
        self._starts = 0
        self._make = make
        self._agenda = agenda
        self._network = network
        self.records = DiskQueue(self, agenda, streams[f"disk {name}"], durability)
        self._pause_chance: random.Random = streams[f"pause {name}"]
        self.generation = 0
        """Another one after each start and each end of the process: what was planned before is void."""
        self.outbox = Outbox()
        self._timers: dict[str, int] = {}
        self._timer_numbers = 0
        self._links: dict[int, str] = {}
        self._muted: set[int] = set()
        """Links that the node has given up while the effect that ends them still waits."""
        self._waiting: list[tuple[Kind, Callable[[], None]]] = []

    def watch(self, watch: WatchesMachine) -> None:
        """From now on `watch` hears of this machine."""
        self._watch = self.disk.watch = watch
        self._heard = watch.hears

    # ---- life and death

    def start(self) -> None:
        """Start the process: the node reads its disk."""
        assert self.state == "down", self.state
        self.generation += 1
        self.outbox = Outbox()
        self.records.process_starts()
        self._timers.clear()
        self._links.clear()
        self._muted.clear()
        self._waiting.clear()
        self.state = "up"
        self._starts += 1
        self._tracer = self.tracing(self._starts) if self.tracing is not None else None
        self.node = self._make()
        self.step(Started(self.disk.files()))

    def kill(self) -> None:
        """kill -9: what was written stays, records not yet written are gone, connections end."""
        self._die()
        self.records.process_killed()
        self._network.process_died(self, silently=False)

    def terminate(self) -> None:
        """SIGTERM: the process ends in order; all that it was writing is synced, and its peers hear of its end."""
        self._die()
        self.records.process_terminated()
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
        lost = self.records.power_lost()
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
            # Stable: within each kind all comes in the order in which it would have come.
            waiting.sort(key=lambda entry: entry[0] != "timer")
        generation = self.generation
        for place, (_, action) in enumerate(waiting):
            # One of the actions has ended the process, and perhaps started it again: the rest was for the former life.
            if self.generation != generation:
                return
            if not self._is_up():  # one of the actions has paused it: the rest still waits
                self._waiting[:0] = waiting[place:]
                return
            action()

    def _is_up(self) -> bool:
        return self.state == "up"

    def _die(self) -> None:
        if self.node is not None and self.on_end is not None:
            self.on_end(self.node)
        self.state = "down"
        self.generation += 1
        self.node = None
        self._waiting.clear()
        self.records.process_ends()

    def _crash(self, how: str) -> None:
        self.kill()
        self.on_crash(self.name, how)

    def status(self) -> Mapping[str, object] | None:
        return self.node.status() if self.node is not None and self.state == "up" else None

    # ---- events in

    def soon(self, kind: Kind, generation: int, action: Callable[[], None]) -> None:
        """Do something to this process, or keep it until a paused one goes on."""
        if generation != self.generation or self.state == "down":
            return
        if self.state == "paused":
            self._waiting.append((kind, action))
        else:
            action()

    def step(self, event: Event) -> None:
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
        self.soon("input", self.generation, lambda: self._accept(link))

    def _accept(self, link: int) -> None:
        self._links[link] = ""
        self._network.greet(link, self)
        self.step(Accepted(link))

    def connected(self, link: int) -> None:
        self.soon("input", self.generation, lambda: self.step(Connected(link, self._links[link])))

    def connect_failed(self, link: int, reason: str) -> None:
        self.soon("input", self.generation, lambda: self.step(ConnectFailed(self._links.pop(link), reason)))

    def received(self, link: int, message: object) -> None:
        if self.state == "up":
            self._deliver(Received(link, message))
        else:
            self.soon("input", self.generation, lambda: self.received(link, message))

    def _deliver(self, event: Event) -> None:
        """Once more; what came on a link that the node has given up since is dropped."""
        if type(event) is not Received or (event.link in self._links and event.link not in self._muted):
            self.step(event)

    def ended(self, link: int, reason: str) -> None:
        self.soon("input", self.generation, lambda: self._end(link, reason))

    def _end(self, link: int, reason: str) -> None:
        if self._links.pop(link, None) is not None and link not in self._muted:
            self.step(Disconnected(link, reason))

    # ---- effects out

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        queued: list[Persist | Remove | Send | Connect | Disconnect] = []
        for effect in effects:
            match effect:
                case Send() | Persist() | Connect() | Remove():
                    queued.append(effect)
                case Disconnect(link):
                    # At once, though the effect waits for the disk: the node has given up the link.
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
                    self._agenda.after(AGAIN_NS, self.soon, "input", self.generation, action)
        if queued:
            self.outbox.put(queued)
            self.pump()

    def pump(self) -> None:
        """Do what may be done, and hand records to the disk."""
        network = self._network
        for effect in self.outbox.take_released():
            match effect:
                case Send(link, message):
                    if link in self._links:
                        if type(message) in self._heard:
                            assert self._watch is not None
                            self._watch.sends(link, message)
                        network.send(link, self, message)
                case Remove(file):
                    self.disk.remove(file)
                case Connect(peer) if network.knows(peer):
                    self._links[network.connect(self, peer)] = peer
                case Connect(peer):  # as the real host answers
                    failed = ConnectFailed(peer, "no address is known for this peer")
                    self._agenda.after(
                        AGAIN_NS, self.soon, "input", self.generation, partial(self.step, failed)
                    )
                case Disconnect(link):
                    self._muted.discard(link)
                    if self._links.pop(link, None) is not None:
                        network.close(link, self)
        if self.records.takes_records and (records := self.outbox.take_records()):
            self.records.write(records)

    def _set_timer(self, name: str, after_ns: int) -> None:
        self._timer_numbers += 1
        # Never used twice: a timer that was set anew, or cancelled, is known by it when it is due.
        number = self._timers[name] = self._timer_numbers
        generation = self.generation
        self._agenda.after(self.clock.true_duration_ns(after_ns), self._timer_due, name, number, generation)

    def _timer_due(self, name: str, number: int, generation: int) -> None:
        self.soon("timer", generation, lambda: self._fire(name, number))

    def _fire(self, name: str, number: int) -> None:
        if self._timers.get(name) == number:
            del self._timers[name]
            self.step(TimerFired(name))

    # ---- the disk

    def fill_disk(self, full: bool) -> None:
        """From now on writes fail (or work again)."""
        self.disk.full = full

    def wrote(self, record: Persist, end: int) -> None:
        if self._watch is not None:
            self._watch.writes(record, end, self._serving)

    def rests(self) -> None:
        if self._watch is not None and self.records.is_at_rest:
            assert self.node is not None
            self._watch.rests(self.node)
