"""The form of a node's log that checkers read; a decoder of xlog files makes it.

A *record* is a row: of a transaction (`write`, or `nop` where it was made void), a decision about the queue
(`confirm`, `rollback`, `promote`, `demote`), or a vote that a node kept for itself. Records of one transaction share
`first`; the last of them has `ends`. The decoder leaves out all rows that are not about data or the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

Kind = Literal["write", "nop", "confirm", "rollback", "promote", "demote", "vote"]
Promotes = Literal["synchronous", "at once"]
"""When a PROMOTE without a mark in its row takes effect: with a quorum of its own, or when it is written."""
Id = tuple[int, int]
"""Of a transaction: the replica that made it, and the lsn of its first row there."""


ORIGINS_END: Final = 1 << 15
"""Above every number of a replica that logs may have: arrays have a place for each."""
Mark = tuple[str, object]
"""A key, and the value that a row puts there. It identifies an operation if only one wrote this value."""


def mark_of(key: object, value: object) -> Mark | None:
    """The mark of a row that puts this value under this key; None if it has none."""
    match key, value:
        case str(), [*_, int() | str() as last]:
            return key, last
        case str(), int() | str() | float() | None:
            return key, value
    return None


Place = tuple[int, object]
"""Space, and first part of the key."""
Tuple = tuple[object, ...]


class NotPlain(Exception):
    """Logs hold other than plain rows, and only plain rows are read as columns (`checkers.logs.wal.plain`)."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row. `file` and `row` are for a person: the file, and the number of the row in it (0: not numbered).

    `body` is what must be the same wherever the row is. A decision is about entries of `owner` at lsn `until`, and is
    written in `term` (0: the row has none). A vote has `term` and `vote` (0: for no node).
    """

    kind: Kind
    origin: int
    lsn: int
    file: str
    row: int = 0
    first: int = 0
    ends: bool = True
    is_synchronous: bool = False
    """The row makes its transaction wait for a quorum."""
    body: bytes = b""
    owner: int = 0
    until: int = 0
    term: int = 0
    waits: bool | None = None
    """Of a PROMOTE or DEMOTE: it waits for a quorum of its own. None: the row does not say."""
    vote: int = 0
    space: int = 0
    tuple: tuple[object, ...] = ()
    """The tuple that the row puts in place; empty for a deletion."""
    time_ns: int = 0
    """When its origin wrote it, by that node's wall clock; 0: not known."""
    key: object = None
    """Of a row of data: the first part of the primary key that it is about."""
    member: int = 0
    """The replica that the row makes a member; below 0: one that it removes."""
    is_whole: bool = True
    """The row alone says what is there after it; an UPDATE does not."""

    @property
    def place(self) -> str:
        return f"{self.file} row {self.row}" if self.row else self.file

    @property
    def id(self) -> Id:
        return (self.origin, self.first or self.lsn)

    @property
    def mark(self) -> Mark | None:
        """Key and value, None for a deletion; of a list what was appended last."""
        if self.kind == "write" and self.is_whole and not self.tuple:
            return mark_of(self.key, None)
        return mark_of(*self.tuple) if len(self.tuple) == 2 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All data of the replicated spaces at a vclock: by space and first part of the key, the tuple."""

    place: str
    vclock: Mapping[int, int]
    tuples: Mapping[Place, Tuple]
    left_out: frozenset[int] = frozenset()
    """Spaces whose content the rows alone do not say."""
    term: int = 0
    """Of the election, with the vote in it; 0: the snapshot does not say."""
    vote: int = 0
    owner: int = 0
    """Of the queue, with its term, and up to where the entries of each owner are confirmed."""
    queue_term: int = 0
    confirmed: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLog:
    """All records of one node, in the order in which it wrote them.

    `begins` is the vclock of what came before the first record and is not here (a snapshot took its place). `damage`
    says in a sentence what could not be read, None if nothing: what is missing then proves nothing.
    """

    node: str
    records: Sequence[Record]
    begins: Mapping[int, int] = field(default_factory=dict)
    damage: str | None = None
    unread: tuple[str, ...] = ()
    """A sentence for each snapshot that is damaged: all rows of the log are here, and what stood in it is not known."""
    snapshots: tuple[Snapshot, ...] = ()
    """Those that can be read and compared, oldest first."""
    instance: str = ""
    """The node's UUID, as the headers of its files have it; "" where they are not known."""
    members: Mapping[int, str] = field(default_factory=dict)
    """By replica the UUID of each member, as the log's end has them."""

    @property
    def is_whole(self) -> bool:
        """Whether every row that the node ever wrote is here."""
        return self.damage is None and not any(self.begins.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """How the logs of a configuration are to be read.

    `quorum` and `members` (how many logs there should be) are None if they are unknown. Rules that count nodes then
    report nothing; they also report nothing if a log is missing or not whole.
    """

    promotes: Promotes = "synchronous"
    has_votes: bool = True
    quorum: int | None = None
    members: int | None = None
    first_by_hand: bool = False
    """Elections were switched on in the course of the run: a PROMOTE that takes effect at once had no votes."""
    linearizable_reads: bool = False
    """The configuration promises such reads."""
    started: Mapping[int, int] = field(default_factory=dict)
    """The last lsn of each origin before the run: for older rows other rules about votes may have been in force."""

    def is_complete(self, logs: Sequence[NodeLog]) -> bool:
        """Whether the log of every member is among these, and whole."""
        return len(logs) == self.members and all(log.is_whole for log in logs)
