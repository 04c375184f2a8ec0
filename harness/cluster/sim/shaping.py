"""Delay, jitter, reordering and bandwidth in the simulator: the orders to its network, and their observed effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.faults.fault import Fault
from nodes.world.network import Effect
from nodes.world.shaping import Shaping

MICROSECOND_NS = 1_000


@dataclass(frozen=True, slots=True)
class Felt:
    took_effect: bool
    counters: dict[str, int]


def shaping_of(fault: Fault) -> Shaping:
    return Shaping(
        delay_ns=fault.delay_ns,
        jitter_ns=fault.jitter_ns,
        percent=fault.percent if fault.does == "reorder" else 100,
        bytes_per_s=fault.bytes_per_s,
    )


def shaped_effect(fault: Fault, effects: Sequence[Effect]) -> Felt:
    """Whether messages were late, differently late, overtaken or queued, as the fault says; and how many."""
    least_ns = min((e.least_late_ns for e in effects if e.least_late_ns is not None), default=0)
    most_ns = max((effect.most_late_ns for effect in effects), default=0)
    delayed = sum(effect.delayed for effect in effects)
    overtook = sum(effect.overtook for effect in effects)
    queued = sum(effect.queued for effect in effects)
    counters = {
        "delayed": delayed,
        "least_delay_us": least_ns // MICROSECOND_NS,
        "most_delay_us": most_ns // MICROSECOND_NS,
    }
    match fault.does:
        case "jitter":
            return Felt(delayed > 0 and most_ns - least_ns >= fault.jitter_ns // 2, counters)
        case "reorder":
            return Felt(overtook > 0, counters | {"overtook": overtook})
        case "bandwidth":
            longest_ns = max((effect.longest_queued_ns for effect in effects), default=0)
            waits = {"queued": queued, "longest_queued_us": longest_ns // MICROSECOND_NS}
            return Felt(queued > 0, counters | waits)
        case _:
            return Felt(delayed > 0, counters)
