"""Whatever is timed, is timed by the wall clock."""

from __future__ import annotations

from nodes.kernel.events import Instant
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class TimersByWallClock(Decisions):
    def clock(self, now: Instant) -> Instant:
        return Instant(now.wall_ns, now.wall_ns)


BUG = Bug(
    decides=TimersByWallClock,
    does="all timers of a node (elections, silent links, waiting for a quorum) use its wall clock",
    seen="when that clock goes back, a leader without a quorum is not fenced and a candidate does not stand; "
    "when it goes forward, clients get timeouts that have not passed",
    checkers=("leadership", "early-timeout"),
)
