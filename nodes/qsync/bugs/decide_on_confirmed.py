"""Transactions do not see each other's writes until they are confirmed."""

from __future__ import annotations

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class DecideOnConfirmed(Decisions):
    decides_on_prepared = False


BUG = Bug(
    decides=DecideOnConfirmed,
    does="a writing transaction decides on what is confirmed, and does not see what others are about to write",
    seen="two that run together start from the same state, and one of them is lost: money is made, numbers come twice",
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
