"""Events that must happen sometimes: rare turns of a node, counted, so that a soak without any of them reports that."""

from __future__ import annotations

INCLUDED = "transaction included in a cut"
EXCLUDED = "transaction excluded from a cut"
RECORDED = "transaction left the active ones while a cut began"
MARKER_FIRST = "cut began by a message before discovery"
MARKER_HELD = "message waited for its cut to begin"
CUT_FAILED = "cut failed"
TAKEN_BACK = "cut failed after a node had finished it"
CUT_REFUSED = "second cut refused"
CUT_OVERTAKEN = "cut failed because a newer one runs"
CUT_OF_RECOVERY = "cut failed by a recovered commit"
CUT_OF_FLAG = "cut refused after a rebalance"
CUT_WAITED = "server that could not finish a cut waited for news of it"
COORDINATOR_DIED_IN_CUT = "coordinator changed during a cut"
ONE_PHASE = "one-phase commit"
ONE_PHASE_IN_CUT = "one-phase commit while a cut ran"
NEAR_IS_CLIENT = "client coordinated a commit"
RECOVERED_COMMIT = "recovery committed"
RECOVERED_ROLLBACK = "recovery rolled back"
IN_DOUBT_AT_START = "transaction in doubt after a restart"
ASKED_NEAR = "restarted participant asked the near node"
CHECK_WAITED = "question of recovery waited for a one-phase commit"
OLD_TOPOLOGY = "prepare of an old topology refused"
HELD_FOR_TOPOLOGY = "message waited for the topology"
NOT_CONFIRMED = "topology not confirmed by a majority"
TAKEOVER_WAITED = "new primary waited for a transaction of the former one"
HANDED_DOWN = "read waited for a write handed down"
LOCK_TIME_OUT = "lock wait timed out"
CONFLICT = "optimistic conflict"
PRIMARY_LEFT_IN_FINISH = "primary left during the finish: near told the backups"
REBALANCED = "partition rebalanced"
REBALANCE_REFUSED = "rebalance of an old topology refused"
COPY_TOO_LATE = "full copy of a former primary came too late"
RESENT = "message sent again after a reconnect"
SNAPSHOT = "base snapshot taken"
SUSPENDED = "transaction suspended"
TORN_TAIL = "torn end of a log cut off"
TRIMMED = "discovery log trimmed"
STATE_TAKEN = "node took the state of a trimmed discovery log"

ROWS = tuple(value for name, value in tuple(globals().items()) if name.isupper() and isinstance(value, str))
"""The rare turns, in the order of the table that shows them."""


class Sometimes(dict[str, int]):
    """Row → how often it occurred."""

    def note(self, row: str, times: int = 1) -> None:
        if times:
            self[row] = self.get(row, 0) + times
