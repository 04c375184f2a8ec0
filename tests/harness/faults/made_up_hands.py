"""Hands for faults of real nodes, made of whatever a test has."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.cluster.real_time import RealTime

Status = Callable[[str], Awaitable[Mapping[str, object] | None]]
SetClock = Callable[[str, int, int], Awaitable[None]]


class MadeUpHands(RealTime):
    """As `harness.faults.hands.Hands`, in real time."""

    name = "made-up"
    heartbeat_ns = 250_000_000
    ready_within_ns = 10_000_000_000
    may_refuse = False

    def __init__(
        self,
        status: Status,
        *,
        processes: Any = None,
        limits: Any = None,
        links: Any = None,
        set_clock: SetClock | None = None,
    ) -> None:
        super().__init__(0)
        self.status = status
        self.processes = processes
        self.limits = limits
        self.links = links
        self.set_clock = set_clock

    def storage(self, node: str) -> Any:
        raise AssertionError("this fault has no disk")

    def wall_ns(self, node: str) -> int:
        return time.time_ns()
