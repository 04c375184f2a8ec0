"""A record counts as on disk before it is synced."""

from __future__ import annotations

from nodes.kernel.outbox import Durability
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class AckBeforeFsync(Decisions):
    durable_when: Durability = "written"


BUG = Bug(
    decides=AckBeforeFsync,
    does="a record counts as on disk when it is written, not when it is synced: replies and messages overtake the sync",
    seen="a power loss loses acknowledged writes",
    checkers=("linearizable", "convergence", "audit", "crash"),
)
