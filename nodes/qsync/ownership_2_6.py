"""The queue of Tarantool 2.6 has no PROMOTE: the node that comes first to an empty queue owns it."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.iproto.codes import Code
from nodes.iproto.messages import Row, Type
from nodes.kernel.errors import StartRefused
from nodes.qsync.configuration import Identity
from nodes.qsync.keys import Rejected
from nodes.qsync.ownership import Ownership
from nodes.qsync.records import CONTROL

FOREIGN = (
    "the transaction {}/{} of the log stands behind the synchronous transaction {}/{} of another node, which nothing "
    "confirms or rolls back, and 2.6 does not read on there: let this node join anew"
)


class ImplicitOwnership(Ownership):
    """The ownership of the queue, as one node of 2.6 knows it."""

    knows_terms = False
    knows_flags = False

    @property
    def ro_reason(self) -> str | None:
        is_read_only = self._me == 0 or self._options.read_only
        return "config" if is_read_only else None

    def read_only_error(self, members: Sequence[Identity]) -> Rejected:
        return Rejected(Code.READONLY)

    @property
    def is_claimed(self) -> bool:
        return False

    def enter(self, origin: int) -> bool:
        """False if another node owns the queue and it is not empty."""
        limbo = self._limbo
        if limbo.owner_id == origin:
            return True
        if limbo.entries:
            return False
        limbo.owner_id = origin
        limbo.acknowledged.clear()
        limbo.confirmed_lsn = limbo.confirming_lsn = 0
        return True

    def refusal_of(self, rows: Sequence[Row]) -> str | None:
        if rows[-1].type in (Type.PROMOTE, Type.DEMOTE, Type.RAFT):
            return f"a row of type {rows[-1].type}, which 2.6 does not know"
        limbo = self._limbo
        is_foreign = bool(limbo.entries) and limbo.owner_id != rows[-1].replica_id
        if is_foreign and rows[-1].type not in CONTROL and rows[-1].type != Type.NOP:
            return Code.UNCOMMITTED_FOREIGN_SYNC_TXNS.text(limbo.owner_id)
        return None

    def recover(self, rows: Sequence[Row]) -> None:
        origin = rows[-1].replica_id or self._me
        if not self.enter(origin):
            owner = self._limbo.owner_id
            raise StartRefused(FOREIGN.format(origin, rows[-1].lsn, owner, self._limbo.entries[0].lsn))
