"""A linearizable read asks what is confirmed."""

from __future__ import annotations

from nodes.kernel.vclock import Vclock
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions
from nodes.qsync.limbo import Limbo


class LinearizableFromConfirmed(Decisions):
    def told_to_reads(self, vclock: Vclock, limbo: Limbo) -> Vclock:
        return {**vclock, limbo.owner_id: limbo.confirmed_lsn}


BUG = Bug(
    decides=LinearizableFromConfirmed,
    does="for a linearizable read a node answers with its confirmed position, not with the position it has written",
    seen="a linearizable read misses an acknowledged write",
    checkers=("linearizable",),
)
