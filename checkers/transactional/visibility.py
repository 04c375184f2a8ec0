"""Parallel snapshot isolation and read atomic: which transactions each one saw, and an order of versions that fits.

Parallel snapshot isolation (Cerone, Bernardi & Gotsman, 2015): a transaction that sees another one sees all that the
other one saw; of two that write one key, one saw the other; a read gives the last version that its transaction sees.
So if a reader of a version sees further writers of the key, these come before that version: this is concluded until
nothing new follows. Then only orders of two writers are open, and both orders are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal

import numpy

from checkers.limits import given
from checkers.transactional.columns import Int32s

STEPS = 20_000_000
"""How many edges may be followed in all; some 5 s."""
TRANSACTIONS_MAX = 4_000
"""Every transaction's past is a set of bits of this length."""
NO_WRITER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """`pairs`: the second saw the first, by number; `reads`: (reader, key, writer or NO_WRITER); `writers` by key."""

    members: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    reads: Sequence[tuple[int, int, int]]
    writers: dict[int, list[int]]


@dataclass(slots=True)
class _Budget:
    steps: int
    is_late: Callable[[], bool]


class _Circle(Exception):
    """The conclusions contradict each other."""


class _Spent(Exception):
    """The budget does not suffice."""


def order_of(
    visible: Visible, part: int = 1, is_late: Callable[[], bool] = lambda: False
) -> tuple[Literal["found", "none", "open"], Int32s | None]:
    """An order of the members: each stands behind all that it saw, and read the last version of these.

    "none": there is no such order of versions; "open": the budget did not suffice.
    """
    if len(visible.members) > TRANSACTIONS_MAX:
        return "open", None
    try:
        order = _solved(visible, list(visible.pairs), _Budget((given().steps or STEPS) // part, is_late))
    except (_Spent, RecursionError):
        return "open", None
    return ("none", None) if order is None else ("found", numpy.array(order, numpy.int32))


def _solved(visible: Visible, pairs: list[tuple[int, int]], budget: _Budget) -> list[int] | None:
    try:
        pairs, past = _concluded(visible, pairs, budget)
    except _Circle:
        return None
    undecided = list(_undecided(visible, past))
    if not undecided:
        return sorted_by(visible.members, pairs)
    place = {txn: at for at, txn in enumerate(sorted_by(visible.members, pairs))}
    ordered = [(one, other) if place[one] < place[other] else (other, one) for one, other in undecided]
    try:  # all at once, as a topological order has them
        complete, _ = _concluded(visible, pairs + ordered, budget)
        return sorted_by(visible.members, complete)
    except _Circle:
        one, other = ordered[0]
    first = _solved(visible, [*pairs, (one, other)], budget)
    return first if first is not None else _solved(visible, [*pairs, (other, one)], budget)


def _concluded(
    visible: Visible, pairs: list[tuple[int, int]], budget: _Budget
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    masks = {key: sum(1 << txn for txn in writers) for key, writers in visible.writers.items()}
    while True:
        budget.steps -= len(pairs) + len(visible.reads)
        if budget.steps < 0 or budget.is_late():
            raise _Spent
        past = past_of(visible.members, pairs)
        new = []
        for reader, key, writer in visible.reads:
            others = masks.get(key, 0) & past[reader] & ~(1 << reader)
            if writer == NO_WRITER:
                if others:
                    raise _Circle
                continue
            new += [(other, writer) for other in bits(others & ~(1 << writer) & ~past[writer])]
        if not new:
            return pairs, past
        pairs = pairs + list(dict.fromkeys(new))


def past_of(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """By member, the bits of the members that it must see. Raises _Circle."""
    before: dict[int, list[int]] = {member: [] for member in members}
    for one, other in pairs:
        before[other].append(one)
    past: dict[int, int] = {}
    for txn in sorted_by(members, pairs):
        known = 0
        for member in before[txn]:
            known |= past[member] | 1 << member
        past[txn] = known
    return past


def sorted_by(members: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The members in an order that has the pairs, those with smaller numbers first where it may. Raises _Circle."""
    after: dict[int, list[int]] = {member: [] for member in members}
    missing = dict.fromkeys(members, 0)
    for one, other in pairs:
        after[one].append(other)
        missing[other] += 1
    ready = [member for member in members if not missing[member]]
    heapify(ready)
    order = []
    while ready:
        txn = heappop(ready)
        order.append(txn)
        for other in after[txn]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, other)
    if len(order) < len(missing):
        raise _Circle
    return order


def _undecided(visible: Visible, past: dict[int, int]) -> Iterator[tuple[int, int]]:
    for writers in visible.writers.values():
        everyone = sum(1 << writer for writer in writers)
        for one in writers:
            for other in bits(everyone & ~past[one] & ~((2 << one) - 1)):
                if not past[other] >> one & 1:
                    yield one, other


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
