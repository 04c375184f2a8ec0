"""Seeded bugs of a master, a file each (`nodes.kernel.seeded`)."""

from __future__ import annotations

from nodes.kernel.seeded import Bug, Bugs
from nodes.txlog.decisions import Decisions

__all__ = ["NAMES", "Bug", "bug", "decisions_with"]

BUGS = Bugs(__name__, __path__, Decisions)
NAMES, bug, decisions_with = BUGS.names, BUGS.bug, BUGS.decisions_with
