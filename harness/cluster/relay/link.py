"""One directed link: what faults do to it, and their effects.

A fault that touches a link leaves a `Watch` on it, which counts from the moment the fault took effect and
goes on counting after it was healed (fresh traffic is the proof of healing) until it is forgotten. Faults may
overlap: a link is cut while any fault cuts it, slowed by the sum of all that slow it, and as narrow as the narrowest
makes it.

All times are `time.monotonic_ns()`, the clock that all processes of one machine share.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Generic, Protocol, TypeVar

LinkName = tuple[str, str]
SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class Watch:
    """The effect of one fault on one link. `*_base` are the link's running totals at the beginning, or at healing."""

    begun_ns: int
    passed_base: int
    healed_ns: int | None = None
    fresh_base: int = 0
    bytes_withheld: int = 0
    longest_withheld_ns: int = 0
    connections_hanging: int = 0
    longest_hanging_ns: int = 0
    bytes_delayed: int = 0
    shortest_delay_ns: int | None = None
    longest_delay_ns: int = 0
    bytes_queued: int = 0
    longest_queued_ns: int = 0
    connections_reset: int = 0


@dataclass(frozen=True, slots=True)
class Slowness:
    """A delay with jitter, drawn evenly from delay ± jitter; one random stream a link and fault. And how many bytes
    a second pass at most; 0 is no limit."""

    delay_ns: int
    jitter_ns: int
    chance: random.Random
    bytes_per_s: int = 0

    def draw_ns(self) -> int:
        return max(0, self.delay_ns + self.chance.randint(-self.jitter_ns, self.jitter_ns))


class Waits(Protocol):
    """A pipe of the link, as far as the link knows it: how much waits in it, and since when."""

    withheld_before: int
    withheld_since_ns: int | None
    hangs_since_ns: int | None

    def withheld(self) -> int: ...


P = TypeVar("P", bound=Waits)


class Link(Generic[P]):
    """A directed link. `clear` says that bytes may pass as they come, `is_cut` that none may pass at all.

    `is_used`: the nodes have sent something over it. Bytes that pass while a fault is watched after healing do not
    count, because the harness then sends probes itself; `passed_probes` is the total at the end of the last such time.
    """

    __slots__ = (
        "bytes_per_s",
        "clear",
        "cuts",
        "free_ns",
        "is_cut",
        "is_used",
        "name",
        "passed",
        "passed_probes",
        "pipes",
        "slows",
        "watches",
    )

    def __init__(self, name: LinkName) -> None:
        self.name = name
        self.pipes: dict[P, None] = {}
        self.cuts: dict[int, None] = {}
        self.slows: dict[int, Slowness] = {}
        self.watches: dict[int, Watch] = {}
        self.passed = self.passed_probes = 0
        self.is_used = False
        self.bytes_per_s = 0
        self.free_ns = 0
        self.clear = True
        self.is_cut = False

    def cut(self, fault: int, now_ns: int) -> None:
        self.cuts[fault] = None
        self._changed(fault, now_ns)
        watch = self.watches[fault]
        watch.bytes_withheld = sum(pipe.withheld_before for pipe in self.pipes)
        watch.connections_hanging = sum(pipe.hangs_since_ns is not None for pipe in self.pipes)

    def slow(self, fault: int, slowness: Slowness, now_ns: int) -> None:
        self.slows[fault] = slowness
        self._changed(fault, now_ns)

    def heal(self, fault: int, now_ns: int) -> None:
        """End what this fault does here; its watch goes on."""
        self._note_use()
        self.cuts.pop(fault, None)
        if self.slows.pop(fault, None) is not None:
            self.free_ns = 0  # all that waits goes on now, and nothing waits behind it
        self._refresh()
        self.watches[fault].healed_ns = now_ns

    def forget(self, fault: int) -> None:
        """The watch of a fault that is healed ends, and with it the probes of the harness."""
        if fault not in self.cuts and fault not in self.slows and self.watches.pop(fault, None) is not None:
            self.passed_probes = self.passed

    def count_fresh(self, fault: int) -> None:
        """All held bytes have gone on: bytes that pass from now on prove that the link is whole."""
        self.watches[fault].fresh_base = self.passed

    def due_ns(self, size: int, now_ns: int) -> int:
        """When the next `size` bytes may pass: after the bytes that wait for the rate, and after all delays."""
        queued_ns = 0
        leaves_ns = now_ns
        if self.bytes_per_s:
            queued_ns = max(0, self.free_ns - now_ns)
            self.free_ns = leaves_ns = now_ns + queued_ns + size * SECOND_NS // self.bytes_per_s
        for fault, slowness in self.slows.items():
            watch = self.watches[fault]
            watch.bytes_delayed += size
            if queued_ns and slowness.bytes_per_s == self.bytes_per_s:
                watch.bytes_queued += size
                watch.longest_queued_ns = max(watch.longest_queued_ns, queued_ns)
        return leaves_ns + sum(slowness.draw_ns() for slowness in self.slows.values())

    def was_late(self, since_ns: int, now_ns: int) -> None:
        """Count bytes, or an end, that waited since then and are handed on now, for the faults that made them wait."""
        by_ns = now_ns - since_ns
        for watch in (self.watches[fault] for fault in self.slows):
            if watch.begun_ns > since_ns:
                continue
            known_ns = watch.shortest_delay_ns
            watch.shortest_delay_ns = by_ns if known_ns is None else min(known_ns, by_ns)
            watch.longest_delay_ns = max(watch.longest_delay_ns, by_ns)

    def observe(self, now_ns: int) -> None:
        """While the link is cut: bring the counters of all faults that cut it up to date."""
        for pipe in self.pipes:
            withheld = pipe.withheld()
            self.is_used |= bool(withheld) or pipe.hangs_since_ns is not None
            grown = max(0, withheld - pipe.withheld_before)
            pipe.withheld_before = withheld
            if not withheld:
                pipe.withheld_since_ns = None
            elif pipe.withheld_since_ns is None:
                pipe.withheld_since_ns = now_ns
            for watch in self._cutting():
                watch.bytes_withheld += grown
                self._note_waiting(watch, pipe, now_ns)

    def counters(self, fault: int) -> dict[str, int | None]:
        """The watch of a fault as JSON; `bytes_fresh` passed since it was healed, `is_cut` is of now."""
        watch = self.watches[fault]
        values: dict[str, int | None] = asdict(watch)
        fresh = 0 if watch.healed_ns is None else self.passed - watch.fresh_base
        del values["passed_base"], values["fresh_base"]
        return values | {
            "bytes_passed": self.passed - watch.passed_base,
            "bytes_fresh": fresh,
            "is_cut": int(self.is_cut),
            "is_used": int(self.is_used),
        }

    def _cutting(self) -> list[Watch]:
        return [self.watches[fault] for fault in self.cuts]

    def _note_waiting(self, watch: Watch, pipe: Waits, now_ns: int) -> None:
        if pipe.withheld_since_ns is not None:
            since = max(pipe.withheld_since_ns, watch.begun_ns)
            watch.longest_withheld_ns = max(watch.longest_withheld_ns, now_ns - since)
        if pipe.hangs_since_ns is not None:
            since = max(pipe.hangs_since_ns, watch.begun_ns)
            watch.longest_hanging_ns = max(watch.longest_hanging_ns, now_ns - since)

    def hanging(self) -> None:
        """A connection was dialed into the cut."""
        for watch in self._cutting():
            watch.connections_hanging += 1

    def _changed(self, fault: int, now_ns: int) -> None:
        self._note_use()
        self.watches[fault] = Watch(begun_ns=now_ns, passed_base=self.passed)
        self._refresh()

    def _note_use(self) -> None:
        if all(watch.healed_ns is None for watch in self.watches.values()):
            self.is_used |= self.passed > self.passed_probes

    def _refresh(self) -> None:
        self.is_cut = bool(self.cuts)
        self.bytes_per_s = min(
            (slow.bytes_per_s for slow in self.slows.values() if slow.bytes_per_s), default=0
        )
        self.clear = not self.cuts and not self.slows
