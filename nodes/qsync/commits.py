"""From submitted to committed: what happens to a transaction between the client and the answer.

    submit ─▶ prepared, its rows on their way to the disk
                │ written                          │ the journal failed: 40, those behind it 134
                ▼                                  ▼
    not synchronous, limbo empty: committed      gone
    else: waits in the limbo
                │ a quorum has it: CONFIRM written     │ too old: ROLLBACK written
                ▼                                      ▼
             committed, answered                    gone: 216 for the oldest, 217 for those behind it

The same path serves rows of other nodes (`apply`), where CONFIRM and ROLLBACK come as rows, and recovery
(`replay`), where everything is on disk already. A record takes effect when it is on disk, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Refusal, Response, Row, Type
from nodes.kernel.effects import Effect, Log, Send, SetTimer
from nodes.kernel.events import Instant
from nodes.qsync.bugs import CONFIRM_EARLY
from nodes.qsync.configuration import Configuration
from nodes.qsync.journal import Draft, Journal, Write
from nodes.qsync.limbo import UNWRITTEN, Entry, Limbo
from nodes.qsync.spaces import Change, Space, Transaction, commit, prepare, roll_back, show
from nodes.qsync.statements import change_of_row

SYNCHRO_TIMER = "synchro"
_BARRIERS = frozenset({Type.ROLLBACK.value, Type.PROMOTE.value, Type.DEMOTE.value})
"""Rows that discard entries: what comes after them may only be taken in when they have taken effect."""
_CONTROL = _BARRIERS | {Type.CONFIRM.value}

Waiting = Entry | Transaction | None
"""What hangs on a write: a limbo entry, a transaction outside the limbo, or nothing (a control row)."""


class Commits:
    """Owns the limbo and the fate of every transaction of one node. Effects are appended to `out`."""

    def __init__(
        self, configuration: Configuration, journal: Journal, spaces: dict[int, Space], out: list[Effect]
    ) -> None:
        self.configuration = configuration
        self.journal = journal
        self.spaces = spaces
        self.out = out
        self.limbo = Limbo()
        self.committed_count = 0
        self._me = configuration.me.id
        self._writes: dict[int, tuple[Waiting, tuple[int, Response] | None]] = {}
        self._confirms_early = CONFIRM_EARLY in configuration.bugs
        self._timer_armed = False
        self._barriers = 0
        self._submitted = 0
        self._replicas = frozenset(peer.id for peer in configuration.peers)

    @property
    def is_behind_barrier(self) -> bool:
        """True while a row that discards entries is on its way to the disk: `apply` has to wait."""
        return self._barriers > 0

    @property
    def is_owner(self) -> bool:
        return self.limbo.owner_id == self._me

    # ---- submitting

    def submit(
        self,
        changes: tuple[Change, ...],
        drafts: tuple[Draft, ...],
        reply: tuple[int, Response],
        now: Instant,
    ) -> None:
        """A client's transaction; `reply` goes out when it has committed."""
        wait_ack = any(change.space.definition.is_sync for change in changes)
        wait_sync = wait_ack or len(self.limbo) > 0
        if wait_sync and self.limbo.is_in_rollback:
            self._refuse([reply], Code.SYNC_ROLLBACK)
            return
        transaction = Transaction(changes, replies=[reply])
        write = self.journal.write_own(drafts, now.wall_ns / 1e9, wait_sync=wait_sync, wait_ack=wait_ack)
        self._begin(write, transaction, Entry(transaction, wait_ack) if wait_sync else None)

    def apply(self, rows: tuple[Row, ...]) -> None:
        """A transaction of another node."""
        assert not self.is_behind_barrier, "nothing is taken in behind a ROLLBACK that is not on disk"
        write = self.journal.write(rows)
        if rows[-1].type in _CONTROL:
            self._write(write, None, None)
            return
        transaction, wait_ack = self._read(rows)
        wait_sync = wait_ack or len(self.limbo) > 0
        entry = Entry(transaction, wait_ack, lsn=write.lsn if wait_ack else UNWRITTEN) if wait_sync else None
        self._begin(write, transaction, entry)

    def promote(self, reply: tuple[int, Response], now: Instant) -> None:
        """Write the PROMOTE that makes us the owner of an unclaimed queue."""
        body = {Key.REPLICA_ID.value: 0, Key.LSN.value: 0, Key.TERM.value: self.limbo.term + 1}
        self._control(Type.PROMOTE, body, now, reply)

    def _begin(self, write: Write, transaction: Transaction, entry: Entry | None) -> None:
        self._prepare(transaction)
        if entry is not None:
            self.limbo.append(entry)
        self._write(write, entry or transaction, None)

    def _prepare(self, transaction: Transaction) -> None:
        self._submitted += 1
        transaction.number = self._submitted
        prepare(transaction)

    def _control(
        self, kind: Type, body: Mapping[int, object], now: Instant, reply: tuple[int, Response] | None = None
    ) -> None:
        self._write(self.journal.write_own((Draft(kind.value, body),), now.wall_ns / 1e9), None, reply)

    def _write(self, write: Write, waiting: Waiting, reply: tuple[int, Response] | None) -> None:
        self._writes[write.token] = (waiting, reply)
        self._barriers += write.rows[-1].type in _BARRIERS
        self.out.append(write.persist)

    def _read(self, rows: Iterable[Row]) -> tuple[Transaction, bool]:
        """The transaction that rows describe, and whether it is synchronous."""
        changes = tuple(
            change for row in rows if row.type != Type.NOP for change in [change_of_row(row, self.spaces)]
        )
        is_sync = any(change.space.definition.is_sync for change in changes) or any(
            row.wait_ack for row in rows
        )
        return Transaction(changes), is_sync

    # ---- the disk answers

    def persisted(self, write: Write, now: Instant) -> None:
        """A write is on disk: now it counts."""
        waiting, reply = self._writes.pop(write.token)
        if write.origin == self._me and self.is_owner:
            self.limbo.acknowledge(self._me, write.lsn)
        match waiting:
            case None:
                self._barriers -= write.rows[-1].type in _BARRIERS
                self._take_effect(write.rows[-1])
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
        if self._confirms_early and self.is_owner and entry.wait_ack:
            show(entry.transaction)
            self._answer(entry.transaction)
        self._commit_entries(self.limbo.settled())

    def failed(self, error: str) -> bool:
        """Nothing in flight reached the disk. True if rows of other nodes were among it."""
        lost = self.journal.failed()
        for place, write in enumerate(lost):
            waiting, reply = self._writes.pop(write.token)
            code = Code.WAL_IO if place == len(lost) - 1 else Code.CASCADE_ROLLBACK
            if isinstance(waiting, Entry):
                self.limbo.drop_newest(waiting)
            if waiting is not None:
                transaction = waiting.transaction if isinstance(waiting, Entry) else waiting
                self._discard(transaction, code)
            if reply is not None:
                self._refuse([reply], code)
        self._barriers = 0
        self.limbo.confirming_lsn = self.limbo.confirmed_lsn
        self.limbo.is_in_rollback = False
        self.out.append(Log("error", "journal write failed", {"error": error, "writes": len(lost)}))
        return any(write.origin != self._me for write in lost)

    # ---- CONFIRM, ROLLBACK, PROMOTE

    def _take_effect(self, row: Row) -> None:
        lsn = row.body.get(Key.LSN.value, 0)
        assert isinstance(lsn, int), row
        match row.type:
            case Type.CONFIRM:
                self._commit_entries(self.limbo.confirm(lsn))
            case Type.ROLLBACK:
                self._roll_back(lsn)
            case Type.PROMOTE | Type.DEMOTE:
                self._change_owner(row, lsn)

    def _change_owner(self, row: Row, lsn: int) -> None:
        term = row.body[Key.TERM.value]
        assert isinstance(term, int), row
        owner = row.replica_id if row.type == Type.PROMOTE else 0
        confirmed, discarded = self.limbo.promote(owner, lsn, term)
        self._commit_entries(confirmed)
        for entry in discarded:
            self._discard(entry.transaction, Code.SYNC_ROLLBACK)
        if self.is_owner:
            self.limbo.acknowledge(self._me, self.journal.vclock.get(self._me, 0))
        self.out.append(Log("info", "the queue has an owner", {"owner": owner, "term": term}))

    def acknowledge(self, replica_id: int, lsn: int, now: Instant) -> None:
        """A replica has our rows up to `lsn`; only members of the cluster count, each once."""
        if self.is_owner and replica_id in self._replicas and self.limbo.acknowledge(replica_id, lsn):
            self.confirm_what_a_quorum_has(now)

    def confirm_what_a_quorum_has(self, now: Instant) -> None:
        """Write CONFIRM if there is something to confirm; one such write at a time, so that they gather."""
        limbo = self.limbo
        if not limbo.entries or not self.is_owner or limbo.is_in_rollback:
            return
        if limbo.confirming_lsn > limbo.confirmed_lsn:
            return
        lsn = limbo.confirmable(self.configuration.quorum)
        if lsn is not None:
            limbo.confirming_lsn = lsn
            self._control(Type.CONFIRM, {Key.REPLICA_ID.value: self._me, Key.LSN.value: lsn}, now)

    def watch_timeout(self, now: Instant) -> None:
        """Keep one timer running while the oldest entry waits; it looks again when it fires."""
        entry = self.limbo.first_waiting()
        if self._timer_armed or entry is None or entry.lsn == UNWRITTEN or not self.is_owner:
            return
        self._timer_armed = True
        left_ns = entry.written_ns + self.configuration.synchro_timeout_ns - now.monotonic_ns
        self.out.append(SetTimer(SYNCHRO_TIMER, max(left_ns, 0)))

    def timed_out(self, now: Instant) -> None:
        """Roll back if the oldest entry waited for too long; one whose CONFIRM is being written waits for that."""
        self._timer_armed = False
        limbo, entry = self.limbo, self.limbo.first_waiting()
        if entry is None or entry.lsn == UNWRITTEN or not self.is_owner or limbo.is_in_rollback:
            return
        if entry.written_ns + self.configuration.synchro_timeout_ns > now.monotonic_ns:
            self.watch_timeout(now)
            return
        self.confirm_what_a_quorum_has(now)  # a CONFIRM that failed is not made good by a ROLLBACK
        if entry.lsn > limbo.confirming_lsn:
            limbo.is_in_rollback = True
            self._control(Type.ROLLBACK, {Key.REPLICA_ID.value: self._me, Key.LSN.value: entry.lsn}, now)

    def _roll_back(self, lsn: int) -> None:
        discarded = self.limbo.roll_back(lsn)
        self.limbo.is_in_rollback = False
        for place, entry in enumerate(discarded):
            is_oldest = place == len(discarded) - 1
            self._discard(entry.transaction, Code.SYNC_QUORUM_TIMEOUT if is_oldest else Code.SYNC_ROLLBACK)
        fields = {"from_lsn": lsn, "entries": len(discarded)}
        self.out.append(Log("warning", "rolled back: no quorum in time", fields))

    # ---- ends of transactions

    def _commit_entries(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._commit(entry.transaction)

    def _commit(self, transaction: Transaction) -> None:
        commit(transaction)
        self.committed_count += 1
        self._answer(transaction)

    def _answer(self, transaction: Transaction) -> None:
        for link, response in transaction.replies:
            self.out.append(Send(link, response))
        transaction.replies.clear()

    def _discard(self, transaction: Transaction, code: Code) -> None:
        roll_back(transaction)
        self._refuse(transaction.replies, code)

    def _refuse(self, replies: list[tuple[int, Response]], code: Code) -> None:
        for link, response in replies:
            self.out.append(Send(link, Refusal(response.sync, code, code.text())))

    # ---- recovery

    def replay(self, transactions: Iterable[tuple[Row, ...]], now: Instant) -> None:
        """Take in what the log on disk says, in order; nobody is told of it."""
        mark = len(self.out)
        for rows in transactions:
            if rows[-1].type in _CONTROL:
                self._take_effect(rows[-1])
                continue
            transaction, wait_ack = self._read(rows)
            self._prepare(transaction)
            if wait_ack or len(self.limbo) > 0:
                entry = Entry(transaction, wait_ack, lsn=rows[-1].lsn, written_ns=now.monotonic_ns)
                self.limbo.append(entry)
            else:
                commit(transaction)
        del self.out[mark:]
        self.limbo.rollback_count = 0
        if self.is_owner:
            self.limbo.acknowledge(self._me, self.journal.vclock.get(self._me, 0))
        self.watch_timeout(now)


def answer_later(waits_for: Transaction | None, link: int, response: Response, out: list[Effect]) -> None:
    """Answer at once, or when the unfinished transaction whose effect the answer reveals has committed."""
    if waits_for is None:
        out.append(Send(link, response))
    else:
        waits_for.replies.append((link, response))
