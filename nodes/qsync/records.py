"""Records on their way to the disk, each with its transaction and its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nodes.iproto.messages import Response, Row, Type
from nodes.kernel.events import Instant
from nodes.qsync.election import Election
from nodes.qsync.filter import Promotion
from nodes.qsync.journal import Draft, Journal, Write
from nodes.qsync.limbo import Entry
from nodes.qsync.spaces import Transaction

_BARRIERS = frozenset({Type.ROLLBACK.value, Type.PROMOTE.value, Type.DEMOTE.value})
"""Rows that discard entries: later rows may only be taken in when these have taken effect."""
CONTROL = _BARRIERS | {Type.CONFIRM.value}
"""Rows that decide about entries."""
DATA = frozenset({Type.INSERT, Type.REPLACE, Type.UPDATE, Type.UPSERT, Type.DELETE})
"""Rows that change a space."""

Waiting = Entry | Transaction | None
"""The subject of a write: a limbo entry, a transaction outside the limbo, or nothing (a control row)."""


class UnderWay(NamedTuple):
    waiting: Waiting
    reply: tuple[int, Response] | None
    is_barrier: bool


class Records:
    """The records of one node. `log` sends one to the disk; `pending` are the PROMOTEs that wait for a quorum."""

    def __init__(
        self, journal: Journal, election: Election, pending: Sequence[Promotion], log: Callable[[Write], None]
    ) -> None:
        self._journal = journal
        self._election = election
        self._pending = pending
        self._log = log
        self.under_way: dict[int, UnderWay] = {}
        """Token → the record's transaction and reply."""
        self._barriers = 0
        self._votes = 0
        """How many records of a term and vote are on their way to the disk."""

    @property
    def is_behind_barrier(self) -> bool:
        """True while a row that discards entries is on its way to the disk: rows of other nodes have to wait."""
        return self._barriers > 0

    @property
    def has_written_term(self) -> bool:
        """The newest term is on disk."""
        return self._votes == 0

    def write(self, write: Write, waiting: Waiting = None, reply: tuple[int, Response] | None = None) -> None:
        """Send a record to the disk; the reply leaves when it is on disk."""
        kind = write.rows[-1].type
        # A CONFIRM that ends a waiting PROMOTE changes the owner, as a PROMOTE does.
        is_barrier = kind in _BARRIERS or (kind == Type.CONFIRM and bool(self._pending))
        self.under_way[write.token] = UnderWay(waiting, reply, is_barrier)
        self._barriers += is_barrier
        self._votes += kind == Type.RAFT
        self._log(write)

    def control(self, kind: Type, body: Mapping[int, object], now: Instant) -> None:
        """Write a row that decides about entries."""
        self.write(self._journal.write_own((Draft(kind.value, body),), now.wall_ns / 1e9))

    def save_vote(self, now: Instant) -> None:
        """Write the election's term and vote; no message with them leaves before this record is on disk."""
        election = self._election
        self.write(self._journal.write_vote(election.term, election.vote, now.wall_ns / 1e9))

    def persisted(self, write: Write, now: Instant) -> UnderWay:
        """A record is on disk."""
        done = self.under_way.pop(write.token)
        self._barriers -= done.is_barrier
        if write.rows[-1].type == Type.RAFT:
            self._votes -= 1
            # Not for an older vote: the election acts on the newest one, which may still be in flight.
            if self.has_written_term:
                self._election.written(now.monotonic_ns)
        return done

    def failed(self) -> list[tuple[Write, UnderWay]]:
        """All records on their way to the disk failed; returns them, newest first."""
        lost = [(write, self.under_way.pop(write.token)) for write in self._journal.failed()]
        self._election.must_write |= any(write.rows[-1].type == Type.RAFT for write, _ in lost)
        is_untold = self._election.told_behind in {write.token for write, _ in lost}
        # The message that waited for a lost record was dropped with it.
        self._election.must_tell |= self._election.must_write or is_untold
        self._barriers = self._votes = 0
        return lost


def is_nothing(rows: Sequence[Row]) -> bool:
    """Whether the rows have no effect: such a transaction does not go through the limbo."""
    return all(row.type == Type.NOP for row in rows)
