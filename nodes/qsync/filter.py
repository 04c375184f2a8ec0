"""The treatment of rows of other nodes: take them, take them without their effect, or stop.

A transaction's *origin* is the node that wrote it, whichever peer it came from. Its term is over when a later PROMOTE
or DEMOTE than its own last one has taken effect here (`Limbo.term_of`, kept by origin).

| rows | the origin's term is over | else |
|---|---|---|
| a transaction that waits in the limbo | becomes NOPs | taken |
| an asynchronous transaction | taken if the queue has no owner, else **split-brain** | taken |
| CONFIRM of what is confirmed already, ROLLBACK of what is discarded already | becomes a NOP | checked |
| CONFIRM, ROLLBACK that contradicts | **split-brain**: it names a past owner | checked |
| PROMOTE, DEMOTE | checked | checked |

*Checked*: it names the known owner; PROMOTE and DEMOTE are of a term above all others; the lsn is what is
confirmed already (not for CONFIRM and ROLLBACK) or lies in the queue, and was not rolled back. A row that fails a check
is a **split-brain**: the sender has a history that contradicts the own one. Its rows are not taken in, and this node
stops following that peer.

A PROMOTE that *waits* (`Row.wait_ack`) decides only when it is confirmed. So a PROMOTE of a term that is over is not a
contradiction: it has no effect. A PROMOTE may stand on another one that is not confirmed yet, even if that one came
late. Its lsn is checked against the queue once more when the CONFIRM comes that lets it take effect. A ROLLBACK may not
discard entries that a PROMOTE on this disk keeps: the acknowledgement of that PROMOTE covers them. A PROMOTE that does
not wait takes effect when it is written. The row says which of the two it is, so every reader treats it alike.

Pure: no journal, no time. Rules and messages are those of `txn_limbo.c` and `applier.cc` in Tarantool 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodes.iproto.codes import Code
from nodes.iproto.messages import Key, Row, Type
from nodes.qsync.limbo import Limbo

Rows = tuple[Row, ...]

FOREIGN_OWNER = "got a request from a foreign synchro queue owner"
OBSOLETE_TERM = "got a PROMOTE/DEMOTE with an obsolete term"
PROCESSED_RANGE = "got a request with lsn from an already processed range"
FUTURE_LSN = "got a request mentioning future lsn"
OUT_OF_RANGE = "got a request lsn out of queue range"
OLD_ASYNC = "got an async transaction from an old term"
KEPT_BY_PROMOTE = "got a ROLLBACK of what a PROMOTE keeps"
"""Not a message of Tarantool, which has no PROMOTE that waits."""
KEPT_AFTER_ROLLBACK = "got a request lsn that was rolled back"
"""Not a message of Tarantool, which compares an lsn with the first and the last of the queue."""


class Contradiction(Exception):
    """Rows that must not be taken in; carries Tarantool's code (244; 5: no node may send it; else as for a request)."""

    def __init__(self, code: Code, *arguments: object, message: str = "") -> None:
        super().__init__(message or code.text(*arguments))
        self.code = code


@dataclass(frozen=True, slots=True)
class Promotion:
    """A PROMOTE or DEMOTE that is on disk: `origin` wants the queue of `old_owner`, in `term`.

    `row_lsn` is where it stands in its origin's log; of the old owner's entries those up to `lsn` are confirmed.
    """

    origin: int
    row_lsn: int
    term: int
    old_owner: int
    lsn: int
    is_demote: bool = False
    waits: bool = False
    """It takes effect with the CONFIRM that covers `row_lsn`; else when it is written."""

    @property
    def new_owner(self) -> int:
        return 0 if self.is_demote else self.origin

    @classmethod
    def of_row(cls, row: Row) -> Promotion:
        return cls(
            row.replica_id,
            row.lsn,
            number(row, Key.TERM),
            number(row, Key.REPLICA_ID),
            number(row, Key.LSN),
            row.type == Type.DEMOTE,
            row.wait_ack,
        )


def number(row: Row, key: int) -> int:
    """A number in the body of a row about the queue or the election; one that is absent is 0."""
    value = row.body.get(int(key), 0)
    assert isinstance(value, int), row
    return value


def chain_of(promotion: Promotion, pending: Sequence[Promotion]) -> list[Promotion]:
    """The pending PROMOTEs that `promotion` stands on, by ascending term, itself the last."""
    chain = [promotion]
    for earlier in reversed(pending):
        stands_on = earlier.new_owner == chain[0].old_owner and earlier.row_lsn <= chain[0].lsn
        if stands_on and earlier.term < chain[0].term:
            chain.insert(0, earlier)
    return chain


def filtered(rows: Rows, origin: int, limbo: Limbo, pending: Sequence[Promotion]) -> Rows:
    """The rows to write: unchanged, or as NOPs. Raises `Contradiction` if they must not be taken in."""
    row = rows[-1]
    is_over = limbo.term_of.get(origin, 0) < limbo.term
    match row.type:
        case Type.PROMOTE | Type.DEMOTE:
            _check_promotion(Promotion.of_row(row), limbo, pending)
        case Type.CONFIRM | Type.ROLLBACK:
            # Before `_check_decision`: until this CONFIRM takes effect, its sender is not the owner.
            if _decides_promotion(row, limbo, pending):
                return rows
            if is_over and _is_stale(row, limbo):
                return nops(rows)
            _check_decision(row, limbo, pending)
        case _ if is_over and row.wait_sync:
            return nops(rows)
        case _ if is_over and limbo.owner_id != 0 and any(part.type != Type.NOP for part in rows):
            raise Contradiction(Code.SPLIT_BRAIN, OLD_ASYNC)
    return rows


def nops(rows: Rows) -> Rows:
    """Rows with the same numbers, and no effect."""
    return tuple(replace(row, type=Type.NOP.value, body={}, wait_sync=False, wait_ack=False) for row in rows)


def promotion_decided(row: Row, pending: Sequence[Promotion]) -> Promotion | None:
    """The newest pending PROMOTE that this CONFIRM lets take effect, together with the PROMOTEs that it stands on."""
    if row.type != Type.CONFIRM:
        return None
    owner, lsn = number(row, Key.REPLICA_ID), number(row, Key.LSN)
    return next((p for p in reversed(pending) if p.origin == owner and p.row_lsn <= lsn), None)


def _decides_promotion(row: Row, limbo: Limbo, pending: Sequence[Promotion]) -> bool:
    promotion = promotion_decided(row, pending)
    if promotion is None:
        return False
    first = chain_of(promotion, pending)[0]
    _check_owner(first.old_owner, limbo)
    _check_lsn(first.lsn, limbo)
    return True


def _is_stale(row: Row, limbo: Limbo) -> bool:
    """Whether a later PROMOTE has already made this decision of an old owner, in the same way."""
    confirmed = limbo.confirmed_of.get(number(row, Key.REPLICA_ID), 0)
    is_confirmed = number(row, Key.LSN) <= confirmed
    return is_confirmed if row.type == Type.CONFIRM else not is_confirmed


def _check_promotion(promotion: Promotion, limbo: Limbo, pending: Sequence[Promotion]) -> None:
    if promotion.term == 0:
        raise Contradiction(Code.UNSUPPORTED, "Replication", "PROMOTE/DEMOTE with a zero term")
    if promotion.is_demote and promotion.old_owner == 0:
        raise Contradiction(Code.UNSUPPORTED, "Replication", "synchronous requests with zero replica_id")
    if promotion.waits and promotion.term <= limbo.term:
        return  # comes to nothing
    chain = chain_of(promotion, pending)
    if promotion.waits and len(chain) > 1:
        return  # stands on one that is not confirmed: checked when it takes effect
    _check_owner(chain[0].old_owner, limbo)
    if promotion.term <= limbo.term:
        raise Contradiction(Code.SPLIT_BRAIN, OBSOLETE_TERM)
    _check_lsn(chain[0].lsn, limbo)


def _check_decision(row: Row, limbo: Limbo, pending: Sequence[Promotion]) -> None:
    owner, lsn = number(row, Key.REPLICA_ID), number(row, Key.LSN)
    if owner == 0:
        raise Contradiction(Code.UNSUPPORTED, "Replication", "synchronous requests with zero replica_id")
    _check_owner(owner, limbo)
    if lsn == 0:
        raise Contradiction(Code.UNSUPPORTED, "Replication", "zero LSN for CONFIRM/ROLLBACK")
    if row.type == Type.CONFIRM and lsn <= limbo.held_lsn:
        return
    if lsn == limbo.known_confirmed_lsn:
        raise Contradiction(Code.UNSUPPORTED, "Replication", "Duplicate CONFIRM/ROLLBACK request")
    _check_lsn(lsn, limbo)
    if row.type == Type.ROLLBACK and any(p.old_owner == owner and lsn <= p.lsn for p in pending):
        raise Contradiction(Code.SPLIT_BRAIN, KEPT_BY_PROMOTE)


def _check_owner(owner: int, limbo: Limbo) -> None:
    if owner != limbo.owner_id:
        raise Contradiction(Code.SPLIT_BRAIN, FOREIGN_OWNER)


def _check_lsn(lsn: int, limbo: Limbo) -> None:
    if lsn == limbo.known_confirmed_lsn:
        return
    if lsn < limbo.known_confirmed_lsn:
        raise Contradiction(Code.SPLIT_BRAIN, PROCESSED_RANGE)
    bounds = limbo.bounds()
    if bounds is None:
        raise Contradiction(Code.SPLIT_BRAIN, FUTURE_LSN)
    if not bounds[0] <= lsn <= bounds[1]:
        raise Contradiction(Code.SPLIT_BRAIN, OUT_OF_RANGE)
    if lsn in limbo.rolled_back:
        raise Contradiction(Code.SPLIT_BRAIN, KEPT_AFTER_ROLLBACK)
