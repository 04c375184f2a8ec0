"""The limbo: the queue of transactions that are written but not yet known to be on a quorum of nodes.

One node owns the queue. Its entries wait there in the order of the journal; an entry's `lsn` is −1 until the
journal has written it. Replicas acknowledge with their vclock, of which only the owner's component counts here;
an acknowledgement may come before the owner itself has the lsn, so counting looks at the whole acknowledgement
vclock, not at single messages. When the greatest lsn that a quorum has is that of an entry or beyond it, the owner
writes CONFIRM{lsn}, which commits every entry up to it, and the asynchronous ones right behind. When the oldest entry
that a client waits for is too old, the owner writes ROLLBACK{lsn}, which discards it and everything behind it, newest
first.

This file is the bookkeeping alone: no journal, no clients, no time. `nodes.qsync.commits` acts on it.

Sources: `txn_limbo.c` of Tarantool, and its description "Qsync internals".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nodes.qsync.spaces import Transaction

UNWRITTEN = -1


@dataclass(slots=True, eq=False)
class Entry:
    """A waiting transaction. Without `wait_ack` it is asynchronous and waits only for those before it."""

    transaction: Transaction
    wait_ack: bool
    lsn: int = UNWRITTEN
    promised_lsn: int = UNWRITTEN
    """The lsn that the entry gets when it is written."""
    inserted_ns: int = 0
    written_ns: int = 0
    size: int = 0
    """Bytes of its record in the log."""
    is_awaited: bool = True
    """A client waits for the commit. A transaction that was only submitted has no timeout."""


class Limbo:
    """The queue, its owner and term, and what each replica has acknowledged."""

    def __init__(self) -> None:
        self.owner_id = 0
        self.term = 1
        self.entries: deque[Entry] = deque()
        self.size = 0
        """Bytes of all entries."""
        self.acknowledged: dict[int, int] = {}
        self.confirmed_lsn = 0
        """The lsn in the CONFIRM records on disk."""
        self.confirming_lsn = 0
        """The lsn in a CONFIRM that is being written: runs ahead of `confirmed_lsn`."""
        self.term_of: dict[int, int] = {}
        """By origin: the term of its last PROMOTE or DEMOTE that took effect (Tarantool's `promote_term_map`)."""
        self.held_lsn = 0
        """The owner's entries up to this lsn were confirmed in a snapshot: their CONFIRMs may still come."""
        self.confirmed_of: dict[int, int] = {}
        """By owner, present and past: up to where its transactions are confirmed (`confirmed_vclock`)."""
        self.forgets_confirmed = False
        """As in the first versions, a new owner's confirmed lsn begins at 0, even if it has owned the queue before."""
        self.rolled_back: set[int] = set()
        """The lsns of the owner's entries that were rolled back while entries before them went on waiting."""
        self.is_in_rollback = False
        self.rollback_count = 0
        """Entries rolled back since the node started."""

    def __len__(self) -> int:
        return len(self.entries)

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.size += entry.size

    @property
    def known_confirmed_lsn(self) -> int:
        """The lsn that is confirmed, or will be as soon as it is on disk."""
        return max(self.confirmed_lsn, self.confirming_lsn)

    def bounds(self) -> tuple[int, int] | None:
        """The lsn of the first entry and of the last synchronous one; None if the queue is empty."""
        if not self.entries:
            return None
        return self.entries[0].lsn, self.last_synchronous_lsn()

    def last_synchronous_lsn(self) -> int:
        """The lsn for a PROMOTE: that of the newest entry that waits for a quorum, else the confirmed one."""
        newest = next((entry for entry in reversed(self.entries) if entry.wait_ack), None)
        return self.known_confirmed_lsn if newest is None else newest.promised_lsn

    def acknowledge(self, replica_id: int, lsn: int) -> bool:
        """Note that a replica has all rows up to `lsn`; False if that was known."""
        # Nothing is lost with one that is ignored: replicas repeat their vclock with each heartbeat.
        if self.is_in_rollback or lsn <= self.acknowledged.get(replica_id, 0):
            return False
        self.acknowledged[replica_id] = lsn
        return True

    def quorum_lsn(self, quorum: int) -> int:
        """The greatest lsn that at least `quorum` nodes have."""
        if len(self.acknowledged) < quorum:
            return 0
        return sorted(self.acknowledged.values(), reverse=True)[quorum - 1]

    def confirmable(self, quorum: int) -> int | None:
        """The lsn for the next CONFIRM: that of the newest synchronous entry on a quorum; None if there is none."""
        limit = self.quorum_lsn(quorum)
        lsn = None
        for entry in self.entries:
            # A quorum may have it while the own disk does not: the CONFIRM waits for the own record, too.
            if entry.lsn == UNWRITTEN or (entry.wait_ack and entry.lsn > limit):
                break
            if entry.wait_ack:
                lsn = entry.lsn
        return lsn if lsn is not None and lsn > self.confirming_lsn else None

    def confirm(self, lsn: int) -> list[Entry]:
        """Remove the entries that CONFIRM{lsn} commits; returns them, oldest first."""
        self.confirmed_lsn = max(self.confirmed_lsn, lsn)
        self.confirming_lsn = max(self.confirming_lsn, lsn)
        known = self.confirmed_of.get(self.owner_id, 0)
        self.confirmed_of[self.owner_id] = max(known, self.confirmed_lsn)
        return self.settled()

    def settled(self) -> list[Entry]:
        """Remove the oldest entries that are confirmed or asynchronous; returns them, oldest first."""
        done: list[Entry] = []
        while self.entries:
            entry = self.entries[0]
            if entry.lsn == UNWRITTEN or (entry.wait_ack and entry.lsn > self.confirmed_lsn):
                break
            done.append(self.entries.popleft())
            self.size -= entry.size
        if not self.entries:
            self.rolled_back.clear()
        return done

    def roll_back(self, lsn: int) -> list[Entry]:
        """Remove the first synchronous entry from `lsn` on, and all behind it; returns them, newest first."""
        first = next(
            (place for place, entry in enumerate(self.entries) if entry.wait_ack and entry.lsn >= lsn),
            len(self.entries),
        )
        discarded = [self.entries.pop() for _ in range(len(self.entries) - first)]
        self.size -= sum(entry.size for entry in discarded)
        self.rollback_count += len(discarded)
        if self.entries:
            self.rolled_back.update(entry.lsn for entry in discarded)
        return discarded

    def drop_newest(self, entry: Entry) -> None:
        """The journal could not write this entry, the newest one."""
        assert self.entries and self.entries[-1] is entry, "the journal fails newest first"
        self.entries.pop()
        self.size -= entry.size

    def promote(self, origin: int, owner_id: int, lsn: int, term: int) -> tuple[list[Entry], list[Entry]]:
        """Set the owner (0: none). Returns the entries that this confirms, oldest first, and discards, newest first."""
        # Both are about the former owner's entries, so they come before the owner changes.
        confirmed = self.confirm(lsn)
        discarded = self.roll_back(lsn + 1)
        self.owner_id, self.term = owner_id, term
        self.held_lsn = 0
        self.rolled_back.clear()
        self.term_of[origin] = term
        confirmed_lsn = 0 if self.forgets_confirmed else self.confirmed_of.get(owner_id, 0)
        self.confirmed_lsn = self.confirming_lsn = confirmed_lsn
        return confirmed, discarded
