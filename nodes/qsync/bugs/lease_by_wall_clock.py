"""Linearizable reads by a lease of a clock that may jump."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.kernel.events import Instant
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.relay import Relay


class LeaseByWallClock(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._heard_wall_ns: dict[int, int] = {}

    def serves_alone(
        self, queue: Queue, relays: Mapping[int, Relay], quorum: int, beat_ns: int, now: Instant
    ) -> bool:
        for relay in relays.values():
            self._heard_wall_ns[relay.replica_id] = relay.heard.wall_ns
        since_ns = now.wall_ns - 2 * beat_ns
        heard = sum(wall_ns >= since_ns for wall_ns in self._heard_wall_ns.values())
        return queue.is_owner and 1 + heard >= quorum


BUG = Bug(
    decides=LeaseByWallClock,
    does="an owner that a quorum has answered serves linearizable reads by itself for two heartbeats of its wall clock",
    seen="when that clock goes back, a deposed owner goes on with it, and linearizable reads are stale",
    checkers=("linearizable",),
)
