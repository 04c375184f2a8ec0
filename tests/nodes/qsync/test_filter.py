"""Rows of others: taken, taken without effect, or refused as a split-brain, with Tarantool's words."""

from __future__ import annotations

import pytest

from nodes.iproto.messages import Key, Row, Type
from nodes.qsync.filter import (
    FOREIGN_OWNER,
    FUTURE_LSN,
    KEPT_BY_PROMOTE,
    OBSOLETE_TERM,
    OLD_ASYNC,
    OUT_OF_RANGE,
    PROCESSED_RANGE,
    Contradiction,
    Promotion,
    filtered,
)
from nodes.qsync.limbo import Entry, Limbo
from nodes.qsync.spaces import Transaction


def limbo(*lsns: int, owner: int = 1, confirmed: int = 4, term: int = 3) -> Limbo:
    """Node 1 owns the queue since term 3, its entries up to 4 are confirmed; node 2 led in term 2."""
    made = Limbo()
    made.owner_id, made.term = owner, term
    made.term_of = {1: 3, 2: 2}
    made.confirmed_of = {1: confirmed, 2: 7}
    made.confirmed_lsn = made.confirming_lsn = confirmed
    for lsn in lsns:
        made.append(Entry(Transaction(()), wait_ack=True, lsn=lsn, promised_lsn=lsn))
    return made


def data(origin: int, *, sync: bool, kind: Type = Type.REPLACE) -> Row:
    return Row(kind.value, origin, 50, 0.0, 50, wait_sync=sync, wait_ack=sync, body={0x10: 512, 0x21: (1, 2)})


def decision(
    kind: Type, origin: int, owner: int, lsn: int, term: int | None = None, *, waits: bool = False
) -> Row:
    body = {Key.REPLICA_ID.value: owner, Key.LSN.value: lsn}
    if term is not None:
        body[Key.TERM.value] = term
    return Row(kind.value, origin, 60, 0.0, 60, wait_sync=term is not None, wait_ack=waits, body=body)


def told(rows: tuple[Row, ...], queue: Limbo, *, pending: tuple[Promotion, ...] = ()) -> str:
    try:
        taken = filtered(rows, rows[-1].replica_id, queue, pending)
    except Contradiction as contradiction:
        return str(contradiction)
    return "taken" if taken == rows else "nop"


SPLIT = "Split-Brain discovered: "
REFUSED = "Replication does not support "


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (data(1, sync=True), "taken"),
        (data(1, sync=False), "taken"),
        (data(2, sync=True), "nop"),
        (data(3, sync=True), "nop"),
        (data(2, sync=False), SPLIT + OLD_ASYNC),
        (data(2, sync=False, kind=Type.NOP), "taken"),
        (decision(Type.CONFIRM, 1, 1, 6), "taken"),
        (decision(Type.CONFIRM, 1, 1, 7), "taken"),
        (decision(Type.CONFIRM, 1, 1, 8), SPLIT + OUT_OF_RANGE),
        (decision(Type.CONFIRM, 1, 1, 5), SPLIT + OUT_OF_RANGE),
        (decision(Type.CONFIRM, 1, 1, 4), REFUSED + "Duplicate CONFIRM/ROLLBACK request"),
        (decision(Type.CONFIRM, 1, 1, 3), SPLIT + PROCESSED_RANGE),
        (decision(Type.CONFIRM, 1, 1, 0), REFUSED + "zero LSN for CONFIRM/ROLLBACK"),
        (decision(Type.CONFIRM, 1, 0, 6), REFUSED + "synchronous requests with zero replica_id"),
        (decision(Type.CONFIRM, 1, 2, 9), SPLIT + FOREIGN_OWNER),
        (decision(Type.CONFIRM, 2, 2, 7), "nop"),
        (decision(Type.CONFIRM, 2, 2, 8), SPLIT + FOREIGN_OWNER),
        (decision(Type.ROLLBACK, 1, 1, 6), "taken"),
        (decision(Type.ROLLBACK, 1, 1, 3), SPLIT + PROCESSED_RANGE),
        (decision(Type.ROLLBACK, 2, 2, 8), "nop"),
        (decision(Type.ROLLBACK, 2, 2, 7), SPLIT + FOREIGN_OWNER),
        (decision(Type.PROMOTE, 2, 1, 4, 4), "taken"),
        (decision(Type.PROMOTE, 2, 1, 7, 4), "taken"),
        (decision(Type.PROMOTE, 2, 1, 8, 4), SPLIT + OUT_OF_RANGE),
        (decision(Type.PROMOTE, 2, 1, 3, 4), SPLIT + PROCESSED_RANGE),
        (decision(Type.PROMOTE, 2, 1, 7, 3), SPLIT + OBSOLETE_TERM),
        (decision(Type.PROMOTE, 3, 2, 7, 4), SPLIT + FOREIGN_OWNER),
        (decision(Type.PROMOTE, 2, 1, 7, 0), REFUSED + "PROMOTE/DEMOTE with a zero term"),
        (decision(Type.DEMOTE, 2, 1, 6, 4), "taken"),
        (decision(Type.DEMOTE, 2, 0, 6, 4), REFUSED + "synchronous requests with zero replica_id"),
    ],
)
def test_rules(row: Row, answer: str) -> None:
    """Broken, two histories are mixed (equal vclocks, different data), or a healthy peer is given up."""
    assert told((row,), limbo(6, 7)) == answer


def test_an_empty_queue_knows_no_future() -> None:
    """Broken, a node that rolled a transaction back follows one that confirmed it."""
    assert told((decision(Type.PROMOTE, 2, 1, 6, 4),), limbo()) == SPLIT + FUTURE_LSN
    assert told((decision(Type.PROMOTE, 2, 1, 4, 4),), limbo()) == "taken"


def test_late_decisions_are_those_of_the_owner_in_the_snapshot_alone() -> None:
    """Broken, a node would take decisions of a later owner that contradict what it has."""
    late = decision(Type.CONFIRM, 1, 1, 3)
    queue = limbo()
    queue.held_lsn = 4
    assert told((late,), queue) == "taken"
    for owner, term in ((2, 4), (1, 5)):
        queue.promote(owner, owner, queue.known_confirmed_lsn, term)
    assert told((late,), queue) == SPLIT + PROCESSED_RANGE


def test_nobody_owns_the_queue() -> None:
    """Broken, several masters with asynchronous data alone stop each other, or a transaction of an old leader waits in
    a queue that nobody owns until the next PROMOTE confirms it, although the leader's own node has rolled it back."""
    assert told((data(2, sync=False),), limbo(owner=0)) == "taken"
    assert told((data(2, sync=True),), limbo(owner=0)) == "nop"


def test_a_transaction_is_judged_as_a_whole_by_its_origin() -> None:
    """Broken (a filter by the peer that sent it), an old leader's rows come in through a third node."""
    rows = (data(2, sync=False, kind=Type.NOP), data(2, sync=True))
    assert told(rows, limbo(6)) == "nop"


PENDING = Promotion(origin=2, row_lsn=20, term=4, old_owner=1, lsn=6)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (decision(Type.CONFIRM, 2, 2, 20), "taken"),
        (decision(Type.PROMOTE, 3, 1, 7, 3, waits=True), "taken"),
        (decision(Type.PROMOTE, 3, 1, 7, 4, waits=True), "taken"),
        (decision(Type.PROMOTE, 3, 2, 20, 5, waits=True), "taken"),
        (decision(Type.PROMOTE, 3, 2, 19, 5, waits=True), SPLIT + FOREIGN_OWNER),
        (decision(Type.PROMOTE, 3, 1, 7, 5, waits=True), "taken"),
        (decision(Type.PROMOTE, 3, 1, 8, 5, waits=True), SPLIT + OUT_OF_RANGE),
        (decision(Type.PROMOTE, 3, 1, 7, 3), SPLIT + OBSOLETE_TERM),
        (decision(Type.PROMOTE, 3, 2, 20, 5), "taken"),
        (decision(Type.PROMOTE, 3, 1, 7, 5), "taken"),
        (decision(Type.ROLLBACK, 1, 1, 7), "taken"),
        (decision(Type.ROLLBACK, 1, 1, 6), SPLIT + KEPT_BY_PROMOTE),
        (decision(Type.CONFIRM, 1, 1, 6), "taken"),
        (data(1, sync=True), "taken"),
    ],
)
def test_while_a_promote_waits_for_its_quorum(row: Row, answer: str) -> None:
    """Broken, a PROMOTE decides before it may, or what it was promised to keep is thrown away under it."""
    assert told((row,), limbo(6, 7), pending=(PENDING,)) == answer


def test_a_promote_is_checked_again_when_it_takes_effect() -> None:
    """Broken, a node that has lost an entry goes on as if the PROMOTE had confirmed it here too."""
    assert told((decision(Type.CONFIRM, 2, 2, 20),), limbo(), pending=(PENDING,)) == SPLIT + FUTURE_LSN
