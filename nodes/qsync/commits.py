"""From submitted to committed: the life of a transaction between the client's request and the answer.

    submit ─▶ prepared, its rows on their way to the disk
                │ written                          │ the journal failed: 40, those behind it 134
                ▼                                  ▼
    not synchronous, limbo empty: committed      gone
    else: waits in the limbo
                │ a quorum has it: CONFIRM written     │ waited for too long: ROLLBACK written
                ▼                                      ▼
             committed, answered                    gone: 216 for the oldest, 217 for those behind it

With elections a PROMOTE waits, too, until a quorum has it (`promotions.py`); until then rows of the old term keep their
bodies. Rows of an owner with a past term become NOPs. `ownership.py` says which node owns the queue and which may
write, `records.py` has the records on their way to the disk, `fates.py` ends transactions.

The same path serves rows of other nodes (`apply`), where CONFIRM and ROLLBACK come as rows, and recovery
(`replay`), where everything is on disk already. A record takes effect when it is on disk, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Response, Row, Type
from nodes.kernel.effects import Effect, Log, Send, SetTimer
from nodes.kernel.events import Instant
from nodes.qsync import sometimes as rare
from nodes.qsync.configuration import Configuration
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Election
from nodes.qsync.evaluation import changes_of_rows
from nodes.qsync.fates import Fates
from nodes.qsync.filter import Contradiction, Promotion, number, promotion_decided
from nodes.qsync.journal import LOCAL, Draft, Journal, Write, size_of
from nodes.qsync.keys import Rejected
from nodes.qsync.limbo import UNWRITTEN, Entry, Limbo
from nodes.qsync.markers import Markers
from nodes.qsync.options import Options
from nodes.qsync.ownership import Ownership
from nodes.qsync.ownership_2_6 import ImplicitOwnership
from nodes.qsync.promotions import Promotions
from nodes.qsync.records import CONTROL, DATA, Records, is_nothing
from nodes.qsync.snapshot import QueueState
from nodes.qsync.sometimes import Sometimes
from nodes.qsync.spaces import Change, Space, Transaction, commit

SYNCHRO_TIMER = "synchro"


class Commits:
    """The limbo of one node, and its transactions until they end. Effects are appended to `out`."""

    def __init__(
        self,
        configuration: Configuration,
        journal: Journal,
        spaces: dict[int, Space],
        election: Election,
        options: Options,
        decisions: Decisions,
        out: list[Effect],
    ) -> None:
        self.configuration = configuration
        self.options = options
        self.decisions = decisions
        self.journal = journal
        self.spaces = spaces
        self.election = election
        self.out = out
        self.limbo = Limbo()
        self.limbo.forgets_confirmed = configuration.confirmed_lsn_after_promote == "zero"
        self.sometimes = Sometimes()
        self.pending: list[Promotion] = []
        """PROMOTEs that wait for their quorum."""
        self._me = configuration.me.id
        self.is_recovered = False
        """The log has been replayed."""
        rules = ImplicitOwnership if configuration.protocol == "2.6" else Ownership
        self.ownership = rules(
            *(self._me, spaces, self.limbo, election, options, decisions),
            is_orphan=configuration.replication_connect_quorum > 0,
        )
        self.fates = Fates(out)
        self.markers = Markers(journal, decisions)
        self.records = Records(journal, election, self.pending, self._log)
        self.promotions = Promotions(
            me=self._me,
            at_once=decisions.promotes_at_once(configuration),
            pending=self.pending,
            limbo=self.limbo,
            journal=journal,
            election=election,
            options=options,
            decisions=decisions,
            ownership=self.ownership,
            fates=self.fates,
            records=self.records,
            sometimes=self.sometimes,
            out=out,
        )
        self._timer_armed = False
        self._replicas = frozenset[int]()
        self.reconfigure(configuration)

    def reconfigure(self, configuration: Configuration) -> None:
        """The members have changed: all other members may acknowledge."""
        self.configuration = configuration
        self._replicas = frozenset(member.id for member in configuration.registered) - {configuration.me.id}
        counted = {*self._replicas, self._me}
        for gone in [replica for replica in self.limbo.acknowledged if replica not in counted]:
            del self.limbo.acknowledged[gone]  # what it had counts for nothing any more

    def restore(self, queue: QueueState, vclock: Mapping[int, int]) -> None:
        """Take over a snapshot's state of the queue; all its data, up to `vclock`, is confirmed."""
        self.limbo.confirmed_of = dict(queue.confirmed_of)
        self.limbo.held_lsn = vclock.get(queue.owner_id, 0)
        self.limbo.owner_id, self.limbo.term = queue.owner_id, queue.term
        self.limbo.confirmed_lsn = self.limbo.confirming_lsn = queue.confirmed_lsn
        if queue.owner_id:
            self.limbo.term_of[queue.owner_id] = queue.term

    def _log(self, write: Write) -> None:
        self.markers.writes(write)
        self.decisions.log(self, write)

    @property
    def is_full(self) -> bool:
        """The queue has reached its maximum size."""
        return 0 < self.options.queue_max_size <= self.limbo.size

    @property
    def is_log_full(self) -> bool:
        """More bytes than `wal_queue_max_size` are on their way to the disk."""
        return 0 < self.options.wal_queue_max_size < self.journal.in_flight_bytes

    @property
    def is_owner(self) -> bool:
        return self.ownership.is_owner

    @property
    def is_writable(self) -> bool:
        """Clients may write."""
        return self.ownership.is_writable

    def read_only_error(self) -> Rejected:
        """Error 7, with the reason."""
        return self.ownership.read_only_error(self.configuration.members)

    def answer(self, transaction: Transaction) -> None:
        """Answer the client of a committed transaction."""
        self.fates.answer(transaction)

    # ---- submitting

    def submit(
        self,
        changes: tuple[Change, ...],
        drafts: tuple[Draft, ...],
        reply: tuple[int, Response] | None,
        now: Instant,
        *,
        is_sync: bool = False,
        answers_at_once: bool = False,
    ) -> None:
        """Submit a client's transaction; `reply` leaves when it has committed, or as soon as it is queued.

        A transaction of local rows alone waits for no quorum, but for the transactions before it.
        """
        if not drafts:
            assert reply is not None, "what we write ourselves is logged"
            self._commit_unlogged(changes, reply)
            return
        is_local = drafts[0].is_local and all(draft.is_local for draft in drafts)
        wait_ack = not is_local and (is_sync or any(self.ownership.waits(change.space) for change in changes))
        replies = [] if reply is None else [reply]
        # Behind an entry everything waits: it may depend on that entry, and is rolled back with it.
        wait_sync = wait_ack or len(self.limbo) > 0
        if wait_sync and self.records.is_behind_barrier:
            # The row on its way discards the queue now, and at a restart it would stand before this transaction.
            self.fates.refuse(replies, Code.SYNC_ROLLBACK)
            return
        if wait_sync and not self.ownership.enter(self._me):
            self.fates.refuse(replies, Code.UNCOMMITTED_FOREIGN_SYNC_TXNS, self.limbo.owner_id)
            return
        flags = (wait_sync, wait_ack) if self.ownership.knows_flags else (False, False)
        self.sometimes.note(rare.ASYNC_WAITED, wait_sync and not wait_ack)
        transaction = Transaction(changes, replies=[] if answers_at_once else replies)
        if answers_at_once:
            # Before the record, on purpose: the client learns that it is queued, not that any disk has it.
            self.out += [Send(*reply) for reply in replies]
        timestamp = now.wall_ns / 1e9
        write = self.journal.write_own(drafts, timestamp, wait_sync=flags[0], wait_ack=flags[1])
        entry = Entry(transaction, wait_ack, is_awaited=not answers_at_once) if wait_sync else None
        self._begin(write, transaction, entry)

    def _commit_unlogged(self, changes: tuple[Change, ...], reply: tuple[int, Response]) -> None:
        """Commit changes of temporary spaces alone: they are not logged, so they wait for no record."""
        if any(change.key in change.space.prepared for change in changes):
            self.fates.refuse([reply], Code.TRANSACTION_CONFLICT)
            return
        transaction = Transaction(changes, replies=[reply])
        self.fates.prepare(transaction)
        self.fates.commit(transaction)

    def clear_queue(self, owner: int, lsn: int, now: Instant) -> None:
        """2.6: in the name of another owner, confirm its entries up to `lsn` and roll back the rest."""
        entries = [entry for entry in self.limbo.entries if entry.wait_ack]
        confirmed = [entry.lsn for entry in entries if entry.lsn <= lsn]
        discarded = [entry.lsn for entry in entries if entry.lsn > lsn]
        if confirmed:
            self.records.control(
                Type.CONFIRM, {Key.REPLICA_ID.value: owner, Key.LSN.value: confirmed[-1]}, now
            )
        if discarded:
            self.records.control(
                Type.ROLLBACK, {Key.REPLICA_ID.value: owner, Key.LSN.value: discarded[0]}, now
            )

    def apply(self, rows: tuple[Row, ...], sender: int) -> None:
        """Apply a transaction of another node, received from `sender`; `Contradiction` if it must not be taken in."""
        assert not self.records.is_behind_barrier, "nothing is taken in behind a ROLLBACK that is not on disk"
        # Judged before they are numbered: rows that contradict leave nothing in the journal.
        rows = self._filtered(rows, sender)
        transaction, wait_ack = (None, False) if rows[-1].type in CONTROL else self._read_of_peer(rows)
        write = self.journal.write(rows)
        if transaction is None:
            row = write.rows[-1]
            # Noted now, not when it is on disk: the rows behind it are judged by what it will have confirmed.
            if row.type == Type.CONFIRM and number(row, Key.REPLICA_ID) == self.limbo.owner_id:
                self.limbo.confirming_lsn = max(self.limbo.confirming_lsn, number(row, Key.LSN))
            self.records.write(write)
            return
        wait_sync = wait_ack or (len(self.limbo) > 0 and not is_nothing(write.rows))
        if wait_sync:
            may_enter = self.ownership.enter(write.origin)
            assert may_enter, "asked before: refusal_of"
        # A CONFIRM right behind a synchronous entry is checked against its lsn, which must be known before the disk has
        # it. An asynchronous entry with an lsn would commit with the entry before it, written or not.
        entry = Entry(transaction, wait_ack, lsn=write.lsn if wait_ack else UNWRITTEN) if wait_sync else None
        self._begin(write, transaction, entry)

    def _read_of_peer(self, rows: tuple[Row, ...]) -> tuple[Transaction, bool]:
        """As `_read`; Contradiction for rows that make no change here which they could make."""
        for row in (row for row in rows if row.type != Type.NOP):
            if row.type not in DATA:
                raise Contradiction(Code.UNKNOWN_REQUEST_TYPE, row.type)
            if number(row, Key.SPACE_ID) not in self.spaces:
                raise Contradiction(Code.NO_SUCH_SPACE, number(row, Key.SPACE_ID))
        try:
            return self._read(rows)
        except Rejected as rejected:
            raise Contradiction(rejected.code, message=str(rejected)) from rejected

    def _filtered(self, rows: tuple[Row, ...], sender: int) -> tuple[Row, ...]:
        if not self.ownership.knows_terms:
            return rows
        origin = self.decisions.judged_origin(rows, sender)
        try:
            taken = self.decisions.taken_in(rows, origin, self.limbo, self.pending)
        except Contradiction:
            self.sometimes.note(rare.SPLIT_BRAIN)
            raise
        if taken is not rows:
            self.sometimes.note(rare.OLD_ROW_DROPPED)
        return taken

    def _begin(self, write: Write, transaction: Transaction, entry: Entry | None) -> None:
        self.fates.prepare(transaction)
        if entry is not None:
            # Queued before it is written: the replicas may acknowledge before this node's disk reports.
            entry.promised_lsn, entry.size = write.lsn, write.size
            entry.inserted_ns = self.fates.now_ns
            self.limbo.append(entry)
        self.records.write(write, entry or transaction)

    @property
    def last_waiting(self) -> int:
        """The number of the newest transaction in the limbo, 0 if it is empty."""
        return self.limbo.entries[-1].transaction.number if self.limbo.entries else 0

    def has_settled(self, number: int) -> bool:
        """No transaction up to this number is still in the limbo."""
        return not self.limbo.entries or self.limbo.entries[0].transaction.number > number

    def _read(self, rows: tuple[Row, ...]) -> tuple[Transaction, bool]:
        """The transaction that rows describe, and whether it is synchronous."""
        return Transaction(tuple(changes_of_rows(rows, self.spaces))), self.ownership.is_synchronous(rows)

    # ---- the disk answers

    def persisted(self, write: Write, now: Instant) -> None:
        """A write is on disk: it takes effect."""
        waiting, reply, _ = self.records.persisted(write, now)
        self.markers.persisted(write)
        if write.origin == self._me and (
            self.election.is_leader if self.options.has_elections else self.is_owner
        ):
            self.limbo.acknowledge(self._me, write.lsn)
        match waiting:
            case None:
                self.take_effect(write.rows[-1])
            case Transaction():
                self.fates.commit(waiting)
            case Entry():
                self._written(waiting, write.lsn, now)
        if reply is not None:
            self.out.append(Send(*reply))
        self.confirm_what_a_quorum_has(now)
        self.watch_timeout(now)

    def _written(self, entry: Entry, lsn: int, now: Instant) -> None:
        entry.lsn = lsn
        entry.written_ns = now.monotonic_ns
        self.decisions.written(self, entry)
        self.fates.commit_entries(self.limbo.settled())

    def failed(self, error: str) -> bool:
        """All writes in flight failed. True if rows of other nodes were among them."""
        lost = self.records.failed()
        self.markers.failed()
        # Newest first: only the newest entry can leave the limbo, and the newest version a prepared key.
        for place, (write, (waiting, reply, _)) in enumerate(lost):
            self.sometimes.note(rare.CONFIRM_FAILED, write.rows[-1].type == Type.CONFIRM)
            code = Code.WAL_IO if place == len(lost) - 1 else Code.CASCADE_ROLLBACK
            if isinstance(waiting, Entry):
                self.limbo.drop_newest(waiting)
            if waiting is not None:
                transaction = waiting.transaction if isinstance(waiting, Entry) else waiting
                self.fates.discard(transaction, code)
            if reply is not None:
                self.fates.refuse([reply], code)
        self.limbo.confirming_lsn = self.limbo.confirmed_lsn
        self.limbo.is_in_rollback = False
        self.out.append(Log("error", "journal write failed", {"error": error, "writes": len(lost)}))
        return any(write.origin not in (self._me, LOCAL) for write, _ in lost)

    # ---- CONFIRM, ROLLBACK, PROMOTE

    def take_effect(self, row: Row) -> None:
        """Do what a row on disk decides about entries."""
        lsn = number(row, Key.LSN)
        match row.type:
            case Type.CONFIRM:
                self._confirmed(row, lsn)
            case Type.ROLLBACK:
                # with 2.6 another node may clear the queue, in its owner's name
                if number(row, Key.REPLICA_ID) == self.limbo.owner_id:
                    self._roll_back(lsn)
            case Type.PROMOTE | Type.DEMOTE:
                self.promotions.written(row)

    def _confirmed(self, row: Row, lsn: int) -> None:
        """Confirm up to `lsn`. A CONFIRM of an owner with a past term is ignored: the later PROMOTE has covered it."""
        promotion = promotion_decided(row, self.pending)
        if promotion is not None:
            self.promotions.take_over(promotion)
        if number(row, Key.REPLICA_ID) == self.limbo.owner_id:
            self.fates.commit_entries(self.limbo.confirm(lsn))

    def acknowledge(self, replica_id: int, lsn: int, term: int, now: Instant) -> None:
        """A replica has this node's rows up to `lsn`; only members count, each once, in the own term.

        Without elections there are no votes, and a lower term counts too: that replica knows of no other owner.
        """
        if self.options.has_elections:
            counts = term == self.election.term and self.election.is_leader
        else:
            counts = self.is_owner and not self.ownership.is_frozen
        if counts and lsn > self.journal.vclock.get(self._me, 0):
            self.sometimes.note(rare.ACK_BEFORE_LSN)
        self.sometimes.note(rare.ACK_IN_ROLLBACK, counts and self.limbo.is_in_rollback)
        if counts and replica_id in self._replicas and self.limbo.acknowledge(replica_id, lsn):
            self.confirm_what_a_quorum_has(now)

    def confirm_what_a_quorum_has(self, now: Instant) -> None:
        """Write a CONFIRM if there is an entry to confirm. Only one is in flight, so the next covers more entries."""
        limbo, promotion = self.limbo, self.promotions.own
        if promotion is not None:
            self.promotions.confirm(promotion, now)
            return
        if not limbo.entries or not self.ownership.may_decide or limbo.is_in_rollback:
            return
        if limbo.confirming_lsn > limbo.confirmed_lsn:
            return
        lsn = limbo.confirmable(self.options.quorum_size)
        if lsn is not None:
            # Before the record is on disk: from now on no timeout may roll these entries back.
            limbo.confirming_lsn = lsn
            for confirmed in self.decisions.confirms(lsn):
                body = {Key.REPLICA_ID.value: self._me, Key.LSN.value: confirmed}
                self.records.control(Type.CONFIRM, body, now)

    def _oldest_watched(self) -> Entry | None:
        """The entry with the next timeout: the oldest one with a waiting client. None if that is not written yet."""
        rolls_back = self.options.rollback_on_timeout
        if rolls_back and not self.ownership.may_decide:
            return None
        watched = (
            queued
            for queued in self.limbo.entries
            if queued.transaction.replies or (rolls_back and _ends(queued))
        )
        entry = next(watched, None)
        return None if entry is None or entry.lsn == UNWRITTEN else entry

    def options_changed(self, now: Instant) -> None:
        """Quorum and timeout may have changed."""
        self._timer_armed = False
        self.confirm_what_a_quorum_has(now)
        self.watch_timeout(now)

    def watch_timeout(self, now: Instant) -> None:
        """Keep one timer running while the oldest entry waits; when it fires, the timeout is computed again."""
        if self._timer_armed or not self.limbo.entries:
            return
        entry = self._oldest_watched()
        if entry is None:
            return
        self._timer_armed = True
        left_ns = entry.written_ns + self.options.waits_ns - now.monotonic_ns
        self.out.append(SetTimer(SYNCHRO_TIMER, max(left_ns, 0)))

    def timed_out(self, now: Instant) -> None:
        """Roll back from the oldest entry whose client has waited too long, unless a CONFIRM is in flight.

        A submitted transaction before it has no timeout and stays. So do an asynchronous entry behind that one and an
        answer that waits for the data it reveals: their clients get the answer that they are detached (`_ends`).
        """
        self._timer_armed = False
        limbo, entry = self.limbo, self._oldest_watched()
        if entry is None or limbo.is_in_rollback:
            return
        if entry.written_ns + self.options.waits_ns > now.monotonic_ns:
            self.watch_timeout(now)
            return
        if not (self.options.rollback_on_timeout and _ends(entry)):
            self.sometimes.note(rare.DETACHED)
            self.fates.refuse(entry.transaction.replies, Code.SYNC_TIMEOUT)
            entry.transaction.replies.clear()
            entry.is_awaited = False
            self.watch_timeout(now)
            return
        self.confirm_what_a_quorum_has(now)  # a CONFIRM that failed is not made good by a ROLLBACK
        # Behind a CONFIRM in flight comes another one, if a quorum has this entry, too.
        if limbo.confirming_lsn <= limbo.confirmed_lsn:
            # Before the record is on disk: an acknowledgement that comes now must not confirm what it discards.
            limbo.is_in_rollback = True
            self.records.control(
                Type.ROLLBACK, {Key.REPLICA_ID.value: self._me, Key.LSN.value: entry.lsn}, now
            )

    def _roll_back(self, lsn: int) -> None:
        discarded = self.decisions.rolled_back(self, lsn)
        self.limbo.is_in_rollback = False
        self.sometimes.note(rare.ROLLED_BACK, bool(discarded))
        self.sometimes.note(rare.ASYNC_ROLLED_BACK, sum(not entry.wait_ack for entry in discarded))
        for place, entry in enumerate(discarded):
            is_oldest = place == len(discarded) - 1
            self.fates.discard(
                entry.transaction, self.decisions.code_of_timeout if is_oldest else Code.SYNC_ROLLBACK
            )
        fields = {"from_lsn": lsn, "entries": len(discarded)}
        self.out.append(Log("warning", "rolled back: no quorum in time", fields))

    # ---- recovery

    def replay(self, transactions: Iterable[tuple[Row, ...]], now: Instant) -> None:
        """Apply the log on disk, in order, without answers to clients and messages to peers."""
        mark = len(self.out)
        for rows in transactions:
            if rows[-1].type in CONTROL:
                self.take_effect(rows[-1])
                continue
            if rows[-1].type == Type.RAFT:
                continue
            transaction, wait_ack = self._read(rows)
            wait_sync = wait_ack or (len(self.limbo) > 0 and not is_nothing(rows))
            if wait_sync:
                self.ownership.recover(rows)
            self.fates.prepare(transaction)
            if wait_sync:
                lsn = rows[-1].lsn
                entry = Entry(transaction, wait_ack, lsn, promised_lsn=lsn, written_ns=now.monotonic_ns)
                entry.size, entry.inserted_ns = size_of(rows), now.monotonic_ns
                self.sometimes.note(rare.ASYNC_RECOVERED, not wait_ack)
                self.limbo.append(entry)
            else:
                commit(transaction)
        del self.out[mark:]
        self.limbo.rollback_count = 0
        # After the rows: each PROMOTE among them has set it.
        self.ownership.saw_promote = not self.is_owner or self.configuration.owner_after_restart
        if self.is_owner and not self.options.has_elections:
            self.limbo.acknowledge(self._me, self.journal.vclock.get(self._me, 0))
        self.watch_timeout(now)
        self.is_recovered = True


def _ends(entry: Entry) -> bool:
    """Whether a ROLLBACK after a timeout can begin with this entry: it is synchronous, and not only submitted."""
    return entry.wait_ack and entry.is_awaited
