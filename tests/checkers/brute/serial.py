"""Serializable: the transactions, run one by one in some order, give just the answers that were got.

Papadimitriou, *The Serializability of Concurrent Database Updates*, J. ACM 1979 (view serializability, PL-3 of Adya
where nothing is read by predicate). Strong session and strict serializable: the order keeps the sessions' order, or
that of real time (Bernstein, Shipman and Wong 1979; Herlihy and Wing 1990). Every order is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

from tests.checkers.brute.transactions import Order, State, Txn, run, worlds


def serializable(txns: Sequence[Txn], workload: str, before: Order) -> bool:
    return any(
        _keeps(order, before) and _replays(order, workload)
        for world in worlds(txns)
        for order in permutations(world)
    )


def _keeps(order: Sequence[Txn], before: Order) -> bool:
    return not any(before(later, earlier) for earlier, later in combinations(order, 2))


def _replays(order: Sequence[Txn], workload: str) -> bool:
    state: State | None = {}
    for txn in order:
        state = run(txn, state, workload)
        if state is None:
            return False
    return True
