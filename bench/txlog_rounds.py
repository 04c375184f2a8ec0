"""The TxLog: how soon masters agree, how much they synchronise, and what a round costs beside a long log.

Masters run in simulated time with links of one exact delay, so agreement is counted in rounds and in round trips. Costs
are those of the core, without encoding and disks: `nodes.txlog` alone.
    python -m bench.txlog_rounds [agreement] [throughput] [log] [--quick]
"""

from __future__ import annotations

import heapq
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from bench.table import print_table
from nodes.kernel.effects import CancelTimer, Connect, Effect, Persist, Send, SetTimer
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

SECOND_NS = 1000 * MILLISECOND
DISK_NS = MILLISECOND // 10


@dataclass
class Host:
    node: TxLog
    outbox: Outbox = field(default_factory=Outbox)
    timers: dict[str, int] = field(default_factory=dict)
    """Name → the number of its last setting."""


class Masters:
    """Masters that hear each other after exactly `delay_ns`, unless they are `apart`."""

    def __init__(self, count: int, delay_ns: int, entries: int = 0, **settings: Any) -> None:
        names = tuple(f"n{number}" for number in range(1, count + 1))
        self.now_ns = 0
        self.delay_ns = delay_ns
        self.apart: frozenset[frozenset[str]] = frozenset()
        self.made_ns: dict[str, int] = {}
        self.added_ns: dict[str, dict[str, int]] = {name: {} for name in names}
        self.posts: dict[str, list[int]] = {name: [] for name in names}
        """Master → when it sent its POSTs."""
        self.adds = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._ends: dict[int, tuple[str, str]] = {}
        configured = {name: TxLog(Configuration(name=name, masters=names, **settings)) for name in names}
        if entries:
            fill([node.journal for node in configured.values()], entries)
        self.hosts = {name: Host(node) for name, node in configured.items()}
        for name in names:
            self.step(name, Started({}))

    def at(self, after_ns: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (self.now_ns + after_ns, self._number, action))

    def run(self, until_ns: int) -> None:
        while self._due and self._due[0][0] <= until_ns:
            self.now_ns, _, action = heapq.heappop(self._due)
            action()
        self.now_ns = until_ns

    def run_until(self, is_over: Callable[[], bool], within_ns: int = 600 * SECOND_NS) -> None:
        end_ns = self.now_ns + within_ns
        while not is_over():
            assert self.now_ns < end_ns, [host.node.status() for host in self.hosts.values()]
            self.run(self.now_ns + MILLISECOND)

    def step(self, name: str, event: Event) -> None:
        host = self.hosts[name]
        for effect in host.node.step(event, Instant(self.now_ns, self.now_ns)):
            self._take(name, host, effect)
        host.outbox.take_records()
        for effect in host.outbox.take_released():
            self._release(name, effect)

    def _take(self, name: str, host: Host, effect: Effect) -> None:
        match effect:
            case Persist(token, _, data):
                self._note(name, data)
                host.outbox.put([effect])
                self.at(DISK_NS, lambda: self._persisted(name, token))
            case SetTimer(timer, after_ns):
                number = host.timers[timer] = host.timers.get(timer, 0) + 1
                self.at(after_ns, lambda: self._fire(name, timer, number))
            case CancelTimer(timer):
                host.timers[timer] = host.timers.get(timer, 0) + 1
            case Connect() | Send():
                host.outbox.put([effect])

    def _note(self, name: str, data: bytes) -> None:
        for record in records_of(FILE, data)[0]:
            match record:
                case ["made", _, _, made, _]:
                    self.made_ns[made] = self.now_ns
                case ["added" | "caught-up", _, refs, *_]:
                    self.adds += 1
                    self.added_ns[name].update((ref[1], self.now_ns) for ref in refs)

    def _persisted(self, name: str, token: int) -> None:
        self.hosts[name].outbox.persisted(token)
        self.step(name, Persisted(token))

    def _fire(self, name: str, timer: str, number: int) -> None:
        if self.hosts[name].timers[timer] == number:
            self.step(name, TimerFired(timer))

    def _release(self, name: str, effect: Effect) -> None:
        match effect:
            case Connect(peer) if frozenset((name, peer)) in self.apart:
                self.at(self.delay_ns, lambda: self.step(name, ConnectFailed(peer, "apart")))
            case Connect(peer):
                self._number += 1
                link = self._number
                self._ends[link] = (name, peer)
                self.at(self.delay_ns, lambda: self.step(peer, Accepted(link)))
                self.at(2 * self.delay_ns, lambda: self.step(name, Connected(link, peer)))
            case Send(link, message) if link in self._ends:
                caller, called = self._ends[link]
                other = called if name == caller else caller
                assert isinstance(message, list)
                if message[0] == "post" and other == min(each for each in self.hosts if each != name):
                    self.posts[name].append(self.now_ns)
                self.at(self.delay_ns, lambda: self._deliver(link, other, message))

    def _deliver(self, link: int, name: str, message: Any) -> None:
        if link in self._ends:
            self.step(name, Received(link, message))

    def separate(self, *names: str) -> None:
        """All links between these masters and the others end."""
        self.apart = frozenset(
            frozenset(pair) for pair in combinations(self.hosts, 2) if len({*pair} & {*names}) == 1
        )
        for link, ends in [*self._ends.items()]:
            if frozenset(ends) in self.apart:
                del self._ends[link]
                for name in ends:
                    self.step(name, Disconnected(link, "apart"))

    def submit(self, name: str, key: int) -> None:
        self._number += 1
        self.step(name, Received(-self._number, ["submit", 1, [["write", "s", key, 1]], "accepted"]))

    def meet(self) -> None:
        self.run_until(lambda: all(host.node.journal.is_matched for host in self.hosts.values()))

    def is_drained(self) -> bool:
        journals = [host.node.journal for host in self.hosts.values()]
        return (
            len({each.base for each in journals}) == 1
            and len({len(each.synced) for each in journals}) == 1
            and all(not each.queue and each.executed == len(each.synced) for each in journals)
        )


def fill(journals: list[Any], entries: int) -> None:
    """Logs of so many executed entries; all masters share the values."""
    refs = [Ref(number, f"n1-0-{number}", "n1") for number in range(1, entries + 1)]
    place = {ref.id: number for number, ref in enumerate(refs, 1)}
    steps = [["write", "s", 1, 1]]
    for journal in journals:
        journal.synced, journal.place = list(refs), dict(place)
        journal.updates = dict.fromkeys(place, steps)
        journal.counter, journal.executed, journal.state.index = entries, entries, entries
        journal.state.values[("s", 1)] = 1


@contextmanager
def core_s(told: list[float]) -> Iterator[None]:
    began_s = time.process_time()
    yield
    told.append(time.process_time() - began_s)


def agreement(delay_ms: float, count: int, busy_ms: float, gap_ms: float, transactions: int) -> list[str]:
    """From "made" to "added" at the origin; the last master of all."""
    masters = Masters(count, int(delay_ms * MILLISECOND), busy_ns=int(busy_ms * MILLISECOND), execute_ns=0)
    masters.meet()
    chance = random.Random(7)
    for number in range(transactions):
        masters.submit(chance.choice(list(masters.hosts)), number)
        masters.run(masters.now_ns + int(chance.expovariate(1 / gap_ms) * MILLISECOND))
    masters.run_until(masters.is_drained)
    at_origin, rounds, everywhere = [], [], []
    for name, made_ns in masters.made_ns.items():
        origin = name.split("-")[0]
        added_ns = masters.added_ns[origin][name]
        at_origin.append(added_ns - made_ns)
        rounds.append(sum(made_ns < sent_ns <= added_ns for sent_ns in masters.posts[origin]))
        everywhere.append(max(added[name] for added in masters.added_ns.values()) - made_ns)
    trip_ns = 2 * delay_ms * MILLISECOND
    return [
        f"{count}",
        f"{2 * delay_ms:g} ms",
        f"{busy_ms:g} ms",
        f"{gap_ms:g} ms",
        f"{statistics.median(at_origin) / MILLISECOND:.1f} ms",
        f"{statistics.median(at_origin) / trip_ns:.2f}",
        f"{statistics.median(everywhere) / trip_ns:.2f}",
        f"{statistics.median(rounds):g}",
        f"{sorted(rounds)[int(len(rounds) * 0.99)]}",
    ]


def throughput(count: int, waiting: int, bursts: int) -> list[str]:
    """So many transactions are made at once, on all masters in turn; then all are synchronised and executed."""
    masters = Masters(count, MILLISECOND, busy_ns=5 * MILLISECOND, execute_ns=0)
    masters.meet()
    spent: list[float] = []
    began_ns = masters.now_ns
    for _ in range(bursts):
        with core_s(spent):
            for number in range(waiting):
                masters.submit(f"n{number % count + 1}", number)
            masters.run_until(masters.is_drained)
    number = waiting * bursts
    virtual_s = (masters.now_ns - began_ns) / SECOND_NS
    return [
        f"{count}",
        f"{waiting:,}",
        f"{number / sum(spent):,.0f}",
        f"{sum(spent) / number * 1e6 / count:,.0f} µs",
        f"{number / virtual_s:,.0f}",
    ]


def beside_a_log(entries: int, transactions: int) -> list[str]:
    """Core time of usual rounds, of rounds with a difference, of the split and of the recovery, beside a long log."""
    masters = Masters(
        3,
        MILLISECOND,
        entries,
        busy_ns=5 * MILLISECOND,
        execute_ns=0,
        strategy="smart",
        split_ns=1_200 * MILLISECOND,
        max_peer_lag_ns=0,
    )
    masters.meet()
    spent: list[float] = []
    before = masters.adds
    with core_s(spent):
        for number in range(transactions):
            masters.submit(f"n{number % 3 + 1}", number)
            masters.run(masters.now_ns + 10 * MILLISECOND)
        masters.run_until(masters.is_drained)
    adds = masters.adds - before
    journal = masters.hosts["n1"].node.journal
    late = masters.hosts["n3"].node
    differences: list[float] = []
    for number in range(20):
        told = Ref(journal.counter + 1 + number, f"late-0-{number}", "n1")
        message: Any = [late.journal.epoch, [], late.journal.base, len(late.journal.synced), [list(told)]]
        late.site.now, late.site.out = Instant(masters.now_ns, masters.now_ns), []
        late.journal.updates[told.id] = [["write", "s", 1, 1]]
        with core_s(differences):
            late.rounds.take_difference("n1", *message)
    masters = Masters(
        3,
        MILLISECOND,
        entries,
        busy_ns=5 * MILLISECOND,
        execute_ns=0,
        strategy="smart",
        split_ns=1_200 * MILLISECOND,
        max_peer_lag_ns=0,
    )
    masters.meet()
    first = masters.hosts["n1"].node.journal
    masters.submit("n1", 1)
    masters.run_until(lambda: first.executed > entries)  # n3 has not posted its new base yet
    masters.separate("n3")
    masters.submit("n1", 2)
    masters.submit("n3", 3)
    split: list[float] = []
    with core_s(split):
        masters.run_until(lambda: all(host.node.journal.missing for host in masters.hosts.values()))
    masters.apart = frozenset()
    recovery: list[float] = []
    with core_s(recovery):
        masters.run_until(lambda: all(host.node.journal.epoch for host in masters.hosts.values()))
    return [
        f"{entries:,}",
        f"{sum(spent) / adds * 1e6:,.0f} µs",
        f"{statistics.median(differences) * 1e6:,.0f} µs",
        f"{sum(split) * 1e3:,.0f} ms",
        f"{sum(recovery) * 1e3:,.0f} ms",
    ]


def show_agreement(few: int) -> None:
    head = [
        "masters",
        "round trip",
        "busy",
        "one every",
        "agreed",
        "in round trips",
        "everywhere",
        "rounds",
        "99 %",
    ]
    cases = (
        (3, 0.5, 1, 5),
        (3, 0.5, 5, 5),
        (3, 5, 5, 5),
        (3, 50, 5, 5),
        (5, 5, 5, 5),
        (7, 5, 5, 5),
        (3, 5, 5, 2_000),
    )
    print_table(
        head,
        [
            agreement(delay_ms, count, busy_ms, gap_ms, 1_000 // few)
            for count, delay_ms, busy_ms, gap_ms in cases
        ],
    )


def show_throughput(few: int) -> None:
    head = ["masters", "made at once", "a core second", "core, each and master", "a virtual second"]
    print_table(
        head,
        [
            throughput(count, waiting, max(2_000 // waiting // few, 1))
            for count in (3, 5, 7)
            for waiting in (10, 100, 1_000)
        ],
    )


def show_long_logs(few: int) -> None:
    head = ["entries", "a round that adds", "a difference of one", "the split", "the recovery"]
    sizes = (1_000, 10_000) if few > 1 else (1_000, 100_000, 1_000_000)
    print_table(head, [beside_a_log(entries, 150 // few) for entries in sizes])


SHOWN = {"agreement": show_agreement, "throughput": show_throughput, "log": show_long_logs}


def main() -> None:
    for name, show in SHOWN.items():
        if name in sys.argv or not {*SHOWN} & {*sys.argv}:
            print(f"\n{name}\n", flush=True)
            show(10 if "--quick" in sys.argv else 1)


if __name__ == "__main__":
    main()
