"""Events that must happen sometimes: rare turns of a node, counted, so that a soak without any of them reports that.

A run of the simulator reads these counts from the nodes; nothing else depends on them.
"""

from __future__ import annotations

OWNER_CHANGED_BUSY = "leader changed with a non-empty limbo"
CONFIRMED_FOREIGN = "PROMOTE confirmed entries of another owner"
PROMOTE_ROLLED_BACK = "PROMOTE rolled back entries"
PROMOTE_OVERTAKEN = "PROMOTE was overtaken by another"
PROMOTE_STACKED = "PROMOTE stood on one without a quorum"
OLD_ROW_DROPPED = "row of an old term dropped"
SPLIT_BRAIN = "split-brain detected, applier stopped"
ACK_BEFORE_LSN = "ACK before the owner knew its LSN"
DETACHED = "client of a waiting transaction let go"
ROLLED_BACK = "rolled back on timeout"
SPLIT_VOTE = "split vote"
FENCED = "leader fenced"
HELD_BACK = "candidacy held back by pre-vote"
VOTE_REFUSED = "vote refused to a node that lacks rows"
RECOVERED_BUSY = "recovered with a non-empty limbo"
READ_WAITED = "linearizable read waited for the limbo"
READ_GIVEN_UP = "linearizable read given up"
ANSWER_WAITED = "answer without effect waited for what it saw"
WAITED_FOR_ROOM = "write waited for room in the queue"
WAITED_FOR_DISK = "rows of a peer waited for a full log"
CAPTURE_WAITED = "snapshot or join waited for the limbo"
ASYNC_WAITED = "asynchronous transaction waited in the queue"
ASYNC_RECOVERED = "asynchronous transaction recovered in the queue"
ASYNC_ROLLED_BACK = "asynchronous transaction rolled back in the queue"
CONFIRM_FAILED = "CONFIRM failed on a full disk"
ACK_IN_ROLLBACK = "ACK while a ROLLBACK was being written"
JOINED_ANEW = "joined anew, as rows it needed were gone elsewhere"
CHANGED_IN_ELECTION = "option changed in an election"
CHANGED_IN_PROMOTION = "option changed while a PROMOTE waited"
CHANGED_BUSY = "option changed with a non-empty limbo"
CHANGED_IN_JOIN = "option changed during a join"
CHANGED_IN_READ = "option changed while a linearizable read waited"

ROWS = tuple(value for name, value in tuple(globals().items()) if name.isupper() and isinstance(value, str))
"""The rare turns, in the order of the table that shows them."""


class Sometimes(dict[str, int]):
    """Row → how often it occurred."""

    def note(self, row: str, times: int = 1) -> None:
        self[row] = self.get(row, 0) + times
