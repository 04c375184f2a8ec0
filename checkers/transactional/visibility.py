"""Models in which a read sees earlier writers of keys that its transaction writes: an order of versions that fits.

Parallel snapshot isolation (Cerone, Bernardi & Gotsman, 2015): a transaction that sees another one sees all that the
other one saw; of two that write one key, one saw the other; a read gives the last version that its transaction sees.
So if a reader of a version sees further writers of the key, these come before that version: this is concluded until
nothing new follows. Then only orders of two writers are open, and both orders are tried. Update atomic, monotonic view
and cursor stability are the same with less to see (`Look`). In update serializable, one that writes also comes before
those that overwrote what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Literal

import numpy

from checkers.limits import given
from checkers.transactional.columns import Int32s
from checkers.transactional.sight import NO_WRITER

STEPS = 20_000_000
"""How many edges may be followed in all; some 5 s."""
TRANSACTIONS_MAX = 4_000
"""Every transaction's past is a set of bits of this length."""


@dataclass(frozen=True, slots=True)
class Look:
    """A read of `key`, of the version of `writer` (or NO_WRITER), and what it sees, as bits.

    It sees `sure`, and of those that come before its reader the `earlier` ones; if `closed`, all before these too.
    `comes_first`: its reader comes before all that wrote later versions.
    """

    reader: int
    key: int
    writer: int
    sure: int
    earlier: int
    closed: bool
    comes_first: bool

    def seen(self, past: Mapping[int, int]) -> int:
        """All that it sees, if `past` has those that come before each."""
        seen = left = self.sure | (self.earlier & past[self.reader])
        while self.closed and left:
            latest = left.bit_length() - 1
            seen |= past[latest]
            left &= ~(past[latest] | 1 << latest)  # all that these saw are seen too
        return seen & ~(1 << self.reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """`pairs`: the first one comes first, by number; `writers` by key."""

    members: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    looks: Sequence[Look]
    writers: Mapping[int, Sequence[int]]

    def chained(self, place: Sequence[int]) -> list[tuple[int, int]]:
        """The pairs, and those that follow if the writers of each key stand as they do in this order."""
        after: dict[tuple[int, int], int] = {}
        for key, those in self.writers.items():
            after |= {
                (key, one): other
                for one, other in pairwise([NO_WRITER, *sorted(those, key=place.__getitem__)])
            }
        chains = [(one, other) for (_, one), other in after.items() if one != NO_WRITER]
        first = [
            (look.reader, _next_but(look, after))
            for look in self.looks
            if look.comes_first and _next_but(look, after) != NO_WRITER
        ]
        return [*self.pairs, *chains, *first]

    def fits(self, past: Mapping[int, int], place: Sequence[int]) -> bool:
        """Whether every read shows a version that is not older than what it saw. `place` by number: in the order."""
        masks = masks_of(self.writers)
        return all(
            look.writer != NO_WRITER and place[one] <= place[look.writer]
            for look in self.looks
            for one in bits(look.seen(past) & masks.get(look.key, 0))
        )


def _next_but(look: Look, after: Mapping[tuple[int, int], int]) -> int:
    """The next writer after the version that a read showed, who is not its reader; or NO_WRITER."""
    there = after.get((look.key, look.writer), NO_WRITER)
    return after.get((look.key, there), NO_WRITER) if there == look.reader else there


def mask_of(txns: Iterable[int]) -> int:
    """Their bits."""
    return union(1 << txn for txn in txns)


def union(masks: Iterable[int]) -> int:
    """The bits that any of them has."""
    every = 0
    for mask in masks:
        every |= mask
    return every


def masks_of(writers: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """By key, its writers as bits."""
    return {key: mask_of(those) for key, those in writers.items()}


@dataclass(slots=True)
class _Budget:
    steps: int
    is_late: Callable[[], bool]


class Circle(Exception):
    """The conclusions contradict each other."""


class _Spent(Exception):
    """The budget does not suffice."""


def order_of(
    visible: Visible, part: int = 1, is_late: Callable[[], bool] = lambda: False
) -> tuple[Literal["found", "none", "open"], Int32s | None]:
    """An order of the members that has the pairs, in which every read shows the last version that it saw.

    "none": there is no such order of versions; "open": the budget did not suffice.
    """
    try:
        order = _solved(visible, list(visible.pairs), _Budget((given().steps or STEPS) // part, is_late))
    except (_Spent, RecursionError):
        return "open", None
    return ("none", None) if order is None else ("found", numpy.array(order, numpy.int32))


def _solved(visible: Visible, pairs: list[tuple[int, int]], budget: _Budget) -> list[int] | None:
    try:
        pairs, past = _concluded(visible, pairs, budget)
    except Circle:
        return None
    undecided = list(_undecided(visible, past))
    if not undecided:
        return sorted_by(visible.members, pairs)
    place = {txn: at for at, txn in enumerate(sorted_by(visible.members, pairs))}
    ordered = [(one, other) if place[one] < place[other] else (other, one) for one, other in undecided]
    try:  # all at once, as a topological order has them
        complete, _ = _concluded(visible, pairs + ordered, budget)
        return sorted_by(visible.members, complete)
    except Circle:
        one, other = ordered[0]
    first = _solved(visible, [*pairs, (one, other)], budget)
    return first if first is not None else _solved(visible, [*pairs, (other, one)], budget)


def _concluded(
    visible: Visible, pairs: list[tuple[int, int]], budget: _Budget
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    masks = masks_of(visible.writers)
    while True:
        budget.steps -= len(pairs) + len(visible.looks)
        if budget.steps < 0 or budget.is_late():
            raise _Spent
        past = past_of(visible.members, pairs)
        new = []
        for look in visible.looks:
            others = masks.get(look.key, 0) & look.seen(past)
            if look.comes_first:
                new += [(look.reader, other) for other in _later(look, masks, past)]
            if look.writer == NO_WRITER:
                if others:
                    raise Circle
                continue
            unknown = others & ~(1 << look.writer) & ~past[look.writer]
            new += [(other, look.writer) for other in bits(unknown)]
        if not new:
            return pairs, past
        pairs = pairs + list(dict.fromkeys(new))


def _later(look: Look, masks: Mapping[int, int], past: Mapping[int, int]) -> Iterator[int]:
    """The writers of later versions that are not known to come after the reader."""
    for other in bits(masks.get(look.key, 0) & ~(1 << look.reader)):
        overwrote = look.writer == NO_WRITER or past[other] >> look.writer & 1
        if overwrote and not past[other] >> look.reader & 1:
            yield other


def past_of(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """By member, the bits of the members that it must see. Raises Circle."""
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
    """The members in an order that has the pairs, those with smaller numbers first where it may. Raises Circle."""
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
        raise Circle
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
