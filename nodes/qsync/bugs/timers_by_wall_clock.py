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
    does="whatever a node times (elections, silent links, waiting for a quorum), it times by its wall clock",
    seen="when that clock goes back, a leader without a quorum is not fenced and a candidate does not stand; "
    "when it goes forward, clients are told of a timeout that has not passed",
    checkers=("leadership", "early-timeout"),
)
