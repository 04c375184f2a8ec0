"""The owner of the queue, which is the node that may decide and write: a PROMOTE names it.

2.6 knows no PROMOTE: `nodes.qsync.ownership_2_6` has its rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Row, Type
from nodes.kernel.errors import StartRefused
from nodes.qsync.configuration import Identity
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import STATE_NAMES, Election
from nodes.qsync.filter import number
from nodes.qsync.keys import Rejected
from nodes.qsync.limbo import Limbo
from nodes.qsync.options import Options
from nodes.qsync.records import CONTROL
from nodes.qsync.spaces import Space
from nodes.qsync.system_spaces import CLUSTER

OWNERLESS = (
    "the synchronous transaction {}/{} of the log has no PROMOTE before it, as 2.6 writes: start this node with "
    "protocol 2.6, take a snapshot when its queue is empty, and start it as it is now from that"
)
READ_ONLY = "Can't modify data on a read-only instance"


class Ownership:
    """The ownership of the queue, as one node knows it."""

    knows_terms = True
    """Rows of an owner with a past term can be recognized."""
    knows_flags = True
    """Rows say whether they wait; otherwise their space does."""

    def __init__(
        self,
        me: int,
        spaces: Mapping[int, Space],
        limbo: Limbo,
        election: Election,
        options: Options,
        decisions: Decisions,
        *,
        is_orphan: bool,
    ) -> None:
        self._me = me
        self._spaces = spaces
        self._limbo = limbo
        self._election = election
        self._options = options
        self._decisions = decisions
        self.is_orphan = is_orphan
        self.saw_promote = True
        """False: without `owner_after_restart`, the node owned the queue at its start, with no PROMOTE since."""

    @property
    def is_owner(self) -> bool:
        return self._limbo.owner_id == self._me != 0

    @property
    def is_frozen(self) -> bool:
        """The owner may not decide: a higher term has begun, or no PROMOTE came since the start."""
        return self._election.term > self._limbo.term or not self.saw_promote

    @property
    def may_decide(self) -> bool:
        """This node owns the queue in the newest term that it knows; with elections it also leads."""
        if not self.is_owner or self.is_frozen:
            return False
        # Owning is not enough: a leader that is fenced in its own term still owns the queue.
        return not self._options.has_elections or self._election.is_leader

    @property
    def is_writable(self) -> bool:
        return self._decisions.is_writable(self.ro_reason, self._election.is_leader)

    @property
    def ro_reason(self) -> str | None:
        """Why clients may not write: the first reason in Tarantool's order; None if they may."""
        if self._me == 0:
            return "config"  # a node that is not a member must be read-only
        if self._options.has_elections and not self._election.is_leader:
            return "election"
        if not self.may_decide and (self._limbo.owner_id != 0 or self._options.has_elections):
            return "synchro"
        if self._options.read_only:
            return "config"
        return "orphan" if self.is_orphan else None

    def read_only_error(self, members: Sequence[Identity]) -> Rejected:
        """Error 7, with the reason in words."""
        limbo, election = self._limbo, self._election
        match self.ro_reason:
            case "election":
                why = f"state is election {STATE_NAMES[election.state]} with term {election.term}"
                if election.leader_id:
                    why += f", leader is {election.leader_id}{_uuid(election.leader_id, members)}"
            case "synchro":
                owner = f"{limbo.owner_id}{_uuid(limbo.owner_id, members)}"
                why = f"synchro queue with term {limbo.term} belongs to {owner}"
                if self.is_owner and election.term > limbo.term:
                    why += " and is frozen due to fencing"
                elif self.is_owner and not self.saw_promote:
                    why += " and is frozen until promotion"
            case "config":
                why = "box.cfg.read_only is true"
            case _:
                why = "it is an orphan"
        return Rejected(Code.READONLY, message=f"{READ_ONLY} - {why}")

    # ---- what may go into the queue

    @property
    def is_claimed(self) -> bool:
        """The queue has an owner, and no other node can take it without a PROMOTE."""
        return self._limbo.owner_id != 0

    @property
    def _was_never_claimed(self) -> bool:
        """No PROMOTE or DEMOTE took effect so far. The queue of 2.6 is always like this."""
        return self._limbo.owner_id == 0 and self._limbo.term == 1

    def waits(self, space: Space) -> bool:
        """Changes of the space need a quorum. So do changes of the members, once the queue has an owner: otherwise an
        owner that is cut off could change the quorum that overrules it."""
        return space.is_sync or (self.is_claimed and space.definition.id == CLUSTER)

    def is_synchronous(self, rows: Sequence[Row]) -> bool:
        """A row or, in 2.6, its space makes the transaction synchronous; a space that is not there does not."""
        changed = [row for row in rows if row.type != Type.NOP]
        spaces = (self._spaces.get(number(row, Key.SPACE_ID)) for row in changed)
        return any(row.wait_ack for row in changed) or any(space and space.is_sync for space in spaces)

    def enter(self, origin: int) -> bool:
        """A transaction of this node goes into the queue; False if it may not."""
        return True

    def refusal_of(self, rows: Sequence[Row]) -> str | None:
        """Why rows of another node cannot be taken in, in Tarantool's words; None if they can."""
        is_ownerless = self._was_never_claimed and rows[-1].type not in CONTROL and self.is_synchronous(rows)
        return Code.SYNC_QUEUE_UNCLAIMED.text() if is_ownerless else None

    def recover(self, rows: Sequence[Row]) -> None:
        """The log has a transaction that goes into the queue. Raises StartRefused where the protocol forbids that."""
        if self._was_never_claimed:
            raise StartRefused(OWNERLESS.format(rows[-1].replica_id, rows[-1].lsn))


def _uuid(number: int, members: Sequence[Identity]) -> str:
    uuids = [member.uuid for member in members if member.id == number]
    return f" ({uuids[0]})" if uuids else ""
