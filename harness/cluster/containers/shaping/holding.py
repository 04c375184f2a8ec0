"""Which packet may go when: links that are slow, uneven, narrow or out of order, and what was measured on them.

Faults may overlap on a link: delays add up, the lowest rate counts. Order is kept on a link, as in a router's queue,
but for the packets that a reordering makes late. A packet that would wait in a narrow link's queue for longer than
`QUEUE_NS` is dropped, as a router drops it, and TCP slows down.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

Link = tuple[str, str]
Token = TypeVar("Token")
SECOND_NS: Final = 1_000_000_000
QUEUE_NS: Final = SECOND_NS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """`percent` of the packets come later by `delay_ns` ± `jitter_ns`; at most `bytes_per_s` pass (0: no limit).

    `keeps_order`: packets behind a late one wait for it.
    """

    delay_ns: int = 0
    jitter_ns: int = 0
    percent: int = 100
    bytes_per_s: int = 0
    keeps_order: bool = True


@dataclass(slots=True)
class Watch:
    """The measured effect of one fault on one link; times are `time.monotonic_ns()`."""

    begun_ns: int
    packets: int = 0
    packets_held: int = 0
    bytes_held: int = 0
    packets_overtook: int = 0
    packets_queued: int = 0
    packets_dropped: int = 0
    first_held_ns: int | None = None
    shortest_held_ns: int | None = None
    longest_held_ns: int = 0
    longest_queued_ns: int = 0

    def was_held(self, for_ns: int, size: int) -> None:
        self.packets_held += 1
        self.bytes_held += size
        self.longest_held_ns = max(for_ns, self.longest_held_ns)
        shortest_ns = self.shortest_held_ns
        self.shortest_held_ns = for_ns if shortest_ns is None else min(shortest_ns, for_ns)


@dataclass(slots=True)
class _Link:
    shapings: dict[int, tuple[Shaping, random.Random]] = field(default_factory=dict)
    watches: dict[int, Watch] = field(default_factory=dict)
    waiting: dict[int, None] = field(default_factory=dict)
    """The numbers of the packets that are held, in the order in which they came."""
    free_ns: int = 0
    last_due_ns: int = 0
    last_held_by: tuple[int, ...] = ()
    """The faults that made the packet of `last_due_ns` wait, and with it those that keep their place behind it."""

    def rate(self) -> int:
        return min(
            (shaping.bytes_per_s for shaping, _ in self.shapings.values() if shaping.bytes_per_s), default=0
        )


@dataclass(frozen=True, slots=True)
class _Held(Generic[Token]):
    token: Token
    link: Link
    taken_ns: int
    size: int
    held_by: tuple[int, ...]
    """The faults that make it wait; without any, it waits only to be seen to overtake."""
    late_by: tuple[int, ...]
    """Those of them that let later packets overtake it."""


@dataclass(frozen=True, slots=True)
class _Delay:
    due_ns: int
    held_by: tuple[int, ...]
    late_by: tuple[int, ...]


class Holding(Generic[Token]):
    """All packets that are held; a `Token` is whatever names a packet for the caller."""

    def __init__(self) -> None:
        self._links: dict[Link, _Link] = {}
        self._order: list[tuple[int, int]] = []
        self._held: dict[int, _Held[Token]] = {}
        self._taken = 0

    def shape(self, fault: int, links: Iterable[Link], shaping: Shaping, seed: int, now_ns: int) -> None:
        for name in links:
            link = self._links.setdefault(name, _Link())
            link.shapings[fault] = (shaping, random.Random(f"{seed} shape {name[0]} {name[1]}"))
            link.watches[fault] = Watch(begun_ns=now_ns)

    def unshape(self, fault: int) -> list[Token]:
        """End a fault. Returns the packets, in order, that may go at once: no other fault shapes their links. On the
        other links packets go when they were to go, and those behind them wait for that.
        """
        for link in self._links.values():
            link.shapings.pop(fault, None)
        free = {name for name, link in self._links.items() if not link.shapings}
        freed = sorted(number for number, held in self._held.items() if held.link in free)
        tokens = [self._held.pop(number).token for number in freed]
        for name in free:
            link = self._links[name]
            link.waiting.clear()
            link.free_ns = link.last_due_ns = 0  # the packets of the next fault wait behind none of these
            link.last_held_by = ()
        return tokens

    def forget(self, fault: int) -> None:
        for name in list(self._links):
            link = self._links[name]
            link.watches.pop(fault, None)
            if not link.shapings and not link.watches:
                del self._links[name]

    def discard_of(self, is_gone: Callable[[Token], bool]) -> None:
        """Forget packets whose container is gone."""
        for number in [number for number, held in self._held.items() if is_gone(held.token)]:
            held = self._held.pop(number)
            self._links[held.link].waiting.pop(number, None)

    def shaped_links(self) -> list[Link]:
        return [name for name, link in self._links.items() if link.shapings]

    def stranded(self) -> int:
        """How many packets wait on links that are not shaped any more; unless it is 0, the fault is not healed."""
        return sum(not self._links[held.link].shapings for held in self._held.values())

    def watches(self, fault: int) -> dict[Link, dict[str, int | None]]:
        return {
            name: asdict(link.watches[fault]) for name, link in self._links.items() if fault in link.watches
        }

    def take(self, name: Link, token: Token, size: int, now_ns: int) -> bool | None:
        """A packet has come: True if it may go at once, None if it is to be dropped, False if it is held from now on.

        A packet that passes waiting packets is "held" until the next `due`, so that it is seen to overtake them.
        """
        link = self._links.get(name)
        if link is None or not link.shapings:
            return True
        delay = self._delay(link, size, now_ns)
        if delay is None:
            return None
        if delay.due_ns <= now_ns and not link.waiting:
            return True
        self._taken += 1
        link.waiting[self._taken] = None
        self._held[self._taken] = _Held(token, name, now_ns, size, delay.held_by, delay.late_by)
        heappush(self._order, (delay.due_ns, self._taken))
        for fault in delay.held_by:
            watch = link.watches[fault]
            watch.first_held_ns = watch.first_held_ns or now_ns
        return False

    def _delay(self, link: _Link, size: int, now_ns: int) -> _Delay | None:
        leaves_ns, queued_ns = self._leaves_ns(link, size, now_ns)
        kept_ns, late_ns, rate = leaves_ns, 0, link.rate()
        held_by: list[int] = []
        late_by: list[int] = []
        for fault, (shaping, chance) in link.shapings.items():
            watch = link.watches[fault]
            watch.packets += 1
            is_narrowest = bool(rate) and shaping.bytes_per_s == rate
            if queued_ns and is_narrowest:
                watch.packets_queued += 1
                watch.longest_queued_ns = max(watch.longest_queued_ns, queued_ns)
                if queued_ns > QUEUE_NS:
                    watch.packets_dropped += 1
            drawn_ns = _drawn_ns(shaping, chance)
            if shaping.keeps_order:
                kept_ns += drawn_ns
                if drawn_ns or is_narrowest:
                    held_by.append(fault)
            elif drawn_ns:
                late_ns += drawn_ns
                late_by.append(fault)
        if queued_ns > QUEUE_NS:
            return None
        if kept_ns >= link.last_due_ns:
            link.last_due_ns, link.last_held_by = kept_ns, tuple(held_by)
        waits_for = link.last_held_by if link.last_due_ns > now_ns else ()
        return _Delay(link.last_due_ns + late_ns, (*waits_for, *late_by), tuple(late_by))

    def _leaves_ns(self, link: _Link, size: int, now_ns: int) -> tuple[int, int]:
        """When the packet has passed the narrow place, and how long it waits for those before it."""
        rate = link.rate()
        if not rate:
            return now_ns, 0
        queued_ns = max(0, link.free_ns - now_ns)
        if queued_ns <= QUEUE_NS:
            link.free_ns = now_ns + queued_ns + size * SECOND_NS // rate
        return link.free_ns, queued_ns

    def next_due_ns(self) -> int | None:
        while self._order and self._order[0][1] not in self._held:
            heappop(self._order)
        return self._order[0][0] if self._order else None

    def due(self, now_ns: int) -> list[Token]:
        """The packets that are due, in the order in which they go."""
        tokens: list[Token] = []
        while (due_ns := self.next_due_ns()) is not None and due_ns <= now_ns:
            number = heappop(self._order)[1]
            held = self._held.pop(number)
            self._note(number, held, now_ns)
            tokens.append(held.token)
        return tokens

    def _note(self, number: int, held: _Held[Token], now_ns: int) -> None:
        link = self._links[held.link]
        passed = itertools.takewhile(lambda waiting: waiting != number, link.waiting)
        for fault in {fault for waiting in passed for fault in self._held[waiting].late_by} & {*link.watches}:
            link.watches[fault].packets_overtook += 1
        del link.waiting[number]
        for fault in held.held_by:
            if fault in link.watches:
                link.watches[fault].was_held(now_ns - held.taken_ns, held.size)


def _drawn_ns(shaping: Shaping, chance: random.Random) -> int:
    if shaping.percent < 100 and chance.random() * 100 >= shaping.percent:
        return 0
    return max(0, shaping.delay_ns + chance.randint(-shaping.jitter_ns, shaping.jitter_ns))
