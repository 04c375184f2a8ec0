"""The durable part of one node's log, as a simulator recorded it, with the queue that it describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from checkers.logs.wal.effects import Begun, Claimed
from checkers.logs.wal.record import Id, NodeLog, Promotes, Record
from checkers.logs.wal.replay import Limbo, Replayed

FIRST_TERM = 1
"""A node begins in this term, and does not write it."""
DONE = ("confirmed", "committed")


@dataclass(slots=True)
class Disk:
    """`begins` is the vclock of the snapshot that the log begins behind."""

    node: str
    promotes: Promotes
    begins: dict[int, int] = field(default_factory=dict)
    vclock: dict[int, int] = field(default_factory=dict)
    term: int = FIRST_TERM
    votes: set[tuple[int, int]] = field(default_factory=set)
    before: dict[int, int] = field(default_factory=dict)
    """The last durable lsns when the node joined anew."""
    vote: tuple[int, int] = (0, 0)
    """The last one that was written: term and replica."""
    members_before: tuple[int, ...] = ()
    """Those of the snapshot."""
    registrations: list[tuple[Id, int]] = field(default_factory=list)
    """Of each row about a member: its transaction, and the replica (below 0: removed)."""
    is_unmarked: bool = False
    """It has a PROMOTE that does not say when it takes effect, or, of 2.6, a CONFIRM in a queue without an owner."""
    replayed: Replayed = field(init=False)
    limbo: Limbo = field(init=False)
    open_rows: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin_log()

    def _begin_log(self) -> None:
        self.replayed = Replayed(NodeLog(node=self.node, records=(), begins=self.begins))
        self.limbo = Limbo(self.replayed, self.promotes)
        self.open_rows.clear()
        self.registrations.clear()

    def begin(self, begun: Begun) -> None:
        """Begin the log behind a snapshot. A snapshot of rows that are here already changes nothing."""
        joins_anew = self.is_join(begun)
        is_first = not self.vclock
        if begun.is_empty:
            self.vclock, self.term, self.vote, self.before = {}, FIRST_TERM, (0, 0), {}
            self.votes.clear()
        self.term = max(self.term, begun.term)
        if begun.is_empty or joins_anew or is_first:
            self.before = {**self.before, **self.vclock}  # before the snapshot's vclock replaces this one
            self.begins = dict(begun.vclock)
            self.vclock = dict(begun.vclock)
            self._begin_log()
            self.vote = max(self.vote, (begun.term, begun.vote))
            self.members_before = begun.members
            self.limbo.owner, self.limbo.term = begun.owner, begun.queue_term
            self.limbo.confirmed_of = dict(begun.confirmed)

    def is_join(self, begun: Begun) -> bool:
        """Whether the snapshot has rows that this disk lacks: they came from another node."""
        return any(lsn > self.vclock.get(origin, 0) for origin, lsn in begun.vclock)

    def take(self, rows: Sequence[Record]) -> None:
        """Rows in the order of the log."""
        for row in rows:
            self.term = max(self.term, row.term)
            if row.kind == "vote":
                self.votes.add((row.term, row.vote))
                self.vote = (row.term, row.vote)
                continue
            if row.member:
                self.registrations.append((row.id, row.member))
            self.is_unmarked |= row.kind in ("promote", "demote") and row.waits is None
            self.is_unmarked |= row.kind == "confirm" and not (self.limbo.owner or self.limbo.pending)
            self.vclock[row.origin] = max(row.lsn, self.vclock.get(row.origin, 0))
            self.open_rows.append(row)
            if row.ends:
                whole = tuple(self.open_rows)
                self.open_rows.clear()
                self.limbo.read(whole)

    def holds(self, name: Id, last: int) -> bool:
        """Whether all rows of the transaction are here, with their content."""
        return self.begins.get(name[0], 0) >= last or self.replayed.fates.get(name, "nop") != "nop"

    def lacks(self, claimed: Claimed) -> list[tuple[int, int]]:
        """The claimed positions that are not durable here: (origin, lsn)."""
        return [(origin, lsn) for origin, lsn in claimed.vclock if lsn > self.vclock.get(origin, 0)]

    def knows_as_done(self, name: Id, last: int) -> bool:
        if self.begins.get(name[0], 0) >= last:
            return True
        return self.replayed.fates.get(name) in DONE

    @property
    def members(self) -> tuple[int, ...]:
        """The replicas that the committed part of the log has as members."""
        members = set(self.members_before)
        for name, member in self.registrations:
            if self.replayed.fates.get(name) in DONE:
                (members.add if member > 0 else members.discard)(abs(member))
        return tuple(sorted(members))
