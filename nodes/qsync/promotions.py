"""PROMOTE and DEMOTE: the queue changes its owner.

With elections a PROMOTE is itself an entry (*synchronous PROMOTE*): its row says that it waits. It stays in `pending`
until a quorum has it in its own term. The CONFIRM that follows lets it decide about the former owner's entries and
pass on the queue. A PROMOTE whose row does not say that it waits takes effect when it is written, on every node and at
every restart.
"""

from __future__ import annotations

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Response, Row, Type
from nodes.kernel.effects import Effect, Log
from nodes.kernel.events import Instant
from nodes.qsync import sometimes as rare
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Election
from nodes.qsync.fates import Fates
from nodes.qsync.filter import Promotion, chain_of
from nodes.qsync.journal import Draft, Journal
from nodes.qsync.limbo import Limbo
from nodes.qsync.options import Options
from nodes.qsync.ownership import Ownership
from nodes.qsync.records import Records
from nodes.qsync.sometimes import Sometimes


class Promotions:
    """The PROMOTEs that one node writes and receives. `at_once`: its own take effect when they are written."""

    def __init__(
        self,
        *,
        me: int,
        at_once: bool,
        pending: list[Promotion],
        limbo: Limbo,
        journal: Journal,
        election: Election,
        options: Options,
        decisions: Decisions,
        ownership: Ownership,
        fates: Fates,
        records: Records,
        sometimes: Sometimes,
        out: list[Effect],
    ) -> None:
        self._me = me
        self.at_once = at_once
        self.pending = pending
        """By ascending term: a later one may stand on an earlier one, whatever order they came in."""
        self._limbo = limbo
        self._journal = journal
        self._election = election
        self._options = options
        self._decisions = decisions
        self._ownership = ownership
        self._fates = fates
        self._records = records
        self._sometimes = sometimes
        self._out = out
        self._is_confirming = False
        """The CONFIRM of the newest own PROMOTE is written, or on its way to the disk."""

    @property
    def own(self) -> Promotion | None:
        """The node's own PROMOTE of this term, if it waits for its quorum."""
        if self.pending and self.pending[-1].origin == self._me and self._election.is_leader:
            return self.pending[-1] if self.pending[-1].term == self._election.term else None
        return None

    @property
    def quorum(self) -> int:
        """How many nodes must acknowledge a PROMOTE; the number may change while it waits."""
        return self._decisions.quorum_of_promote(self._options.quorum_size, self._election.term)

    @property
    def acks(self) -> int | None:
        """How many nodes have the own PROMOTE, if it waits for its quorum."""
        promotion = self.own
        if promotion is None:
            return None
        return sum(lsn >= promotion.row_lsn for lsn in self._limbo.acknowledged.values())

    def lead(self, now: Instant) -> None:
        """Write the PROMOTE of the election that this node won."""
        self.write(now, None, is_demote=False)

    def write(self, now: Instant, reply: tuple[int, Response] | None, *, is_demote: bool) -> None:
        """Write a PROMOTE or DEMOTE in the term of the election; it keeps all entries of the queue.

        Its flags say when it takes effect (`nodes.qsync.unmarked`). Without elections that is when it is written:
        `Control` has made sure that a quorum has these entries, and the term has no votes.
        """
        # Those of an earlier leadership are of an older term (decision 9).
        if self._options.has_elections:
            self._limbo.acknowledged.clear()
        if self.pending:
            old_owner, lsn = self.pending[-1].new_owner, self.pending[-1].row_lsn
        else:
            old_owner, lsn = self._limbo.owner_id, self._decisions.kept_by_promote(self._limbo)
        body = {
            Key.REPLICA_ID.value: old_owner,
            Key.LSN.value: lsn,
            Key.TERM.value: self._election.term,
        }
        # The one place that ends it: a leader whose CONFIRM is lost resigns, and has to write a new PROMOTE first.
        self._is_confirming = False
        waits = self._options.has_elections and not self.at_once
        draft = Draft((Type.DEMOTE if is_demote else Type.PROMOTE).value, body)
        write = self._journal.write_own((draft,), now.wall_ns / 1e9, wait_sync=True, wait_ack=waits)
        self._records.write(write, None, reply)

    def begin_term(self, now: Instant) -> None:
        """Begin a term without an election. The log has the term before any row of it."""
        self._election.new_term(now.monotonic_ns)
        self._election.must_write = False  # written here and now: the PROMOTE may follow in this same step
        self._records.save_vote(now)

    def confirm(self, promotion: Promotion, now: Instant) -> None:
        """Write the CONFIRM of the own PROMOTE, if a quorum has it."""
        if self._is_confirming or self._limbo.is_in_rollback:
            return
        if self._limbo.quorum_lsn(self.quorum) >= promotion.row_lsn:
            self._is_confirming = True
            body = {Key.REPLICA_ID.value: self._me, Key.LSN.value: promotion.row_lsn}
            self._records.control(Type.CONFIRM, body, now)

    def written(self, row: Row) -> None:
        """A PROMOTE or DEMOTE is on disk."""
        promotion = Promotion.of_row(row)
        if promotion.term > self._limbo.term:
            # One that a newer one outran on the way here may still be what the next leader stands on.
            self.pending.append(promotion)
            self.pending.sort(key=lambda known: known.term)
            # Also one that does not wait stands in `pending` first: it may stand on one that does.
            if not promotion.waits:
                self.take_over(promotion)
        else:
            fields = {"origin": promotion.origin, "term": promotion.term}
            self._out.append(Log("info", "a PROMOTE of an old term", fields))

    def take_over(self, promotion: Promotion) -> None:
        """A PROMOTE takes effect, after those that it stands on; earlier ones outside that chain have no effect."""
        chain = chain_of(promotion, self.pending)
        if len(chain) > 1:
            self._sometimes.note(rare.PROMOTE_STACKED)
        self._sometimes.note(rare.PROMOTE_OVERTAKEN, self.pending.index(promotion) >= len(chain))
        del self.pending[: self.pending.index(promotion) + 1]
        for link in chain:  # by ascending term: each takes the queue from the one before it
            self._change_owner(link)

    def _change_owner(self, promotion: Promotion) -> None:
        owner = promotion.new_owner
        if self._limbo.entries and owner != self._limbo.owner_id:
            self._sometimes.note(rare.OWNER_CHANGED_BUSY)
        self._ownership.saw_promote = True
        confirmed, discarded = self._limbo.promote(promotion.origin, owner, promotion.lsn, promotion.term)
        self._fates.commit_entries(confirmed)
        for entry in discarded:
            self._fates.discard(entry.transaction, Code.SYNC_ROLLBACK)
        if self._ownership.is_owner and not self._options.has_elections:
            self._limbo.acknowledge(self._me, self._journal.vclock.get(self._me, 0))
        if confirmed and promotion.old_owner != owner:
            self._sometimes.note(rare.CONFIRMED_FOREIGN)
        if discarded:
            self._sometimes.note(rare.PROMOTE_ROLLED_BACK)
        fields = {"owner": owner, "term": promotion.term, "confirmed": len(confirmed)}
        self._out.append(Log("info", "the queue has an owner", {**fields, "rolled_back": len(discarded)}))
