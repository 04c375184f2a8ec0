"""A node's place at a marker is what it had on disk when the marker came."""

from __future__ import annotations

from nodes.kernel.vclock import Vclock
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.journal import Journal


class PlaceBeforeMarker(Decisions):
    def place_at_marker(self, journal: Journal) -> Vclock:
        return dict(journal.vclock)


BUG = Bug(
    decides=PlaceBeforeMarker,
    does="a node takes what is on its disk for its place at a marker; rows in front of it may be on their way there",
    seen="a restore of the cut lacks rows that are in front of its marker",
    checkers=("cuts-marker",),
)
