"""Transactions as the definitions speak of them, and what a transaction shows if it runs by itself.

Three words for the order of transactions, as in "strong session" and "strong" (Daudjee and Salem, *Lazy Database
Replication with Snapshot Isolation*, VLDB 2006):

    nothing    no two transactions are ordered
    session    the same process had the answer of the first before it asked for the second
    realtime   the first was answered before the second was asked

A transaction of unknown outcome (info) comes before none: it may commit at any later time, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from checkers.history import History

State = dict[str, Any]
Order = Callable[["Txn", "Txn"], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Txn:
    """`micros`: [word, key, value]. What an info read, nobody knows; a failed one did nothing."""

    number: int
    outcome: str
    process: int
    invoked: int
    completed: int | None
    micros: tuple[tuple[str, str, Any], ...]

    @property
    def keys_written(self) -> set[str]:
        return {key for word, key, _ in self.micros if word != "r"}


def transactions_of(history: History) -> list[Txn]:
    """All transactions, in the order in which they were asked. An empty list is read as [] or as null."""
    return [
        Txn(
            number=number,
            outcome=each.type,
            process=each.process,
            invoked=each.invoke_index,
            completed=each.returned_index,
            micros=tuple((word, key, value) for word, key, value in each.value),
        )
        for number, each in enumerate(history.operations)
    ]


def worlds(txns: Sequence[Txn]) -> Iterator[list[Txn]]:
    """What may have committed: all that were answered with ok, and any of the info ones."""
    unsure = [txn for txn in txns if txn.outcome == "info"]
    for count in range(len(unsure) + 1):
        for happened in combinations(unsure, count):
            yield [txn for txn in txns if txn.outcome == "ok" or txn in happened]


def nothing(first: Txn, second: Txn) -> bool:
    return False


def realtime(first: Txn, second: Txn) -> bool:
    return first.completed is not None and first.completed < second.invoked


def session(first: Txn, second: Txn) -> bool:
    return first.process == second.process and realtime(first, second)


def run(txn: Txn, state: State, workload: str) -> State | None:
    """The state after the transaction ran alone from `state`; None if it would have got other answers."""
    after = dict(state)
    for word, key, value in txn.micros:
        if word == "append":
            after[key] = [*after.get(key, []), value]
        elif word == "w":
            after[key] = value
        elif txn.outcome == "ok" and not _same(after.get(key), value, workload):
            return None
    return after


def _same(held: Any, shown: Any, workload: str) -> bool:
    if workload == "append":
        return (held or []) == (shown or [])
    return bool(held == shown)
