"""Transactions do not see each other's writes until they are confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class DecideOnConfirmed(Decisions):
    decides_on_prepared = False


BUG = Bug(
    decides=DecideOnConfirmed,
    does="a writing transaction decides on confirmed data, and does not see the prepared writes of other transactions",
    seen="two concurrent transactions start from the same state, and one of them is lost: balances grow, ids repeat",
    checkers=(
        "transactional",
        "bank",
        "balances",
        "counter",
        "unique-ids",
        "queues",
        "durability",
        "linearizable",
    ),
)
