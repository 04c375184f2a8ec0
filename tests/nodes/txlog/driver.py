"""Masters of a TxLog under one random schedule: every message, timer and record takes effect when the schedule says so.

Links are first in, first out. A record is on disk at some later step; a master that crashes loses those that are not.
`check` looks at the invariant after every step; `drain` lets everything come to its end.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodes.kernel.effects import CancelTimer, Connect, Disconnect, Effect, Persist, Send, SetTimer, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import (
    Accepted,
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    Received,
    Started,
    TimerFired,
)
from nodes.kernel.outbox import Outbox
from nodes.records import records_of
from nodes.txlog.configuration import MILLISECOND, Configuration
from nodes.txlog.journal import FILE
from nodes.txlog.node import TxLog
from nodes.txlog.refs import Ref

MASTERS = ("n1", "n2", "n3")


class Violated(AssertionError):
    """An invariant does not hold."""


@dataclass
class Link:
    ends: tuple[str, str]
    """The caller, and the called one."""
    queues: dict[str, deque[tuple[str, Any]]]
    """Receiver → what is on its way to it."""


@dataclass
class Host:
    configuration: Configuration
    node: TxLog
    disk: bytes = b""
    outbox: Outbox = field(default_factory=Outbox)
    unsynced: deque[Persist] = field(default_factory=deque)
    timers: dict[str, int] = field(default_factory=dict)
    longest: int = 0
    """How many entries the synchronised queue has had in this life."""
    counter: int = 0
    known: dict[str, int] = field(default_factory=dict)
    """Peer → the last counter that counts, by the records."""


class Driver:
    is_hasty = False
    """Messages leave before the records in front of them are on disk: no host may do so."""

    def __init__(
        self,
        seed: int,
        masters: tuple[str, ...] = MASTERS,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        """`own`: the settings of single masters."""
        self.chance = random.Random(seed)
        self.now_ns = 0
        self.links: dict[int, Link] = {}
        self.cut: set[tuple[str, str]] = set()
        self.made: dict[str, Ref] = {}
        """All transactions that a master has ever made, unless a crash took the record."""
        self.accepted: set[str] = set()
        self.executed: dict[str, list[str]] = {name: [] for name in masters}
        """Master → the ids that it has executed, in order, all its lives together."""
        self.sometimes: Counter[str] = Counter()
        """Rare turns of the lives that are over."""
        self.posts = 0
        """How many POSTs were sent, each to one master."""
        self.backups: dict[str, int] = {}
        """Master → the index of its last backup."""
        self.time_outs = 0
        """Rounds that added without one of the masters."""
        self.rounds: dict[int, set[frozenset[str]]] = {}
        """Length of the synchronised queue → the masters whose messages were in a round behind it, round by round."""
        self.answered: Callable[[Any], None] = self._note_accepted
        """Takes the answers to clients."""
        self.can_split = bool(settings.get("split_ns"))
        self._last = 0
        self.hosts: dict[str, Host] = {}
        for name in masters:
            configuration = Configuration(
                **{"name": name, "masters": masters, **settings, **(own or {}).get(name, {})}
            )
            self.hosts[name] = Host(configuration, TxLog(configuration))
        for name in masters:
            self.step(name, Started({}))

    def add(self, name: str, masters: tuple[str, ...] = ()) -> None:
        """A master that was not there before; by default those that are there are its peers."""
        first = next(iter(self.hosts.values())).configuration
        configuration = replace(first, name=name, masters=masters or (*self.hosts, name))
        self.hosts[name] = Host(configuration, TxLog(configuration))
        self.executed[name] = []
        self.step(name, Started({}))

    # ---- one step

    def step(self, name: str, event: Event) -> None:
        host = self.hosts[name]
        for effect in host.node.step(event, Instant(self.now_ns, self.now_ns)):
            self._take(name, host, effect)
        self._release(name)
        self.check(name)

    def _take(self, name: str, host: Host, effect: Effect) -> None:
        match effect:
            case Persist(_, _, data):
                host.outbox.put([effect])
                if self.is_hasty:
                    host.outbox.persisted(effect.token)
                host.unsynced.append(effect)
                for record in records_of(FILE, data)[0]:
                    self._note(name, record)
            case Send() | Connect() | Disconnect():
                host.outbox.put([effect])
                self.posts += isinstance(effect, Send) and effect.message[0] == "post"
            case SetTimer(timer, after_ns):
                host.timers[timer] = self.now_ns + after_ns
            case CancelTimer(timer):
                host.timers.pop(timer, None)
            case Truncate(_, size):
                host.disk = host.disk[:size]

    def _note(self, name: str, record: list[Any]) -> None:
        known = self.hosts[name].known
        match record:
            case ["made", _, ts, number, _]:
                self.made[number] = Ref(ts, number, name)
            case ["heard", peer, _, int() as counter, _]:
                known[peer] = max(counter, known.get(peer, 0))
            case ["rejoined", _]:
                known.clear()
            case ["added", index, _, bound, posters, absent]:
                self.time_outs += bool(absent)
                if any(bound > known.get(peer, 0) for peer in absent):
                    raise Violated(
                        f"{name} adds up to {bound} without {absent}, and knows {known} since it joined"
                    )
                self.rounds.setdefault(index, set()).add(frozenset((name, *posters)))
                self._check_base(name, index, posters)
            case ["caught-up", index, _, source]:
                self._check_base(name, index, [source])
            case ["executed", _, number, _]:
                self.executed[name].append(number)
            case ["split" | "recovering", _, [int() as index, *_]]:
                self.backups[name] = index
            case ["recovered", *_, last, _]:
                self.hosts[name].known = dict(last)
                common = record[2]
                if self.backups.get(name, 0) > common:
                    raise Violated(f"{name} has a backup of {self.backups[name]} entries, {common} stay")

    def _release(self, name: str) -> None:
        host = self.hosts[name]
        host.outbox.take_records()
        for effect in host.outbox.take_released():
            match effect:
                case Connect(peer) if peer not in self.hosts:
                    self.step(name, ConnectFailed(peer, "it does not run"))
                case Connect(peer):
                    self._last += 1
                    queues = {name: deque[tuple[str, Any]](), peer: deque([("open", None)])}
                    self.links[self._last] = Link((name, peer), queues)
                case Send(link, message) if link < 0:
                    self.answered(message)
                case Send(link, message) if link in self.links:
                    self._push(link, name, ("message", message))
                case Disconnect(link) if link in self.links:
                    self._push(link, name, ("end", None))

    def _push(self, link: int, source: str, item: tuple[str, Any]) -> None:
        target = next(end for end in self.links[link].ends if end != source)
        self.links[link].queues[target].append(item)

    def _note_accepted(self, message: Any) -> None:
        match message:
            case ["answer", _, {"type": "accepted", "id": name}]:
                self.accepted.add(name)

    # ---- what a schedule can do

    def deliver(self, link: int, target: str) -> None:
        found = self.links[link]
        source = next(end for end in found.ends if end != target)
        kind, message = found.queues[target].popleft()
        match kind:
            case "open":
                self.step(target, Accepted(link))
                self._push(link, target, ("greeting", None))
            case "greeting":
                self.step(target, Connected(link, source))
            case "message":
                self.step(target, Received(link, message))
            case "end":
                del self.links[link]
                self.step(target, Disconnected(link, "ended"))

    def persist(self, name: str) -> None:
        host = self.hosts[name]
        record = host.unsynced.popleft()
        host.disk += record.data
        if not self.is_hasty:
            host.outbox.persisted(record.token)
        self.step(name, Persisted(record.token))

    def fire(self, name: str) -> None:
        timers = self.hosts[name].timers
        timer = min(timers, key=lambda each: (timers[each], each))
        self.now_ns = max(self.now_ns, timers.pop(timer))
        self.step(name, TimerFired(timer))

    def submit(self, name: str) -> None:
        key = self.chance.randrange(3)
        self.ask(name, ["submit", 1, [["write", "register", key, self._last]], "accepted"])

    def ask(self, name: str, message: list[Any]) -> None:
        """A request of a client."""
        self._last += 1
        self.step(name, Received(-self._last, message))

    def crash(self, name: str, is_torn: bool = False) -> None:
        """And start it again at once. `is_torn`: half of the next record is on disk."""
        host = self.hosts[name]
        if is_torn and host.unsynced:
            data = host.unsynced[0].data
            host.disk += data[: len(data) // 2]
        for record in host.unsynced:
            for kind, *fields in records_of(FILE, record.data)[0]:
                if kind == "made":
                    del self.made[fields[2]]
        for link, found in [*self.links.items()]:
            if name in found.ends:
                other = next(end for end in found.ends if end != name)
                del self.links[link]
                if found.ends == (other, name) and any(
                    kind in ("open", "greeting") for queue in found.queues.values() for kind, _ in queue
                ):
                    self.step(other, ConnectFailed(name, "it crashed"))
                else:
                    self.step(other, Disconnected(link, "it crashed"))
        self.sometimes.update(host.node.sometimes)
        host.node = TxLog(host.configuration)
        host.outbox, host.unsynced, host.timers, host.longest, host.counter = Outbox(), deque(), {}, 0, 0
        self.step(name, Started({FILE: host.disk} if host.disk else {}))

    def restart(self, name: str, **settings: Any) -> None:
        """With other settings. Raises StartRefused, and then the master goes on with the settings that it had."""
        host, before = self.hosts[name], self.hosts[name].configuration
        host.configuration = replace(before, **settings)
        try:
            self.crash(name)
        except StartRefused:
            host.configuration = before
            self.crash(name)
            raise

    def turn(self) -> None:
        """One random action."""
        chance = self.chance
        names = [*self.hosts]
        match chance.choices(
            ("deliver", "persist", "fire", "submit", "cut", "heal", "crash"), (50, 25, 15, 4, 1, 1.5, 0.3)
        )[0]:
            case "deliver":
                ways = [*self._ways()]
                if ways:
                    self.deliver(*chance.choice(ways))
            case "persist":
                waiting = [name for name in names if self.hosts[name].unsynced]
                if waiting:
                    self.persist(chance.choice(waiting))
            case "fire":
                self.fire(chance.choice(names))
            case "submit":
                self.submit(chance.choice(names))
            case "cut":
                self.cut.add((chance.choice(names), chance.choice(names)))
            case "heal" if self.cut:
                self.cut.remove(chance.choice(sorted(self.cut)))
            case "crash":
                self.crash(chance.choice(names))

    def turn_without_faults(self) -> None:
        """One message, record or timer."""
        ways = [*self._ways()]
        waiting = [name for name, host in self.hosts.items() if host.unsynced]
        if ways and self.chance.random() < 0.6:
            self.deliver(*self.chance.choice(ways))
        elif waiting:
            self.persist(self.chance.choice(waiting))
        else:
            self.fire(min(self.hosts, key=lambda name: min(self.hosts[name].timers.values())))

    def _ways(self) -> Iterator[tuple[int, str]]:
        """Link and receiver of what can be delivered."""
        for link, found in self.links.items():
            one, other = found.ends
            if found.queues[one] and (other, one) not in self.cut:
                yield link, one
            if found.queues[other] and (one, other) not in self.cut:
                yield link, other

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.turn()

    def separate(self, *names: str) -> None:
        """These masters, and the others, hear nothing of each other."""
        others = [name for name in self.hosts if name not in names]
        self.cut = {pair for one in names for other in others for pair in ((one, other), (other, one))}

    def partition(self) -> None:
        """A random shape of cut links."""
        chance, names = self.chance, [*self.hosts]
        chance.shuffle(names)
        pairs = [(one, other) for one in names for other in names if one != other]
        match chance.choice(("one", "halves", "pairs", "alone", "directed", "ring")):
            case "one":
                self.separate(names[0])
            case "halves":
                self.separate(*names[: len(names) // 2])
            case "pairs":
                part = {name: place // 2 for place, name in enumerate(names)}
                self.cut = {pair for pair in pairs if part[pair[0]] != part[pair[1]]}
            case "alone":
                self.cut = set(pairs)
            case "directed":
                self.cut = {chance.choice(pairs)}
            case "ring":
                place_of = {name: place for place, name in enumerate(names)}
                around = (0, 1, len(names) - 1)
                self.cut = {
                    pair for pair in pairs if abs(place_of[pair[0]] - place_of[pair[1]]) not in around
                }

    def pass_ms(self, milliseconds: int) -> None:
        """What is sent arrives at once, unless it is cut off."""
        until_ns = self.now_ns + milliseconds * MILLISECOND
        while self.now_ns < until_ns:
            self._quieten()
            self.fire(min(self.hosts, key=lambda name: min(self.hosts[name].timers.values())))

    def drain(self, within_ns: int = 6_000 * MILLISECOND) -> None:
        """No faults any more: everything that was made is synchronised and executed everywhere."""
        self.cut.clear()
        until_ns = self.now_ns + within_ns
        while not self.is_drained():
            if self.now_ns > until_ns:
                raise Violated(f"not drained: {[host.node.status() for host in self.hosts.values()]}")
            self._quieten()
            self.fire(min(self.hosts, key=lambda name: min(self.hosts[name].timers.values())))

    def _quieten(self) -> None:
        """Nothing is on its way any more, to a master or to a disk."""
        while True:
            for name, host in self.hosts.items():
                while host.unsynced:
                    self.persist(name)
            way = next(self._ways(), None)
            if way is None:
                return
            self.deliver(*way)

    def turns(self) -> Counter[str]:
        """Rare turns of all lives."""
        return sum((Counter(host.node.sometimes) for host in self.hosts.values()), Counter(self.sometimes))

    def is_drained(self) -> bool:
        bases = {host.node.journal.base for host in self.hosts.values()}
        return len(bases) == 1 and all(
            host.node.journal.executed == len(host.node.journal.synced) == len(self.made)
            and not host.node.journal.queue
            for host in self.hosts.values()
        )

    # ---- what must hold

    def check(self, name: str) -> None:
        """The synchronised queue is a prefix of all transactions ever made, sorted by (ts, id), and only grows; so does
        the counter."""
        host = self.hosts[name]
        synced, counter = host.node.journal.synced, host.node.journal.counter
        if counter < host.counter and not host.configuration.bugs:
            raise Violated(f"{name} has the counter {counter}, and had {host.counter}")
        host.counter = counter
        if not synced or self.can_split:
            return
        expected = sorted(self.made.values())[: len(synced)]
        if synced != expected:
            raise Violated(f"{name} has {synced[-5:]} of {len(synced)}, expected {expected[-5:]}")
        if len(synced) < host.longest:
            raise Violated(f"{name} has {len(synced)} entries, and had {host.longest}")
        host.longest = len(synced)

    def _check_base(self, name: str, index: int, others: list[str]) -> None:
        """The entries behind which others were counted, or taken, are the same there."""
        own = self.hosts[name].node.journal
        for other in others:
            theirs = self.hosts[other].node.journal
            if theirs.epoch == own.epoch and theirs.synced[:index] != own.synced[:index]:
                raise Violated(f"{name} goes on behind entry {index} with {other}, which has other entries")

    def check_end(self) -> None:
        hashes = {host.node.journal.state.hash for host in self.hosts.values()}
        if len(hashes) > 1 or not self.accepted <= self.made.keys():
            raise Violated(f"states {hashes}, accepted and lost {self.accepted - self.made.keys()}")
