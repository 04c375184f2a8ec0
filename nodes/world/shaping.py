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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """`percent` of the messages come later by `delay_ns` ± `jitter_ns`; all together pass at `bytes_per_s` (0: as
    fast as they come)."""

    delay_ns: int = 0
    jitter_ns: int = 0
    percent: int = 100
    bytes_per_s: int = 0

    def late_ns(self, chance: random.Random) -> int:
        if self.percent < 100 and chance.random() * 100 >= self.percent:
            return 0
        return max(0, self.delay_ns + int(self.jitter_ns * (2 * chance.random() - 1)))


@dataclass(slots=True)
class Shaped:
    """The present shaping of one pair."""

    shapings: list[Shaping] = field(default_factory=list)
    free_ns: int = 0
    """When the last message that a rate lets through has left."""
    latest_ns: int = 0
    """The latest arrival of all that was sent since the pair is shaped."""

    def rate(self) -> int:
        """Bytes a second; 0 if nothing limits it."""
        return min((shaping.bytes_per_s for shaping in self.shapings if shaping.bytes_per_s), default=0)

    def leaves_ns(self, now_ns: int, size: int) -> int:
        """When a message of so many bytes has left, behind all that came before it."""
        rate = self.rate()
        if not rate:
            return now_ns
        self.free_ns = max(now_ns, self.free_ns) + size * SECOND_NS // rate
        return self.free_ns


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
