"""A node's places at the markers of consistent cuts.

A marker is a NOP among the rows: every version of Tarantool takes one, with an lsn and without an effect. It travels
like any row, so each node writes it behind the rows that precede it. *Its place* at the marker is the vclock of its log
there. A cut is the place of every member.

A marker looks like a NOP that a filter made. So a node notes its place at each NOP, and drops the oldest places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodes.iproto.messages import Row, Type
from nodes.kernel.vclock import Vclock
from nodes.qsync.decisions import Decisions
from nodes.qsync.journal import LOCAL, Journal, Write, public

MOST = 256
Marker = tuple[int, int]
"""The origin of a marker, and its lsn in that origin's log."""


class Markers:
    """The markers in the log of one node."""

    def __init__(self, journal: Journal, decisions: Decisions) -> None:
        self._journal = journal
        self._decisions = decisions
        self.places: dict[Marker, Vclock] = {}
        """Marker → the place at it, oldest first, of markers that are on disk."""
        self._under_way: dict[int, Vclock] = {}
        """Token → the place, of records on their way to the disk."""

    def writes(self, write: Write) -> None:
        """A record is on its way to the disk."""
        if write.rows[0].type == Type.NOP and all(row.type == Type.NOP for row in write.rows):
            self._under_way[write.token] = public(self._decisions.place_at_marker(self._journal))

    def persisted(self, write: Write) -> None:
        """A record is on disk."""
        place = self._under_way.pop(write.token, None)
        if place is not None:
            self._note(write.rows[-1], place)

    def failed(self) -> None:
        """All records on their way to the disk failed."""
        self._under_way.clear()

    def recovered(self, rows: Iterable[Row], begins: Mapping[int, int]) -> None:
        """Note the places in the log on disk, behind a snapshot of the vclock `begins`."""
        vclock, is_marker = public(begins), True
        for row in rows:
            is_marker = is_marker and row.type == Type.NOP
            if row.replica_id != LOCAL:
                vclock[row.replica_id] = row.lsn
                if is_marker and row.is_commit:
                    self._note(row, dict(vclock))
            is_marker = is_marker or row.is_commit

    def _note(self, row: Row, place: Vclock) -> None:
        self.places[row.replica_id, row.lsn] = place
        if len(self.places) > MOST:
            del self.places[next(iter(self.places))]
