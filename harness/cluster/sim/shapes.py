"""One shape of a changing partition in the simulator, and its observed effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.faults.fault import Link, ShapeSeen
from nodes.world.network import Effect


@dataclass(slots=True)
class SeenShape:
    links: tuple[Link, ...]
    begun_ns: int
    until_ns: int | None = None
    withheld: int = 0
    longest_ns: int = 0
    first_ns: int | None = None

    def ends(self, now_ns: int, effects: Mapping[Link, Effect]) -> None:
        """Another shape follows, or healing. Bytes withheld before this shape began count from then on."""
        self.until_ns = now_ns
        self.withheld = sum(effect.withheld for effect in effects.values())
        longest_ns = max((effect.longest_withheld_ns for effect in effects.values()), default=0)
        self.longest_ns = min(longest_ns, now_ns - self.begun_ns)
        first = (e.first_withheld_ns for e in effects.values() if e.first_withheld_ns is not None)
        self.first_ns = min(first, default=None)

    def took_effect(self, heartbeat_ns: int) -> bool:
        return self.longest_ns > heartbeat_ns

    def told(self, heartbeat_ns: int) -> ShapeSeen:
        return ShapeSeen(
            links=self.links,
            asked_ns=self.begun_ns,
            in_effect_ns=self.begun_ns,
            until_ns=self.until_ns,
            took_effect=self.took_effect(heartbeat_ns),
        )
