"""The decisions of a node, one method or value each, with the right answer.

The parts of a node ask here where one wrong answer makes a bug that is known. A seeded bug (`nodes.qsync.bugs`) is a
subclass with one other answer; no part knows of any. Whatever a decision needs is its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from nodes.iproto.codes import Code
from nodes.iproto.messages import Response, Row
from nodes.kernel.effects import Effect
from nodes.kernel.events import Instant
from nodes.kernel.outbox import Durability
from nodes.kernel.quorum import evaluate
from nodes.kernel.vclock import Vclock
from nodes.qsync.configuration import Configuration
from nodes.qsync.election import Election
from nodes.qsync.evaluation import Outcome
from nodes.qsync.filter import Promotion, Rows, filtered
from nodes.qsync.journal import Journal, Write
from nodes.qsync.limbo import Entry, Limbo
from nodes.qsync.relay import Relay
from nodes.qsync.spaces import Transaction

Reply = tuple[int, Response]
"""A link, and the answer that is to leave on it."""


class Queue(Protocol):
    """The view of the queue and its transactions for decisions (`nodes.qsync.commits`)."""

    limbo: Limbo
    configuration: Configuration
    pending: list[Promotion]
    out: list[Effect]

    @property
    def is_owner(self) -> bool: ...

    @property
    def is_full(self) -> bool: ...

    @property
    def is_writable(self) -> bool: ...

    def take_effect(self, row: Row) -> None: ...

    def answer(self, transaction: Transaction) -> None: ...


class Decisions:
    """Those of one node in one life of its process."""

    # ---- clock, log, snapshots

    durable_when: Durability = "synced"
    """The state that a record must have reached before anything behind it leaves the node."""

    def clock(self, now: Instant) -> Instant:
        """The clocks by which everything is timed."""
        return now

    def log(self, queue: Queue, write: Write) -> None:
        """Send a record to the disk; it takes effect when it is there."""
        if write.before:
            queue.out.extend(write.before)
        queue.out.append(write.persist)

    def may_be_stored(self, has_settled: bool) -> bool:
        """A snapshot file may be written: of data that has settled."""
        return has_settled

    def may_be_sent(self, has_settled: bool) -> bool:
        """A node that joins may have the data: if it has settled."""
        return has_settled

    # ---- quorums and acknowledgements

    def quorum_size(self, quorum: int | str, members: int) -> int:
        """The quorum in a cluster of so many members."""
        return evaluate(quorum, max(members, 1))

    def quorum_of_promote(self, quorum: int, term: int) -> int:
        """How many nodes must have what the PROMOTE of this term waits for: the quorum that is set now."""
        return quorum

    def term_of_acknowledgement(self, said: int, ours: int) -> int:
        """The term in which a replica acknowledges: the one that it says."""
        return said

    # ---- the owner

    def is_writable(self, ro_reason: str | None, is_leader: bool) -> bool:
        """Clients may write."""
        return ro_reason is None

    def written(self, queue: Queue, entry: Entry) -> None:
        """An entry is in our log: it is neither shown nor answered yet."""

    def confirms(self, lsn: int) -> tuple[int, ...]:
        """The CONFIRMs to write when a quorum has everything up to `lsn`."""
        return (lsn,)

    def rolled_back(self, queue: Queue, lsn: int) -> list[Entry]:
        """The entries that a ROLLBACK discards, newest first: the entry that it names, and all behind it."""
        return queue.limbo.roll_back(lsn)

    code_of_timeout = Code.SYNC_QUORUM_TIMEOUT
    """Of the transaction that no quorum had in time. Another leader may still confirm it."""

    def promotes_at_once(self, configuration: Configuration) -> bool:
        """A PROMOTE of ours takes effect when it is written, without a quorum of its own."""
        return not configuration.synchronous_promote

    def kept_by_promote(self, limbo: Limbo) -> int:
        """Up to where a PROMOTE of ours keeps the queue: all that waits there, a quorum may have it."""
        return limbo.last_synchronous_lsn()

    # ---- clients

    decides_on_prepared = True
    """A transaction that writes sees the prepared, not yet confirmed writes of other transactions."""

    def answer_waits_for(self, outcome: Outcome) -> Transaction | None:
        """The transaction that must commit before an answer without effect leaves, because it reveals that one."""
        return outcome.looked_at

    def into_queue(
        self,
        queue: Queue,
        submit: Callable[[Reply | None, Instant], None],
        reply: Reply,
        now: Instant,
        *,
        is_detached: bool,
    ) -> None:
        """There is room for a transaction: it goes in. `is_detached`: its answer says no more than that."""
        submit(reply, now)

    def serves_alone(
        self, queue: Queue, relays: Mapping[int, Relay], quorum: int, beat_ns: int, now: Instant
    ) -> bool:
        """A linearizable read is answered without asking other nodes."""
        return False

    def told_to_reads(self, vclock: Vclock, limbo: Limbo) -> Vclock:
        """The position that a node reports to a linearizable read: `vclock`, all that it has written."""
        return vclock

    def place_at_marker(self, journal: Journal) -> Vclock:
        """A node's place at a marker that it writes: behind all rows in front of it, on disk or on their way."""
        return journal.promised

    def told_place(self, noted: Vclock, journal: Journal) -> Vclock:
        """The place at a marker that a node reports: the one that it noted there."""
        return noted

    # ---- rows of other nodes

    def judged_origin(self, rows: Rows, sender: int) -> int:
        """The node with the term that decides about these rows: their author, not the node that passes them on."""
        return rows[-1].replica_id

    def taken_in(self, rows: Rows, origin: int, limbo: Limbo, pending: Sequence[Promotion]) -> Rows:
        """The rows as they are to be written; `nodes.qsync.filter.Contradiction` if they must not be."""
        return filtered(rows, origin, limbo, pending)

    def may_take_in(self, queue: Queue, rows: Rows) -> bool:
        """Rows may go into our queue now, however full it is: the CONFIRM that makes room stands behind them."""
        return True

    # ---- elections

    def is_fenced(self, election: Election, followers: int) -> bool:
        """A leader must resign: too few have acknowledged of late, we among them."""
        lacks_quorum = followers < election.quorum and not election.lacks_new_quorum
        return election.fencing != "off" and lacks_quorum

    def is_held_back(self, election: Election, connected: int) -> bool:
        """A candidate does not stand: it hears no quorum, or another node sees the leader."""
        return connected < election.quorum or any(election.seen_by.values())

    def is_vote_due(self, term: int, now: Instant) -> bool:
        """Term and vote go to the disk now: before they are told, and before any row of the term."""
        return True

    def asked_of_candidate(self, journal: Journal) -> Vclock:
        """The rows that a candidate must have for our vote: also those on their way to our disk."""
        return journal.promised
