"""Parallel snapshot isolation and read atomic: which transactions each one saw, and an order of versions that fits.

Parallel snapshot isolation (Cerone, Bernardi & Gotsman, 2015): what a transaction saw holds all that those saw which it
saw; of two that write one key, one saw the other; a read gives the last of the versions that were seen. So whatever is
seen of a key's other writers by one that read a version comes before that version: this is concluded until nothing new
follows. Then only orders of two writers are open, and both orders are tried.
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
NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`pairs`: one saw the other, by number; `reads`: (reader, key, writer or NOBODY); `writers` by key."""

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
    seen: Seen, part: int = 1, is_late: Callable[[], bool] = lambda: False
) -> tuple[Literal["found", "none", "open"], Int32s | None]:
    """An order of the members in which all they saw comes first, and the last version that they saw is what they read.

    "none": there is no such order of versions; "open": the budget did not suffice.
    """
    if len(seen.members) > TRANSACTIONS_MAX:
        return "open", None
    try:
        found = _solved(seen, list(seen.pairs), _Budget((given().steps or STEPS) // part, is_late))
    except (_Spent, RecursionError):
        return "open", None
    return ("none", None) if found is None else ("found", numpy.array(found, numpy.int32))


def _solved(seen: Seen, pairs: list[tuple[int, int]], budget: _Budget) -> list[int] | None:
    try:
        pairs, past = _concluded(seen, pairs, budget)
    except _Circle:
        return None
    undecided = list(_undecided(seen, past))
    if not undecided:
        return sorted_by(seen.members, pairs)
    place = {txn: at for at, txn in enumerate(sorted_by(seen.members, pairs))}
    ordered = [(one, other) if place[one] < place[other] else (other, one) for one, other in undecided]
    try:  # all at once, as a topological order has them
        complete, _ = _concluded(seen, pairs + ordered, budget)
        return sorted_by(seen.members, complete)
    except _Circle:
        one, other = ordered[0]
    first = _solved(seen, [*pairs, (one, other)], budget)
    return first if first is not None else _solved(seen, [*pairs, (other, one)], budget)


def _concluded(
    seen: Seen, pairs: list[tuple[int, int]], budget: _Budget
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    masks = {key: sum(1 << each for each in writers) for key, writers in seen.writers.items()}
    while True:
        budget.steps -= len(pairs) + len(seen.reads)
        if budget.steps < 0 or budget.is_late():
            raise _Spent
        past = past_of(seen.members, pairs)
        new = []
        for reader, key, writer in seen.reads:
            others = masks.get(key, 0) & past[reader] & ~(1 << reader)
            if writer == NOBODY:
                if others:
                    raise _Circle
                continue
            new += [(other, writer) for other in bits(others & ~(1 << writer) & ~past[writer])]
        if not new:
            return pairs, past
        pairs = pairs + list(dict.fromkeys(new))


def past_of(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """By member, the bits of all that must be seen by it. Raises _Circle."""
    before: dict[int, list[int]] = {each: [] for each in members}
    for one, other in pairs:
        before[other].append(one)
    past: dict[int, int] = {}
    for txn in sorted_by(members, pairs):
        known = 0
        for each in before[txn]:
            known |= past[each] | 1 << each
        past[txn] = known
    return past


def sorted_by(members: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The members in an order that has the pairs, those with smaller numbers first where it may. Raises _Circle."""
    after: dict[int, list[int]] = {each: [] for each in members}
    missing = dict.fromkeys(members, 0)
    for one, other in pairs:
        after[one].append(other)
        missing[other] += 1
    ready = [each for each in members if not missing[each]]
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


def _undecided(seen: Seen, past: dict[int, int]) -> Iterator[tuple[int, int]]:
    for writers in seen.writers.values():
        everyone = sum(1 << each for each in writers)
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
