"""The state of a server: rows, log, locks, and the transactions that it takes part in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.kernel.errors import StartRefused
from nodes.records import Record
from nodes.twophase.data import GUARD, Data, Place, partition_of
from nodes.twophase.kept import Kept
from nodes.twophase.locks import Locks
from nodes.twophase.site import Site
from nodes.twophase.states import State, changed
from nodes.twophase.wal import Wal

Send = Callable[[str, str, list[Any]], None]
"""(peer, word, payload): to the present life of a member. The first field of a payload is the xid."""

Participants = Sequence[Sequence[Any]]
"""[[partition, [node, …]], …]: the owners that were in sync when the transaction was mapped."""


@dataclass(eq=False)
class Local:
    """A transaction at one participant: as primary, as backup, or both."""

    xid: str
    near: str
    near_life: int
    version: int
    one_phase: bool = False
    participants: Participants = ()
    state: State = State.ACTIVE
    writes: list[list[Any]] = field(default_factory=list)
    """[space, key, value, version], guards among them"""
    prepared: list[int] = field(default_factory=list)
    """The partitions with a PREPARED record on this node. Messages that are sent now leave behind that record."""
    replaced: set[int] = field(default_factory=set)
    """Prepared partitions of which a full copy came since: the source has not prepared it, or has sent its outcome."""
    unwritten: int = 0
    """PREPARED records on their way to the disk."""
    unanswered: list[str] = field(default_factory=list)
    """Backups that have not answered the prepare."""
    backups: list[tuple[str, int]] = field(default_factory=list)
    """Backups that this node, as primary, has asked: name and life."""
    unfinished: list[tuple[str, int]] = field(default_factory=list)
    """Backups that have not answered the finish: name and life."""
    answers: list[tuple[str, int, str, list[Any]]] = field(default_factory=list)
    """Answers to send when it has finished: peer, its life, word, payload."""
    is_primary: bool = False
    primaries: list[tuple[str, int]] = field(default_factory=list)
    """The primaries for which this node is a backup: name and life."""
    readers: list[Callable[[], None]] = field(default_factory=list)
    """Called when it has ended on this node: reads without a lock, and questions of recovery."""
    refusal: str = ""
    commits: bool | None = None
    sign: object = None
    is_recovered: bool = False
    position: int = -1
    """The position of the COMMITTED record in the log."""

    def change(self, state: State) -> None:
        self.state = changed(self.state, state)

    @property
    def partitions(self) -> list[int]:
        return [partition for partition, _ in self.participants]


class Stock:
    def __init__(self, site: Site) -> None:
        self.site = site
        self.data = Data(site.configuration.partitions)
        self.wal = Wal(site)
        self.locks = Locks()
        self.locals: dict[str, Local] = {}
        """Transactions that have not finished on this node."""
        self.closing: dict[str, Local] = {}
        """Transactions that have finished on this node, and not at all its backups yet."""
        self.outcomes: Kept[bool] = Kept()
        """Whether transactions that were prepared here, or came with a full copy, have committed."""
        self.moving: dict[str, int] = {}
        """Xid → the partition of a write to an atomic space that has begun here and not ended."""
        self.not_restored: list[str] = []
        """The atomic spaces that the restore left out with which the data begin."""
        self.is_flagged = False
        """A partition was rebalanced, and no base snapshot was taken since: the log alone does not give the data."""
        self.last_base = 0

    def partition(self, write: Sequence[Any]) -> int:
        return partition_of((write[0], write[1]), self.site.configuration.partitions)

    def handed_down(self, place: Place) -> Local | None:
        """The open transaction that writes this key, if this life did not prepare it as the primary.

        It was prepared in an earlier life, or for a primary that has left: a client may already have got the new value
        there, or the answer "ok".
        """
        partition = self.partition(place)
        for xid in self.locks.holders(place):
            local = self.locals.get(xid)
            if local is None or place not in [(w[0], w[1]) for w in local.writes if w[3] != GUARD]:
                continue
            primary = next(owners[0] for number, owners in local.participants if number == partition)
            if not local.is_primary or primary != self.site.name:
                return local
        return None

    def busy(self) -> set[int]:
        """Partitions with transactions that are prepared, or not finished at all backups, or with atomic writes."""
        moving = [local for local in self.locals.values() if local.writes] + list(self.closing.values())
        prepared = {self.partition(write) for local in moving for write in local.writes}
        return prepared.union(self.moving.values())

    def load(self, records: Sequence[Record]) -> list[Local]:
        """Replay a log; returns the transactions that are in doubt."""
        for record in records:
            match record:
                # There may be several: as the primary of some partitions, and as the backup of others.
                case ["prepared", xid, near, life, version, one_phase, participants, writes]:
                    local = self.locals.setdefault(
                        xid, Local(xid, near, life, version, one_phase, participants)
                    )
                    local.state = State.PREPARED
                    local.writes += writes
                    local.prepared += sorted({self.partition(write) for write in writes})
                case ["committed", xid, _, _, _, writes]:
                    self.data.apply(writes)
                    self.locals.pop(xid, None)
                    self.outcomes.note(xid, True)
                case ["rolled-back", xid]:
                    self.locals.pop(xid, None)
                    self.outcomes.note(xid, False)
                case ["rebalanced", copies, committed]:
                    self.install(copies, committed)
                case ["restored", _, rows, *left_out]:
                    self.begin_with(rows, *left_out)
                case ["atomic", _, row]:
                    self.data.apply([row])
                case ["base", *_]:
                    self.last_base += 1
                case ["base-done", _]:
                    self.is_flagged = False
                case ["start" | "finish" | "void", *_]:
                    pass
                case _:
                    raise StartRefused(f"the log has a record of an unknown kind: {record!r}"[:120])
        for local in self.locals.values():
            for write in local.writes:
                self.locks.hold((write[0], write[1]), local.xid)
        return list(self.locals.values())

    def begin_with(self, rows: Sequence[Sequence[Any]], left_out: Sequence[str] = ()) -> None:
        """Replace all data by `rows`. `left_out`: the atomic spaces, which cuts do not cover."""
        self.not_restored = list(left_out)
        self.data = Data(self.site.configuration.partitions)
        self.data.apply(rows)
        self.locals.clear()
        self.outcomes = Kept()
        self.is_flagged = False

    def install(self, copies: Sequence[Sequence[Any]], committed: Sequence[str]) -> None:
        """Install full copies of partitions, and the transactions that their source has committed.

        The source waited until no transaction was prepared on them. So the copy does not contain the writes that a
        transaction in doubt prepared here before, and this node alone may not let that transaction commit.
        """
        self.is_flagged = True
        for partition, rows in copies:
            self.data.replace(partition, rows)
        for xid in committed:
            self.outcomes.note(xid, True)
        copied = {partition for partition, _ in copies}
        for local in self.locals.values():
            if local.commits is None:
                local.replaced |= copied.intersection(local.prepared)
