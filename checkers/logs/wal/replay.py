"""The limbo, replayed from one node's log: which transactions the log says are confirmed, and which are not.

An independent reading of the rules, which shares no code with the nodes. In the order of the log:

- a synchronous transaction, or any behind a queue that is not empty, waits in the queue; any other is committed
- CONFIRM{owner, lsn} commits the owner's entries up to lsn, and the asynchronous ones right behind
- ROLLBACK{owner, lsn} discards the owner's first entry from lsn on, and all behind it
- PROMOTE{old owner, lsn, term} commits the old owner's entries up to lsn, discards the rest, and passes the queue on.
  Where PROMOTE is itself an entry (it *waits*: `checkers.logs.wal.marks`), only when a CONFIRM of its own owner covers
  it; one that another one overtook comes to nothing. One of a term that is over says nothing.

CONFIRM is cumulative, so CONFIRM 7 after ROLLBACK 5 is legal: 5 to 6 are no longer in the queue. But 7 must be there: a
decision names the last lsn of a synchronous entry that waits (of a PROMOTE, its own). A CONFIRM of what is confirmed
already says nothing new. Any other decision contradicts the log that it stands in (`Replayed.contradictions`).

Source: "Qsync internals", and `txn_limbo.c` of Tarantool.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from checkers.logs.wal.marks import marks
from checkers.logs.wal.record import Id, NodeLog, Promotes, Record

Fate = Literal["committed", "confirmed", "rolled back", "pending", "nop"]
"""`committed`: asynchronous, it waited for nothing; `nop`: written without its content."""


@dataclass(slots=True)
class Replayed:
    """The result of one log. `order` holds the confirmed synchronous transactions as they took effect."""

    log: NodeLog
    fates: dict[Id, Fate] = field(default_factory=dict)
    order: list[Id] = field(default_factory=list)
    transactions: dict[Id, tuple[Record, ...]] = field(default_factory=dict)
    decided_by: dict[Id, Record] = field(default_factory=dict)
    """The CONFIRM, ROLLBACK or PROMOTE that decided about it."""
    contradictions: list[Record] = field(default_factory=list)
    """CONFIRMs and ROLLBACKs that name no entry of the queue as it was when they were written."""

    @property
    def counts(self) -> Counter[Fate]:
        return Counter(self.fates.values())

    def is_named(self, name: Id) -> bool:
        """Whether the CONFIRM or ROLLBACK that decided about a transaction names it: missing rows change no such fate.

        What else a decision covers may have been decided by a row that is missing.
        """
        by = self.decided_by.get(name)
        if by is None or by.kind not in ("confirm", "rollback"):
            return False
        return (by.owner, by.until) == (name[0], self.transactions[name][-1].lsn)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry of the queue."""

    id: Id
    last: int
    is_synchronous: bool


class Limbo:
    """The queue behind the rows that were read."""

    def __init__(self, replayed: Replayed, promotes: Promotes) -> None:
        self.replayed = replayed
        self.promotes = promotes
        self.waits = marks(replayed.log.records, promotes)
        """Whether a PROMOTE or DEMOTE waits; for one that is not here, its row says it."""
        self.queue: deque[Waiting] = deque()
        self.pending: list[Record] = []
        self.term = 0
        self.owner = 0
        """Of the queue; 0: no node."""
        self.promotions: set[Id] = set()
        """Every PROMOTE and DEMOTE so far, also those that came to nothing."""
        self.in_effect: dict[Id, Record] = {}
        """The PROMOTEs and DEMOTEs that passed the queue on."""
        self.named: tuple[int, int] = (0, 0)
        """The owner and the lsn that a PROMOTE at this place should have named: the last one, when it was read."""
        self.confirmed_of: dict[int, int] = {}
        """By owner: up to where its entries are confirmed."""

    def read(self, rows: tuple[Record, ...]) -> None:
        """Take in the next part of the log: all rows of a transaction, a decision, or a vote."""
        if rows[0].kind in ("write", "nop"):
            self.submit(rows)
        elif rows[0].kind != "vote":
            self.decide(rows[0])

    def submit(self, rows: tuple[Record, ...]) -> None:
        first = rows[0]
        self.replayed.transactions[first.id] = rows
        is_synchronous = any(row.is_synchronous for row in rows)
        if all(row.kind == "nop" for row in rows):
            self.replayed.fates[first.id] = "nop"
        elif is_synchronous or self.queue:
            self.queue.append(Waiting(first.id, rows[-1].lsn, is_synchronous))
            self.replayed.fates[first.id] = "pending"
        else:
            self.replayed.fates[first.id] = "committed"

    def decide(self, row: Record) -> None:
        if row.kind in ("confirm", "rollback") and not self._names_an_entry(row):
            self.replayed.contradictions.append(row)
        match row.kind:
            case "confirm":
                for promotion in reversed(self.pending):
                    if promotion.origin == row.owner and promotion.lsn <= row.until:
                        self._take_over(promotion)
                        break
                self._confirm(row, row.owner, row.until)
            case "rollback":
                self._roll_back(row, row.owner, row.until)
            case "promote" | "demote":
                self.named = self._to_be_kept()  # before the PROMOTE changes the queue
                self.promotions.add(row.id)
                self._promote(row)

    def _names_an_entry(self, row: Record) -> bool:
        named = (row.owner, row.until)
        if row.until <= self.replayed.log.begins.get(row.owner, 0):
            return True  # what stood in the queue then, is not here
        if row.kind == "confirm" and (
            row.until <= self.confirmed_of.get(row.owner, 0) or named in self.promotions
        ):
            return True
        return any(entry.is_synchronous and (entry.id[0], entry.last) == named for entry in self.queue)

    def _to_be_kept(self) -> tuple[int, int]:
        """Owner and lsn of a PROMOTE that waits, else of the last synchronous entry, else of what is confirmed."""
        if self.pending:
            return self.pending[-1].origin, self.pending[-1].lsn
        waiting = next((entry for entry in reversed(self.queue) if entry.is_synchronous), None)
        return self.owner, self.confirmed_of.get(self.owner, 0) if waiting is None else waiting.last

    def _confirm(self, decision: Record, owner: int, until: int) -> None:
        self.confirmed_of[owner] = max(until, self.confirmed_of.get(owner, 0))
        while self.queue:
            entry = self.queue[0]
            if entry.is_synchronous and (entry.id[0] != owner or entry.last > until):
                return
            self.queue.popleft()
            self._settle(entry, "confirmed", decision)

    def _roll_back(self, decision: Record, owner: int | None, start: int) -> None:
        """Roll back from the first synchronous entry of `owner` (None: of any) with that lsn or a later one on."""
        kept = next(
            (
                place
                for place, entry in enumerate(self.queue)
                if entry.is_synchronous and (owner is None or (entry.id[0] == owner and entry.last >= start))
            ),
            len(self.queue),
        )
        while len(self.queue) > kept:
            self._settle(self.queue.pop(), "rolled back", decision)

    def _settle(self, entry: Waiting, fate: Fate, decision: Record) -> None:
        self.replayed.fates[entry.id] = fate
        self.replayed.decided_by[entry.id] = decision
        if fate == "confirmed" and entry.is_synchronous:
            self.replayed.order.append(entry.id)

    def _promote(self, row: Record) -> None:
        if row.term <= self.term:
            return
        self.pending = sorted((*self.pending, row), key=lambda known: known.term)
        waits = self.waits.get((row.origin, row.lsn), row.waits)
        if waits is False or (waits is None and self.promotes == "at once"):
            self._take_over(row)

    def _take_over(self, promotion: Record) -> None:
        """Make a PROMOTE take effect, after the PROMOTEs that it stands on, in whatever order they came."""
        chain = [promotion]
        for earlier in reversed(self.pending):
            stands_on = earlier.origin == chain[0].owner and earlier.lsn <= chain[0].until
            if stands_on and earlier.term < chain[0].term:
                chain.insert(0, earlier)
        self.pending = [row for row in self.pending if row.term > promotion.term]
        for row in chain:
            self._change_owner(row)

    def _change_owner(self, row: Record) -> None:
        self._confirm(row, row.owner, row.until)  # first: the rollback discards all that is left
        self._roll_back(row, None, 0)
        self.term = row.term
        self.owner = row.origin if row.kind == "promote" else 0
        self.in_effect[row.id] = row


def transactions(log: NodeLog) -> Iterator[tuple[Record, ...]]:
    """The rows of each transaction, and each decision or vote, in the order of the log.

    A transaction without a last row ends where something else begins; at the end of the log it is left out.
    """
    open_rows: list[Record] = []
    for record in log.records:
        is_data = record.kind in ("write", "nop")
        if open_rows and (not is_data or record.id != open_rows[0].id):
            yield tuple(open_rows)
            open_rows = []
        open_rows.append(record)
        if record.ends or not is_data:
            yield tuple(open_rows)
            open_rows = []
