"""Linearizable reads by a lease of a clock that may jump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions

if TYPE_CHECKING:
    from nodes.kernel.events import Instant
    from nodes.qsync.replica import Replica


class LeaseByWallClock(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._heard_wall_ns: dict[int, int] = {}

    def serves_alone(self, replica: Replica, now: Instant) -> bool:
        for relay in replica.relays.values():
            self._heard_wall_ns[relay.replica_id] = relay.heard.wall_ns
        since_ns = now.wall_ns - 2 * replica.options.replication_timeout_ns
        heard = sum(wall_ns >= since_ns for wall_ns in self._heard_wall_ns.values())
        return replica.commits.is_owner and 1 + heard >= replica.options.quorum_size


BUG = Bug(
    decides=LeaseByWallClock,
    does="an owner that a quorum has answered serves linearizable reads by itself for two heartbeats of its wall clock",
    seen="when that clock goes back, a deposed owner goes on with it, and linearizable reads are stale",
    checkers=("linearizable",),
)
