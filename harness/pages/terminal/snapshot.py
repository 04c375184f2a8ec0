"""A run at one moment, as the live view shows it. The conductor of the run makes one as often as it likes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["up", "paused", "dead", "unknown"]


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A node by its name, and whether it runs."""

    name: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a live view shows.

    `time_ns` is the time since the run began, `end_ns` when its load ends. `faults` are the names of those active
    now, in the order in which they began; the same name twice means two of them. Unknown values are None.
    `message` is what the run is doing when it is not under load ("healing", "waiting until settled", …).
    """

    time_ns: int
    end_ns: int
    ok: int = 0
    fail: int = 0
    info: int = 0
    rate_per_s: float = 0.0
    faults: tuple[str, ...] = ()
    owner: str | None = None
    owner_state: tuple[str, ...] = ()
    """The owner's state in the words of its system."""
    nodes: tuple[NodeCondition, ...] = ()
    message: str = ""

    @property
    def left_s(self) -> float:
        return max(self.end_ns - self.time_ns, 0) / 1e9

    @property
    def part_done(self) -> float:
        """From 0.0 to 1.0."""
        return min(max(self.time_ns / self.end_ns, 0.0), 1.0) if self.end_ns > 0 else 1.0
