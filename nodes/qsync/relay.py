"""The sending side of replication: one relay for each replica that subscribed to us.

A relay walks the journal by position. It skips rows that the replica wrote itself or is known to have, and stops
at a window of rows that were sent and not acknowledged, so that a silent replica costs no memory. A transaction is
never cut in two: half of one is nothing that a replica could acknowledge, and so the window would stay shut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodes.iproto.messages import Row
from nodes.kernel.vclock import Vclock

WINDOW_ROWS = 4096


@dataclass(slots=True, eq=False)
class Relay:
    """`sent` and `covered` are positions in the journal: what was sent, and what the replica surely has."""

    link: int
    replica_id: int
    vclock: Vclock
    heard_ns: int
    sent: int = 0
    covered: int = 0

    def take(self, rows: list[Row]) -> tuple[Row, ...]:
        """The rows to send next, and count them as sent."""
        self._skip_known(rows)
        end = min(len(rows), self.covered + WINDOW_ROWS)
        while 0 < end < len(rows) and not rows[end - 1].is_commit:
            end += 1
        if self.sent >= end:
            return ()
        vclock, replica_id = self.vclock, self.replica_id
        chosen = tuple(
            row
            for row in rows[self.sent : end]
            if row.replica_id != replica_id and row.lsn > vclock.get(row.replica_id, 0)
        )
        self.sent = end
        return chosen

    def acknowledge(self, vclock: Mapping[int, int], rows: list[Row], now_ns: int) -> None:
        """The replica has all this on disk."""
        self.vclock = dict(vclock)
        self.heard_ns = now_ns
        self._skip_known(rows)

    def _skip_known(self, rows: list[Row]) -> None:
        """What the replica has, sent by us or not, takes no room in the window."""
        while self.covered < len(rows) and self._has(rows[self.covered]):
            self.covered += 1
        self.sent = max(self.sent, self.covered)

    def _has(self, row: Row) -> bool:
        return row.replica_id == self.replica_id or row.lsn <= self.vclock.get(row.replica_id, 0)

    def cut(self, length: int) -> None:
        """The journal lost its newest rows: it is this long now.

        Messages that carried any of them were dropped whole, older rows in them included; so what is not
        acknowledged is sent again. The replica drops what it has already.
        """
        self.covered = self.sent = min(self.covered, length)
