"""A cut without coordination: each node says where it is when it is asked."""

from __future__ import annotations

from nodes.kernel.vclock import Vclock
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.journal import Journal


class PlaceWhenAsked(Decisions):
    def told_place(self, noted: Vclock, journal: Journal) -> Vclock:
        return journal.vclock


BUG = Bug(
    decides=PlaceWhenAsked,
    does="a node reports its present place in the log, not its place at the marker",
    seen="a restore of the cut has rows from behind its marker, which their origin may lack",
    checkers=("cuts-marker",),
)
