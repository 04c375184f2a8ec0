"""From submitted to committed: what happens to a transaction between the client and the answer.

    submit ─▶ prepared, its rows on their way to the disk
                │ written                          │ the journal failed: 40, those behind it 134
                ▼                                  ▼
    not synchronous, limbo empty: committed      gone
    else: waits in the limbo
                │ a quorum has it: CONFIRM written     │ waited for too long: ROLLBACK written
                ▼                                      ▼
             committed, answered                    gone: 216 for the oldest, 217 for those behind it

With elections a PROMOTE is itself an entry (*synchronous PROMOTE*): its row says that it waits, and it does so in
`pending` until a quorum has it in its own term. Only then, by the CONFIRM that says so, does it decide about the
entries of the owner before it, and pass the queue on; until then rows of the old term keep their bodies. A row that
does not say so takes effect when it is written, on every node and at every restart. Rows of an owner whose term is
over become NOPs.

The same path serves rows of other nodes (`apply`), where CONFIRM and ROLLBACK come as rows, and recovery
(`replay`), where everything is on disk already. A record takes effect when it is on disk, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Refusal, Response, Row, Type
from nodes.kernel.effects import Effect, Log, Send, SetTimer
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant
from nodes.qsync import sometimes as rare
from nodes.qsync.configuration import Configuration
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import STATE_NAMES, Election
from nodes.qsync.evaluation import changes_of_rows
from nodes.qsync.filter import Contradiction, Promotion, chain_of, number, promotion_decided
from nodes.qsync.journal import LOCAL, Draft, Journal, Write, size_of
from nodes.qsync.keys import Rejected
from nodes.qsync.limbo import UNWRITTEN, Entry, Limbo
from nodes.qsync.options import Options
from nodes.qsync.snapshot import QueueState
from nodes.qsync.sometimes import Sometimes
from nodes.qsync.spaces import Change, Space, Transaction, commit, prepare, roll_back
from nodes.qsync.system_spaces import CLUSTER

SYNCHRO_TIMER = "synchro"
_BARRIERS = frozenset({Type.ROLLBACK.value, Type.PROMOTE.value, Type.DEMOTE.value})
"""Rows that discard entries: what comes after them may only be taken in when they have taken effect."""
OWNERLESS = (
    "the synchronous transaction {}/{} of the log has no PROMOTE before it, as 2.6 writes: start this node with "
    "protocol 2.6, take a snapshot when its queue is empty, and start it as it is now from that"
)
READ_ONLY = "Can't modify data on a read-only instance"
CONTROL = _BARRIERS | {Type.CONFIRM.value}
"""Rows that decide about entries."""

Waiting = Entry | Transaction | None
"""What hangs on a write: a limbo entry, a transaction outside the limbo, or nothing (a control row)."""


class Commits:
    """Owns the limbo and the fate of every transaction of one node. Effects are appended to `out`."""

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
        self.pending: list[Promotion] = []
        """By ascending term: a later one may stand on an earlier one, whatever order they came in."""
        self.out = out
        self.limbo = Limbo()
        self.limbo.forgets_confirmed = configuration.confirmed_lsn_after_promote == "zero"
        self.committed_count = 0
        self.confirm_lag_ns = 0
        """For how long the oldest entry of the last CONFIRM had waited."""
        self._me = configuration.me.id
        self.is_recovered = False
        """What the log says is taken in."""
        self.is_orphan = configuration.replication_connect_quorum > 0
        self.saw_promote = True
        """Since the node started, if it owned the queue then."""
        self._is_confirming_promotion = False
        self._writes: dict[int, tuple[Waiting, tuple[int, Response] | None, bool]] = {}
        self.promotes_at_once = decisions.promotes_at_once(configuration)
        self.sometimes = Sometimes()
        self._timer_armed = False
        self._barriers = 0
        self._votes = 0
        """Terms and votes on their way to the disk."""
        self._submitted = 0
        self._has_implicit_owner = configuration.protocol == "2.6"
        self._replicas = frozenset[int]()
        self.reconfigure(configuration)

    def reconfigure(self, configuration: Configuration) -> None:
        """The members are others than before: all but ourselves may acknowledge."""
        self.configuration = configuration
        self._replicas = frozenset(member.id for member in configuration.registered) - {configuration.me.id}
        counted = {*self._replicas, self._me}
        for gone in [replica for replica in self.limbo.acknowledged if replica not in counted]:
            del self.limbo.acknowledged[gone]  # what it had counts for nothing any more

    def restore(self, queue: QueueState, vclock: Mapping[int, int]) -> None:
        """What a snapshot says of the queue; all that it holds, up to `vclock`, is confirmed."""
        self.limbo.confirmed_of = dict(queue.confirmed_of)
        self.limbo.held_lsn = vclock.get(queue.owner_id, 0)
        self.limbo.owner_id, self.limbo.term = queue.owner_id, queue.term
        self.limbo.confirmed_lsn = self.limbo.confirming_lsn = queue.confirmed_lsn
        if queue.owner_id:
            self.limbo.term_of[queue.owner_id] = queue.term

    @property
    def is_behind_barrier(self) -> bool:
        """True while a row that discards entries is on its way to the disk: `apply` has to wait."""
        return self._barriers > 0

    @property
    def has_written_term(self) -> bool:
        """The term that we know is on disk."""
        return self._votes == 0

    @property
    def is_full(self) -> bool:
        """The queue has as many bytes as it may have, or more."""
        return 0 < self.options.queue_max_size <= self.limbo.size

    @property
    def is_log_full(self) -> bool:
        """More bytes are on their way to the disk than may be."""
        return 0 < self.options.wal_queue_max_size < self.journal.in_flight_bytes

    @property
    def is_owner(self) -> bool:
        return self.limbo.owner_id == self._me != 0

    @property
    def is_frozen(self) -> bool:
        """Nothing may be decided: a higher term has begun, or no PROMOTE came since the start."""
        return self.election.term > self.limbo.term or not self.saw_promote

    @property
    def may_decide(self) -> bool:
        """We own the queue, and no other can have become the leader as far as we know."""
        if not self.is_owner or self.is_frozen:
            return False
        return not self.options.has_elections or self.election.is_leader

    @property
    def is_writable(self) -> bool:
        return self.decisions.is_writable(self)

    @property
    def ro_reason(self) -> str | None:
        """Why clients may not write: one reason of several, in Tarantool's order; None if they may."""
        if self._me == 0:
            return "config"  # who is no member must be read-only
        if self._has_implicit_owner:
            return "config" if self.options.read_only else None
        if self.options.has_elections and not self.election.is_leader:
            return "election"
        if not self.may_decide and (self.limbo.owner_id != 0 or self.options.has_elections):
            return "synchro"
        if self.options.read_only:
            return "config"
        return "orphan" if self.is_orphan else None

    def read_only_error(self) -> Rejected:
        """Error 7; only later versions than 2.6 say why."""
        if self._has_implicit_owner:
            return Rejected(Code.READONLY)
        return Rejected(Code.READONLY, message=f"{READ_ONLY} - {self.ro_text()}")

    def ro_text(self) -> str:
        """The reason in words: what stands behind the message of error 7."""
        limbo, election = self.limbo, self.election
        match self.ro_reason:
            case "election":
                why = f"state is election {STATE_NAMES[election.state]} with term {election.term}"
                why += f", leader is {election.leader_id}{self._uuid(election.leader_id)}" * (
                    election.leader_id > 0
                )
            case "synchro":
                why = f"synchro queue with term {limbo.term} belongs to {limbo.owner_id}{self._uuid(limbo.owner_id)}"
                if self.is_owner and election.term > limbo.term:
                    why += " and is frozen due to fencing"
                elif self.is_owner and not self.saw_promote:
                    why += " and is frozen until promotion"
            case "config":
                why = "box.cfg.read_only is true"
            case _:
                why = "it is an orphan"
        return why

    def _uuid(self, number: int) -> str:
        found = [member.uuid for member in self.configuration.members if member.id == number]
        return f" ({found[0]})" if found else ""

    @property
    def _own_promotion(self) -> Promotion | None:
        """Our PROMOTE of this term, if it waits for its quorum."""
        if self.pending and self.pending[-1].origin == self._me and self.election.is_leader:
            return self.pending[-1] if self.pending[-1].term == self.election.term else None
        return None

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
        """A client's transaction; `reply` goes out when it has committed, or at once when it is queued.

        A transaction of local rows alone waits for no quorum, but for what is before it.
        """
        if not drafts:
            assert reply is not None, "what we write ourselves is logged"
            self._commit_unlogged(changes, reply)
            return
        is_local = drafts[0].is_local and all(draft.is_local for draft in drafts)
        wait_ack = not is_local and (is_sync or any(self._waits(change.space) for change in changes))
        replies = [] if reply is None else [reply]
        wait_sync = wait_ack or len(self.limbo) > 0
        if wait_sync and self.limbo.is_in_rollback:
            self._refuse(replies, Code.SYNC_ROLLBACK)
            return
        if self._has_implicit_owner:
            if wait_sync and not self._take_queue(self._me):
                self._refuse(replies, Code.UNCOMMITTED_FOREIGN_SYNC_TXNS, self.limbo.owner_id)
                return
            flags = (False, False)  # 2.6 knows none: whether a row is synchronous, its space says
        else:
            flags = (wait_sync, wait_ack)
        self.sometimes.note(rare.ASYNC_WAITED, wait_sync and not wait_ack)
        transaction = Transaction(changes, replies=[] if answers_at_once else replies)
        if answers_at_once:
            self.out += [Send(*reply) for reply in replies]
        timestamp = now.wall_ns / 1e9
        write = self.journal.write_own(drafts, timestamp, wait_sync=flags[0], wait_ack=flags[1])
        entry = Entry(transaction, wait_ack, is_awaited=not answers_at_once) if wait_sync else None
        self._begin(write, transaction, entry)

    def _waits(self, space: Space) -> bool:
        """Its changes need a quorum. Who is a member does, too, as soon as somebody owns the queue: else an owner that
        is cut off could change the quorum that overrules it."""
        is_claimed = self.limbo.owner_id != 0 and not self._has_implicit_owner
        return space.is_sync or (is_claimed and space.definition.id == CLUSTER)

    def _commit_unlogged(self, changes: tuple[Change, ...], reply: tuple[int, Response]) -> None:
        """Temporary spaces alone: nothing is written, and so nothing waited for."""
        if any(change.key in change.space.prepared for change in changes):
            self._refuse([reply], Code.TRANSACTION_CONFLICT)
            return
        transaction = Transaction(changes, replies=[reply])
        self._prepare(transaction)
        self._commit(transaction)

    def clear_queue(self, owner: int, lsn: int, now: Instant) -> None:
        """2.6: in another owner's name, confirm his entries up to `lsn` and roll back the rest."""
        entries = [entry for entry in self.limbo.entries if entry.wait_ack]
        confirmed = [entry.lsn for entry in entries if entry.lsn <= lsn]
        discarded = [entry.lsn for entry in entries if entry.lsn > lsn]
        if confirmed:
            self._control(Type.CONFIRM, {Key.REPLICA_ID.value: owner, Key.LSN.value: confirmed[-1]}, now)
        if discarded:
            self._control(Type.ROLLBACK, {Key.REPLICA_ID.value: owner, Key.LSN.value: discarded[0]}, now)

    def _take_queue(self, origin: int) -> bool:
        """2.6: whoever comes first to an empty queue owns it; False if it is another's and not empty."""
        limbo = self.limbo
        if limbo.owner_id == origin:
            return True
        if limbo.entries:
            return False
        limbo.owner_id = origin
        limbo.acknowledged.clear()
        limbo.confirmed_lsn = limbo.confirming_lsn = 0
        return True

    def refusal_of(self, rows: tuple[Row, ...]) -> str | None:
        """Why rows of another node cannot be taken in, in Tarantool's words; None if they can."""
        if not self._has_implicit_owner:
            is_ownerless = (
                self._was_never_claimed and rows[-1].type not in CONTROL and self._is_synchronous(rows)
            )
            return Code.SYNC_QUEUE_UNCLAIMED.text() if is_ownerless else None
        if rows[-1].type in (Type.PROMOTE, Type.DEMOTE, Type.RAFT):
            return f"a row of type {rows[-1].type}, which 2.6 does not know"
        limbo = self.limbo
        is_foreign = bool(limbo.entries) and limbo.owner_id != rows[-1].replica_id
        if is_foreign and rows[-1].type not in CONTROL and rows[-1].type != Type.NOP:
            return Code.UNCOMMITTED_FOREIGN_SYNC_TXNS.text(limbo.owner_id)
        return None

    @property
    def _was_never_claimed(self) -> bool:
        """No PROMOTE or DEMOTE took effect so far. What 2.6 writes stands in such a queue."""
        return self.limbo.owner_id == 0 and self.limbo.term == 1

    def _is_synchronous(self, rows: tuple[Row, ...]) -> bool:
        """A row says so, or its space does: 2.6 knows no flags."""
        changed = (row for row in rows if row.type != Type.NOP)
        return any(row.wait_ack or self.spaces[number(row, Key.SPACE_ID)].is_sync for row in changed)

    def apply(self, rows: tuple[Row, ...], sender: int) -> None:
        """A transaction of another node, that `sender` gave us; `Contradiction` if it must not be taken in."""
        assert not self.is_behind_barrier, "nothing is taken in behind a ROLLBACK that is not on disk"
        write = self.journal.write(self._filtered(rows, sender))
        row = write.rows[-1]
        if row.type in CONTROL:
            if row.type == Type.CONFIRM and number(row, Key.REPLICA_ID) == self.limbo.owner_id:
                self.limbo.confirming_lsn = max(self.limbo.confirming_lsn, number(row, Key.LSN))
            self._write(write, None, None)
            return
        transaction, wait_ack = self._read(write.rows)
        wait_sync = wait_ack or (len(self.limbo) > 0 and not _is_nothing(write.rows))
        if wait_sync and self._has_implicit_owner:
            taken = self._take_queue(write.origin)
            assert taken, "asked before: refusal_of"
        entry = Entry(transaction, wait_ack, lsn=write.lsn if wait_ack else UNWRITTEN) if wait_sync else None
        self._begin(write, transaction, entry)

    def _filtered(self, rows: tuple[Row, ...], sender: int) -> tuple[Row, ...]:
        if self._has_implicit_owner:
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

    @property
    def quorum_of_promote(self) -> int:
        """How many nodes must have what a PROMOTE waits for; it may change while it waits."""
        return self.decisions.quorum_of_promote(self.options.quorum_size, self.election.term)

    @property
    def acks_of_promote(self) -> int | None:
        """How many nodes have our PROMOTE, if it waits for its quorum."""
        promotion = self._own_promotion
        if promotion is None:
            return None
        return sum(lsn >= promotion.row_lsn for lsn in self.limbo.acknowledged.values())

    def lead(self, now: Instant) -> None:
        """We won an election: write the PROMOTE that asks for the queue in our term."""
        self.write_promotion(now, None, is_demote=False)

    def write_promotion(self, now: Instant, reply: tuple[int, Response] | None, *, is_demote: bool) -> None:
        """PROMOTE or DEMOTE, in the term of the election; all that waits in the queue stays.

        Its flags say when it takes effect (`nodes.qsync.unmarked`). Without elections it does so when it is written:
        `Control` has counted before that a quorum has what it keeps, and nobody votes in its term.
        """
        if self.options.has_elections:
            self.limbo.acknowledged.clear()
        if self.pending:
            old_owner, lsn = self.pending[-1].new_owner, self.pending[-1].row_lsn
        else:
            old_owner, lsn = self.limbo.owner_id, self.decisions.kept_by_promote(self.limbo)
        body = {
            Key.REPLICA_ID.value: old_owner,
            Key.LSN.value: lsn,
            Key.TERM.value: self.election.term,
        }
        self._is_confirming_promotion = False
        waits = self.options.has_elections and not self.promotes_at_once
        draft = Draft((Type.DEMOTE if is_demote else Type.PROMOTE).value, body)
        write = self.journal.write_own((draft,), now.wall_ns / 1e9, wait_sync=True, wait_ack=waits)
        self._write(write, None, reply)

    def begin_term(self, now: Instant) -> None:
        """A term that nobody was elected for; it is in the log before what is written in it."""
        self.election.new_term(now.monotonic_ns)
        self.election.must_write = False
        self.save_vote(now)

    def save_vote(self, now: Instant) -> None:
        """Write the election's term and vote; whatever is told of them stands behind this record."""
        self._write(
            self.journal.write_vote(self.election.term, self.election.vote, now.wall_ns / 1e9), None, None
        )

    def _begin(self, write: Write, transaction: Transaction, entry: Entry | None) -> None:
        self._prepare(transaction)
        if entry is not None:
            entry.promised_lsn, entry.size = write.lsn, write.size
            self.limbo.append(entry)
        self._write(write, entry or transaction, None)

    @property
    def last_waiting(self) -> int:
        """The number of the newest transaction in the limbo, 0 if it is empty."""
        return self.limbo.entries[-1].transaction.number if self.limbo.entries else 0

    def has_settled(self, number: int) -> bool:
        """Nothing up to this number waits in the limbo any more."""
        return not self.limbo.entries or self.limbo.entries[0].transaction.number > number

    def _prepare(self, transaction: Transaction) -> None:
        self._submitted += 1
        transaction.number = self._submitted
        prepare(transaction)

    def _control(
        self, kind: Type, body: Mapping[int, object], now: Instant, reply: tuple[int, Response] | None = None
    ) -> None:
        self._write(self.journal.write_own((Draft(kind.value, body),), now.wall_ns / 1e9), None, reply)

    def _write(self, write: Write, waiting: Waiting, reply: tuple[int, Response] | None) -> None:
        kind = write.rows[-1].type
        is_barrier = kind in _BARRIERS or (kind == Type.CONFIRM and bool(self.pending))
        self._writes[write.token] = (waiting, reply, is_barrier)
        self._barriers += is_barrier
        self._votes += kind == Type.RAFT
        self.decisions.log(self, write)

    def _read(self, rows: tuple[Row, ...]) -> tuple[Transaction, bool]:
        """The transaction that rows describe, and whether it is synchronous."""
        return Transaction(tuple(changes_of_rows(rows, self.spaces))), self._is_synchronous(rows)

    # ---- the disk answers

    def persisted(self, write: Write, now: Instant) -> None:
        """A write is on disk: now it counts."""
        waiting, reply, is_barrier = self._writes.pop(write.token)
        self._barriers -= is_barrier
        if write.rows[-1].type == Type.RAFT:
            self._votes -= 1
            if self.has_written_term:
                self.election.written(now.monotonic_ns)
        if write.origin == self._me and (
            self.election.is_leader if self.options.has_elections else self.is_owner
        ):
            self.limbo.acknowledge(self._me, write.lsn)
        match waiting:
            case None:
                self.take_effect(write.rows[-1])
            case Transaction():
                self._commit(waiting)
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
        self._commit_entries(self.limbo.settled())

    def failed(self, error: str) -> bool:
        """Nothing in flight reached the disk. True if rows of other nodes were among it."""
        lost = self.journal.failed()
        for place, write in enumerate(lost):
            waiting, reply, _ = self._writes.pop(write.token)
            if write.rows[-1].type == Type.RAFT:
                self.election.must_write = self.election.must_tell = True
            self.sometimes.note(rare.CONFIRM_FAILED, write.rows[-1].type == Type.CONFIRM)
            code = Code.WAL_IO if place == len(lost) - 1 else Code.CASCADE_ROLLBACK
            if isinstance(waiting, Entry):
                self.limbo.drop_newest(waiting)
            if waiting is not None:
                transaction = waiting.transaction if isinstance(waiting, Entry) else waiting
                self._discard(transaction, code)
            if reply is not None:
                self._refuse([reply], code)
        self._barriers = self._votes = 0
        self._is_confirming_promotion = False
        self.limbo.confirming_lsn = self.limbo.confirmed_lsn
        self.limbo.is_in_rollback = False
        self.out.append(Log("error", "journal write failed", {"error": error, "writes": len(lost)}))
        return any(write.origin not in (self._me, LOCAL) for write in lost)

    # ---- CONFIRM, ROLLBACK, PROMOTE

    def take_effect(self, row: Row) -> None:
        """A row that decides about entries is on disk."""
        lsn = row.body.get(Key.LSN.value, 0)
        assert isinstance(lsn, int), row
        match row.type:
            case Type.CONFIRM:
                self._confirmed(row, lsn)
            case Type.ROLLBACK:
                # with 2.6 another node may clear the queue, in its owner's name
                if row.body[Key.REPLICA_ID.value] == self.limbo.owner_id:
                    self._roll_back(lsn)
            case Type.PROMOTE | Type.DEMOTE:
                self._promote_written(row)

    def _confirmed(self, row: Row, lsn: int) -> None:
        """A CONFIRM of an owner whose term is over says nothing new: it is before the PROMOTE that followed it."""
        promotion = promotion_decided(row, self.pending)
        if promotion is not None:
            self._take_over(promotion)
        if number(row, Key.REPLICA_ID) == self.limbo.owner_id:
            self._commit_entries(self.limbo.confirm(lsn))

    def _promote_written(self, row: Row) -> None:
        promotion = Promotion.of_row(row)
        if promotion.term > self.limbo.term:
            # One that a newer one outran on the way here may still be what the next leader stands on.
            self.pending = sorted((*self.pending, promotion), key=lambda known: known.term)
            if not promotion.waits:
                self._take_over(promotion)
        else:
            fields = {"origin": promotion.origin, "term": promotion.term}
            self.out.append(Log("info", "a PROMOTE of an old term", fields))

    def _take_over(self, promotion: Promotion) -> None:
        """A PROMOTE takes effect, after those that it stands on; others before it came to nothing."""
        chain = chain_of(promotion, self.pending)
        if len(chain) > 1:
            self.sometimes.note(rare.PROMOTE_STACKED)
        self.sometimes.note(rare.PROMOTE_OVERTAKEN, self.pending.index(promotion) >= len(chain))
        self.pending = self.pending[self.pending.index(promotion) + 1 :]
        for link in chain:
            self._change_owner(link)
        if promotion.origin == self._me:
            self._is_confirming_promotion = False

    def _change_owner(self, promotion: Promotion) -> None:
        owner = promotion.new_owner
        if self.limbo.entries and owner != self.limbo.owner_id:
            self.sometimes.note(rare.OWNER_CHANGED_BUSY)
        self.saw_promote = True
        confirmed, discarded = self.limbo.promote(promotion.origin, owner, promotion.lsn, promotion.term)
        self._commit_entries(confirmed)
        for entry in discarded:
            self._discard(entry.transaction, Code.SYNC_ROLLBACK)
        if self.is_owner and not self.options.has_elections:
            self.limbo.acknowledge(self._me, self.journal.vclock.get(self._me, 0))
        if confirmed and promotion.old_owner != owner:
            self.sometimes.note(rare.CONFIRMED_FOREIGN)
        if discarded:
            self.sometimes.note(rare.PROMOTE_ROLLED_BACK)
        fields = {"owner": owner, "term": promotion.term, "confirmed": len(confirmed)}
        self.out.append(Log("info", "the queue has an owner", {**fields, "rolled_back": len(discarded)}))

    def acknowledge(self, replica_id: int, lsn: int, term: int, now: Instant) -> None:
        """A replica has our rows up to `lsn`; only members of the cluster count, each once, in our own term.

        Without elections nobody votes, and a lower term counts too: it knows of no other owner than we do.
        """
        if self.options.has_elections:
            counts = term == self.election.term and self.election.is_leader
        else:
            counts = self.is_owner and not self.is_frozen
        if counts and lsn > self.journal.vclock.get(self._me, 0):
            self.sometimes.note(rare.ACK_BEFORE_LSN)
        self.sometimes.note(rare.ACK_IN_ROLLBACK, counts and self.limbo.is_in_rollback)
        if counts and replica_id in self._replicas and self.limbo.acknowledge(replica_id, lsn):
            self.confirm_what_a_quorum_has(now)

    def confirm_what_a_quorum_has(self, now: Instant) -> None:
        """Write CONFIRM if there is something to confirm; one such write at a time, so that they gather."""
        limbo, promotion = self.limbo, self._own_promotion
        if promotion is not None:
            self._confirm_promotion(promotion, now)
            return
        if not limbo.entries or not self.may_decide or limbo.is_in_rollback:
            return
        if limbo.confirming_lsn > limbo.confirmed_lsn:
            return
        lsn = limbo.confirmable(self.options.quorum_size)
        if lsn is not None:
            limbo.confirming_lsn = lsn
            self.confirm_lag_ns = now.monotonic_ns - limbo.entries[0].written_ns
            for confirmed in self.decisions.confirms(lsn):
                body = {Key.REPLICA_ID.value: self._me, Key.LSN.value: confirmed}
                self._control(Type.CONFIRM, body, now)

    def _confirm_promotion(self, promotion: Promotion, now: Instant) -> None:
        if self._is_confirming_promotion or self.limbo.is_in_rollback:
            return
        if self.limbo.quorum_lsn(self.quorum_of_promote) >= promotion.row_lsn:
            self._is_confirming_promotion = True
            body = {Key.REPLICA_ID.value: self._me, Key.LSN.value: promotion.row_lsn}
            self._control(Type.CONFIRM, body, now)

    def _oldest_watched(self) -> Entry | None:
        """The entry whose time runs out first: the oldest that somebody waits for. It may be unwritten: then None."""
        rolls_back = self.options.rollback_on_timeout
        if rolls_back and not self.may_decide:
            return None
        watched = (
            each for each in self.limbo.entries if each.transaction.replies or (rolls_back and _ends(each))
        )
        entry = next(watched, None)
        return None if entry is None or entry.lsn == UNWRITTEN else entry

    def options_changed(self, now: Instant) -> None:
        """Quorum and timeout may be others now."""
        self._timer_armed = False
        self.confirm_what_a_quorum_has(now)
        self.watch_timeout(now)

    def watch_timeout(self, now: Instant) -> None:
        """Keep one timer running while the oldest entry waits; it looks again when it fires."""
        if self._timer_armed or not self.limbo.entries:
            return
        entry = self._oldest_watched()
        if entry is None:
            return
        self._timer_armed = True
        left_ns = entry.written_ns + self.options.waits_ns - now.monotonic_ns
        self.out.append(SetTimer(SYNCHRO_TIMER, max(left_ns, 0)))

    def timed_out(self, now: Instant) -> None:
        """Roll back from the oldest entry that was waited for too long; one whose CONFIRM is being written goes on.

        What was submitted before it has no time-out and stays. So does an asynchronous entry behind that one, and an
        answer that waits for what it saw: their clients are told that they are detached (`_ends`).
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
            self._refuse(entry.transaction.replies, Code.SYNC_TIMEOUT)
            entry.transaction.replies.clear()
            entry.is_awaited = False
            self.watch_timeout(now)
            return
        self.confirm_what_a_quorum_has(now)  # a CONFIRM that failed is not made good by a ROLLBACK
        if entry.lsn > limbo.confirming_lsn:
            limbo.is_in_rollback = True
            self._control(Type.ROLLBACK, {Key.REPLICA_ID.value: self._me, Key.LSN.value: entry.lsn}, now)

    def _roll_back(self, lsn: int) -> None:
        discarded = self.decisions.rolled_back(self, lsn)
        self.limbo.is_in_rollback = False
        self.sometimes.note(rare.ROLLED_BACK, bool(discarded))
        self.sometimes.note(rare.ASYNC_ROLLED_BACK, sum(not entry.wait_ack for entry in discarded))
        for place, entry in enumerate(discarded):
            is_oldest = place == len(discarded) - 1
            self._discard(
                entry.transaction, self.decisions.code_of_timeout if is_oldest else Code.SYNC_ROLLBACK
            )
        fields = {"from_lsn": lsn, "entries": len(discarded)}
        self.out.append(Log("warning", "rolled back: no quorum in time", fields))

    # ---- ends of transactions

    def _commit_entries(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._commit(entry.transaction)

    def _commit(self, transaction: Transaction) -> None:
        commit(transaction)
        self.committed_count += 1
        self.answer(transaction)

    def answer(self, transaction: Transaction) -> None:
        """Tell its client that it has committed."""
        for link, response in transaction.replies:
            self.out.append(Send(link, response))
        transaction.replies.clear()

    def _discard(self, transaction: Transaction, code: Code) -> None:
        roll_back(transaction)
        self._refuse(transaction.replies, code)

    def _refuse(self, replies: list[tuple[int, Response]], code: Code, *arguments: object) -> None:
        for link, response in replies:
            self.out.append(Send(link, Refusal(response.sync, code, code.text(*arguments))))

    # ---- recovery

    def replay(self, transactions: Iterable[tuple[Row, ...]], now: Instant) -> None:
        """Take in what the log on disk says, in order; nobody is told of it."""
        mark = len(self.out)
        for rows in transactions:
            if rows[-1].type in CONTROL:
                self.take_effect(rows[-1])
                continue
            if rows[-1].type == Type.RAFT:
                continue
            transaction, wait_ack = self._read(rows)
            if wait_ack and self._has_implicit_owner:
                self._take_queue(rows[-1].replica_id)
            elif wait_ack and self._was_never_claimed:
                raise StartRefused(OWNERLESS.format(rows[-1].replica_id, rows[-1].lsn))
            self._prepare(transaction)
            if wait_ack or (len(self.limbo) > 0 and not _is_nothing(rows)):
                lsn = rows[-1].lsn
                entry = Entry(transaction, wait_ack, lsn, promised_lsn=lsn, written_ns=now.monotonic_ns)
                entry.size = size_of(rows)
                self.sometimes.note(rare.ASYNC_RECOVERED, not wait_ack)
                self.limbo.append(entry)
            else:
                commit(transaction)
        del self.out[mark:]
        self.limbo.rollback_count = 0
        self.saw_promote = not self.is_owner or self.configuration.owner_after_restart
        if self.is_owner and not self.options.has_elections:
            self.limbo.acknowledge(self._me, self.journal.vclock.get(self._me, 0))
        self.watch_timeout(now)
        self.is_recovered = True


def _ends(entry: Entry) -> bool:
    """A ROLLBACK can begin with it when its time is over: it is synchronous, and not only submitted."""
    return entry.wait_ack and entry.is_awaited


def _is_nothing(rows: Iterable[Row]) -> bool:
    """Rows without effect pass the limbo: there is nothing to confirm or roll back in them."""
    return all(row.type == Type.NOP for row in rows)


def answer_later(waits_for: Transaction | None, link: int, response: Response, out: list[Effect]) -> None:
    """Answer at once, or when the unfinished transaction whose effect the answer reveals has committed."""
    if waits_for is None:
        out.append(Send(link, response))
    else:
        waits_for.replies.append((link, response))
