"""Makes a directed pair of the simulated network worse without cutting it: delay, jitter, reordering, a rate.

Streams stay first-in-first-out, as TCP's are: jitter makes what is behind a late message late too, and a message
overtakes only those of *other* connections of its pair. A rate is shared by all connections of the pair.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

Pair = tuple[str, str]
SECOND_NS = 1_000_000_000


@dataclass(slots=True, kw_only=True, eq=False)
class Shaping:
    """`percent` of the messages come later by `delay_ns` ± `jitter_ns`; all together pass at `bytes_per_s` (0: as
    fast as they come). The other fields are its effect so far, on all its pairs."""

    delay_ns: int = 0
    jitter_ns: int = 0
    percent: int = 100
    bytes_per_s: int = 0
    delayed: int = 0
    first_delayed_ns: int | None = None
    least_late_ns: int | None = None
    most_late_ns: int = 0
    overtook: int = 0
    """Messages that will arrive before one that was sent before them, which it made late."""
    queued: int = 0
    """Messages that had to wait because of its rate."""
    longest_queued_ns: int = 0

    def late_ns(self, chance: random.Random) -> int:
        if self.percent < 100 and chance.random() * 100 >= self.percent:
            return 0
        return max(0, self.delay_ns + int(self.jitter_ns * (2 * chance.random() - 1)))

    def was_late(self, by_ns: int, now_ns: int) -> None:
        self.delayed += 1
        if self.first_delayed_ns is None:
            self.first_delayed_ns = now_ns
        self.least_late_ns = by_ns if self.least_late_ns is None else min(by_ns, self.least_late_ns)
        self.most_late_ns = max(by_ns, self.most_late_ns)


@dataclass(slots=True)
class Shaped:
    """The present shaping of one pair."""

    shapings: list[Shaping] = field(default_factory=list)
    free_ns: int = 0
    """When the last message that a rate lets through has left."""
    latest_ns: int = 0
    """The latest arrival of all that was sent since the pair is shaped."""
    latest_by: tuple[Shaping, ...] = ()
    """The shapings that made that message late."""

    def drawn_ns(self, chance: random.Random) -> dict[Shaping, int]:
        """By how much each shaping makes a message late, but for its rate."""
        return {shaping: shaping.late_ns(chance) for shaping in self.shapings}

    def late_ns(self, now_ns: int, size: int, chance: random.Random) -> dict[Shaping, int]:
        """The same of a message of so many bytes that is sent now, behind all that were sent before it: the lowest
        rate counts."""
        late_ns = self.drawn_ns(chance)
        limits = [shaping for shaping in self.shapings if shaping.bytes_per_s]
        if limits:
            narrowest = min(limits, key=lambda shaping: shaping.bytes_per_s)
            queued_ns = max(0, self.free_ns - now_ns)
            narrowest.queued += queued_ns > 0
            narrowest.longest_queued_ns = max(narrowest.longest_queued_ns, queued_ns)
            self.free_ns = now_ns + queued_ns + size * SECOND_NS // narrowest.bytes_per_s
            late_ns[narrowest] += self.free_ns - now_ns
        return late_ns

    def sent(self, now_ns: int, arrival_ns: int, waits_ns: int, late_ns: dict[Shaping, int]) -> None:
        """Count a message that is sent now. It `waits_ns` longer than the wire takes: for those before it in its
        stream, and for each shaping by `late_ns`."""
        in_all_ns = sum(late_ns.values())
        causes = tuple(shaping for shaping, own_ns in late_ns.items() if own_ns > 0)
        for shaping in causes:
            shaping.was_late(waits_ns - in_all_ns + late_ns[shaping], now_ns)
        if arrival_ns >= self.latest_ns:
            self.latest_ns, self.latest_by = arrival_ns, causes
        else:
            for shaping in self.latest_by:
                shaping.overtook += 1


class Shapings:
    """All pairs that are shaped."""

    def __init__(self) -> None:
        self._pairs: dict[Pair, Shaped] = {}

    def add(self, pairs: Iterable[Pair], shaping: Shaping) -> None:
        for pair in pairs:
            self._pairs.setdefault(pair, Shaped()).shapings.append(shaping)

    def remove(self, pairs: Iterable[Pair], shaping: Shaping) -> None:
        for pair in pairs:
            self._pairs[pair].shapings.remove(shaping)
            if not self._pairs[pair].shapings:
                del self._pairs[pair]

    def of(self, pair: Pair) -> Shaped | None:
        return self._pairs.get(pair)
