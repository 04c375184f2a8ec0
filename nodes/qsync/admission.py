"""The maximum size of the queue: transactions that wait until there is room in it.

The queue is full when its entries have as many bytes in the log as `replication_synchro_queue_max_size`, or more; while
a byte is free, a whole transaction goes in. Only clients of the writable node have to wait: rows of other nodes are
always taken in, because the CONFIRM that makes room stands behind them (#11836).

The log is full, too, while more bytes than `wal_queue_max_size` are on their way to the disk: clients and rows of
other nodes (`nodes.qsync.applier`) wait until some of these bytes are on disk. Tarantool has one line for all; here the
rows of other nodes go first, and the node's own records (votes, CONFIRMs) do not wait.

The *wait mode* says what a client's transaction waits for:

| mode | answered | if the queue is full |
|---|---|---|
| complete | when it is confirmed | waits |
| submit | when it is in the queue; its outcome is not reported | waits |
| none | as submit | error 289, of the log 287 |

A transaction that waits has written nothing yet. When there is room, they go on in the order of coming. When the node
becomes read-only their clients get that error; when the queue is being rolled back they get error 217 like its entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nodes.kernel.events import Instant
from nodes.qsync.commits import Commits
from nodes.qsync.sometimes import WAITED_FOR_ROOM


class Admission:
    """The waiting transactions, each as a function that submits it again."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._waiting: deque[Callable[[Instant], None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_shut(self) -> bool:
        """There is no room, or earlier transactions still wait."""
        return self._has_no_room or bool(self._waiting)

    @property
    def _has_no_room(self) -> bool:
        commits = self._commits
        if commits.is_log_full:
            return True
        return commits.is_full and commits.is_writable and not commits.limbo.is_in_rollback

    def put(self, again: Callable[[Instant], None]) -> None:
        self._commits.sometimes.note(WAITED_FOR_ROOM)
        self._waiting.append(again)

    def proceed(self, now: Instant) -> None:
        """Admit as many transactions as there is room for."""
        # Room is looked at anew for each: the one before may have filled the queue.
        while self._waiting and not self._has_no_room:
            self._waiting.popleft()(now)
