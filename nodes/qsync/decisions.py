"""The decisions of a node, one method or value each, with the right answer.

The parts of a node ask here where one wrong answer makes a known bug. A seeded bug (`nodes.qsync.bugs`) is a subclass
with one different answer; no other part mentions it. The arguments of a decision are all that it depends on.
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
"""A link, and the answer to send on it."""


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
    """The decisions of one node in one life of its process."""

    # ---- clock, log, snapshots

    durable_when: Durability = "synced"
    """The state that a record must have reached before anything behind it leaves the node."""

    def clock(self, now: Instant) -> Instant:
        """The clock readings that all timers and timeouts use."""
        return now

    def log(self, queue: Queue, write: Write) -> None:
        """Send a record to the disk; it takes effect when it is on disk."""
        if write.before:
            queue.out.extend(write.before)
        queue.out.append(write.persist)

    def may_be_stored(self, has_settled: bool) -> bool:
        """A snapshot file may be written: only of data that has settled."""
        return has_settled

    def may_be_sent(self, has_settled: bool) -> bool:
        """A joining node may get the data: only if it has settled."""
        return has_settled

    # ---- quorums and acknowledgements

    def quorum_size(self, quorum: int | str, members: int) -> int:
        """The quorum in a cluster of this number of members."""
        return evaluate(quorum, max(members, 1))

    def quorum_of_promote(self, quorum: int, term: int) -> int:
        """The number of acknowledgements that the PROMOTE of this term needs: the quorum that is set now."""
        return quorum

    def term_of_acknowledgement(self, said: int, ours: int) -> int:
        """The term in which a replica acknowledges: the one that it reports."""
        return said

    # ---- the owner

    def is_writable(self, ro_reason: str | None, is_leader: bool) -> bool:
        """Clients may write."""
        return ro_reason is None

    def written(self, queue: Queue, entry: Entry) -> None:
        """An entry is in the own log: it is neither visible to reads nor answered yet."""

    def confirms(self, lsn: int) -> tuple[int, ...]:
        """The CONFIRMs to write when a quorum has everything up to `lsn`."""
        return (lsn,)

    def rolled_back(self, queue: Queue, lsn: int) -> list[Entry]:
        """The entries that a ROLLBACK discards, newest first: the entry that it names, and all behind it."""
        return queue.limbo.roll_back(lsn)

    code_of_timeout = Code.SYNC_QUORUM_TIMEOUT
    """The error of a transaction that no quorum had in time. Another leader may still confirm it."""

    def promotes_at_once(self, configuration: Configuration) -> bool:
        """The node's PROMOTE takes effect when it is written, without a quorum of its own."""
        return not configuration.synchronous_promote

    def kept_by_promote(self, limbo: Limbo) -> int:
        """The lsn up to which the node's PROMOTE keeps the queue: all entries, because a quorum may have them."""
        return limbo.last_synchronous_lsn()

    # ---- clients

    decides_on_prepared = True
    """A writing transaction observes the prepared, not yet confirmed writes of other transactions."""

    def answer_waits_for(self, outcome: Outcome) -> Transaction | None:
        """The transaction that an answer without effect reveals, which must commit before the answer leaves."""
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
        """Submit a transaction that has room in the queue. `is_detached`: it is answered as soon as it is queued."""
        submit(reply, now)

    def serves_alone(
        self, queue: Queue, relays: Mapping[int, Relay], quorum: int, beat_ns: int, now: Instant
    ) -> bool:
        """Whether a linearizable read is answered without asking other nodes."""
        return False

    def told_to_reads(self, vclock: Vclock, limbo: Limbo) -> Vclock:
        """The position that a node reports to a linearizable read: `vclock`, all that it has written."""
        return vclock

    def place_at_marker(self, journal: Journal) -> Vclock:
        """A node's place at a marker that it writes: behind all earlier rows, on disk or on their way."""
        return journal.promised

    def told_place(self, noted: Vclock, journal: Journal) -> Vclock:
        """The place at a marker that a node reports: the one that it noted when it wrote the marker."""
        return noted

    # ---- rows of other nodes

    def judged_origin(self, rows: Rows, sender: int) -> int:
        """The node whose term decides about these rows: their author, not the node that passes them on."""
        return rows[-1].replica_id

    def taken_in(self, rows: Rows, origin: int, limbo: Limbo, pending: Sequence[Promotion]) -> Rows:
        """The rows to write for received rows; `nodes.qsync.filter.Contradiction` if they must not be taken in."""
        return filtered(rows, origin, limbo, pending)

    def may_take_in(self, queue: Queue, rows: Rows) -> bool:
        """Rows may go into the queue, however full it is: the CONFIRM that makes room stands behind them."""
        return True

    # ---- elections

    def is_fenced(self, election: Election, followers: int) -> bool:
        """A leader must resign: too few nodes, itself included, have acknowledged recently."""
        lacks_quorum = followers < election.quorum and not election.lacks_new_quorum
        return election.fencing != "off" and lacks_quorum

    def is_held_back(self, election: Election, connected: int) -> bool:
        """A candidate does not stand: no quorum is connected, or another node sees the leader."""
        return connected < election.quorum or any(election.seen_by.values())

    def is_vote_due(self, term: int, now: Instant) -> bool:
        """Term and vote go to the disk now: before any message with them, and before any row of the term."""
        return True

    def asked_of_candidate(self, journal: Journal) -> Vclock:
        """The rows that a candidate must have to get the vote: also rows that are on their way to the own disk."""
        return journal.promised
