"""Snapshot isolation: every transaction has a start and a commit in one order of such points.

- It reads what was committed before its start, and its own writes.
- First committer wins: of two transactions that write the same key, one commits before the other starts.

Berenson et al., *A Critique of ANSI SQL Isolation Levels*, SIGMOD 1995; Adya 1999 (PL-SI); Crooks et al., PODC 2017
(ANSI SI). Strong (session) snapshot isolation: what comes before a transaction (in its session, in real time) has
committed before it starts: Daudjee and Salem, VLDB 2006. Every order of the points is tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.checkers.brute.transactions import Order, State, Txn, run, worlds


def snapshot_isolated(txns: Sequence[Txn], workload: str, before: Order) -> bool:
    return any(_go_on(world, workload, before, {}, [], {}) for world in worlds(txns))


def _go_on(
    world: Sequence[Txn],
    workload: str,
    before: Order,
    state: State,
    committed: list[Txn],
    running: dict[Txn, int],
) -> bool:
    """Whether the points that are left can be put in an order. `running`: how many had committed at each start."""
    if len(committed) == len(world):
        return True
    for txn in world:
        if txn in committed:
            continue
        if txn not in running:
            may_start = all(other in committed for other in world if before(other, txn))
            if may_start and run(txn, state, workload) is not None:
                started = {**running, txn: len(committed)}
                if _go_on(world, workload, before, state, committed, started):
                    return True
        else:
            meanwhile = committed[running[txn] :]
            if any(other.keys_written & txn.keys_written for other in meanwhile):
                continue
            left = {other: start for other, start in running.items() if other is not txn}
            if _go_on(world, workload, before, _with_writes(txn, state), [*committed, txn], left):
                return True
    return False


def _with_writes(txn: Txn, state: State) -> State:
    after = dict(state)
    for word, key, value in txn.micros:
        if word == "append":
            after[key] = [*after.get(key, []), value]
        elif word == "w":
            after[key] = value
    return after
