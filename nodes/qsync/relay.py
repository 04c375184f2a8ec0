"""The sending side of replication: one relay for each replica that subscribed to us.

A relay walks the journal by position. It skips rows that the replica wrote itself or is known to have, and stops
at a window of rows that were sent and not acknowledged, so that a silent replica costs no memory. A transaction is
never cut in two: half of one is nothing that a replica could acknowledge, and so the window would stay shut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodes.iproto.messages import Row
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock
from nodes.qsync.journal import LOCAL

WINDOW_ROWS = 4096


@dataclass(slots=True, eq=False)
class Relay:
    """`sent` and `covered` are positions in the journal: behind the rows sent, and behind those it surely has."""

    link: int
    replica_id: int
    vclock: Vclock
    heard: Instant
    """When the last message of the replica came."""
    lag_s: float = 0.0
    """The time from writing the newest acknowledged row to its acknowledgement, by wall clocks."""
    sent: int = 0
    covered: int = 0
    hanging: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(token, begin, end): messages that leave when the record `token` is on disk, and the positions of their rows."""

    def take(self, rows: list[Row], token: int | None) -> tuple[Row, ...]:
        """The rows to send next, which then count as sent. `token`: the record in flight that they wait for."""
        if self.sent == len(rows):
            return ()  # as after most events
        self._skip_known(rows)
        end = min(len(rows), self.covered + WINDOW_ROWS)
        # Beyond the window rather than within a transaction, which could never be acknowledged.
        while 0 < end < len(rows) and not rows[end - 1].is_commit:
            end += 1
        if self.sent >= end:
            return ()
        vclock, replica_id = self.vclock, self.replica_id
        chosen = tuple(
            row
            for row in rows[self.sent : end]
            if row.replica_id not in (LOCAL, replica_id) and row.lsn > vclock.get(row.replica_id, 0)
        )
        if token is not None:
            self.hanging.append((token, self.sent, end))
        self.sent = end
        return chosen

    def acknowledge(self, vclock: Mapping[int, int], rows: list[Row], now: Instant) -> None:
        """The replica has all rows up to `vclock` on disk."""
        self.vclock = dict(vclock)
        self.heard = now
        known = self.covered
        self._skip_known(rows)
        if self.covered > known and rows[self.covered - 1].timestamp:
            self.lag_s = now.wall_ns / 1e9 - rows[self.covered - 1].timestamp

    def _skip_known(self, rows: list[Row]) -> None:
        """Pass over rows that the replica has, sent by this relay or not: they take no room in the window."""
        while self.covered < len(rows) and self._has(rows[self.covered]):
            self.covered += 1
        self.sent = max(self.sent, self.covered)
        while self.hanging and self.hanging[0][2] <= self.covered:
            self.hanging.popleft()

    def _has(self, row: Row) -> bool:
        return row.replica_id in (LOCAL, self.replica_id) or row.lsn <= self.vclock.get(row.replica_id, 0)

    def cut(self, length: int, lost_from: int) -> None:
        """The journal lost its newest rows, the records from token `lost_from` on, and now has `length` rows.

        Messages that waited for these records were dropped as a whole: older rows in them are sent again.
        """
        self.sent = min(self.sent, length)
        self.covered = min(self.covered, length)
        while self.hanging and self.hanging[-1][0] >= lost_from:
            self.sent = min(self.sent, self.hanging.pop()[1])

    def shift(self, gone: int) -> None:
        """The journal dropped `gone` rows at its beginning; the replica has all of them."""
        self.sent = max(self.sent - gone, 0)
        self.covered = max(self.covered - gone, 0)
        self.hanging = deque(
            (token, max(begin - gone, 0), end - gone) for token, begin, end in self.hanging if end > gone
        )
