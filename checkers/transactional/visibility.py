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
from dataclasses import dataclass, replace
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

    def may_conclude(self, masks: Mapping[int, int]) -> bool:
        """Whether anything may ever follow from it. `masks`: by key, its writers as bits."""
        others = -1 if self.closed else masks.get(self.key, 0) & ~(1 << self.reader)
        return self.comes_first or bool((self.sure | self.earlier) & others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """`pairs`: the first one comes first, by number; `writers` by key."""

    members: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    looks: Sequence[Look]
    writers: Mapping[int, Sequence[int]]

    def chained(self, place: Sequence[int]) -> list[tuple[int, int]]:
        """The pairs, and those that follow if the writers of each key stand as they do in this order."""
        after = {
            (key, one): other
            for key, those in self.writers.items()
            for one, other in pairwise([NO_WRITER, *sorted(those, key=place.__getitem__)])
        }
        chains = [(one, other) for (_, one), other in after.items() if one != NO_WRITER]
        first = [(look.reader, _next_but(look, after)) for look in self.looks if look.comes_first]
        return [*self.pairs, *chains, *(pair for pair in first if pair[1] != NO_WRITER)]

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

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0 or self.is_late():
            raise _Spent


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
    budget = _Budget((given().steps or STEPS) // part, is_late)
    try:
        order = _solved(_Conclusions.of(visible, budget))
    except Circle:
        return "none", None
    except (_Spent, RecursionError):
        return "open", None
    return ("none", None) if order is None else ("found", numpy.array(order, numpy.int32))


def _solved(known: _Conclusions) -> list[int] | None:
    try:
        known.conclude()
    except Circle:
        return None
    undecided = next(known.undecided(), None)
    order = known.order()
    if undecided is None:
        return order
    # A guess: that this one order has a circle proves nothing.
    complete = known.in_this_order(order)
    try:
        complete.conclude()
        return complete.order()
    except Circle:
        pass
    one, other = sorted(undecided, key=order.index)
    for pair in ((one, other), (other, one)):
        found = _solved(known.with_pair(*pair))
        if found is not None:
            return found
    return None


@dataclass(slots=True)
class _Conclusions:
    """What follows from some pairs. It is looked for again only where pasts have changed.

    `past`: by member, the bits of the members that it must see. `after`: by member, those of the pairs that it begins.
    `rests`: by look, the members on whose pasts it rests. `changed`: those whose pasts were not looked at since.
    """

    visible: Visible
    budget: _Budget
    masks: Mapping[int, int]
    past: dict[int, int]
    after: dict[int, list[int]]
    rests: list[int]
    changed: int

    @classmethod
    def of(cls, visible: Visible, budget: _Budget) -> _Conclusions:
        """Raises Circle."""
        budget.spend(len(visible.pairs) + len(visible.looks))
        after: dict[int, list[int]] = {member: [] for member in visible.members}
        for one, other in visible.pairs:
            after[one].append(other)
        past = past_of(visible.members, visible.pairs)
        return cls(visible, budget, masks_of(visible.writers), past, after, [-1] * len(visible.looks), -1)

    def _pass(self) -> None:
        """Spend what it takes to look at each pair once."""
        self.budget.spend(len(self.past) + sum(map(len, self.after.values())))

    def _copy(self) -> _Conclusions:
        self._pass()
        after = {member: list(others) for member, others in self.after.items()}
        return replace(self, past=dict(self.past), after=after, rests=list(self.rests))

    def with_pair(self, one: int, other: int) -> _Conclusions:
        """The same, and this pair, of which either could come first."""
        more = self._copy()
        more._add(1 << one, other)
        return more

    def in_this_order(self, order: Sequence[int]) -> _Conclusions:
        """The same, with the writers of each key as they stand in an order that has the pairs."""
        more, place = self._copy(), {member: at for at, member in enumerate(order)}
        for writers in self.visible.writers.values():
            for one, other in pairwise(sorted(writers, key=place.__getitem__)):
                more.after[one].append(other)
        past = more.past
        for member in order:
            # In the order: the past of a member is complete before it is passed on.
            until = past[member] | 1 << member
            for other in more.after[member]:
                past[other] |= until
        more._pass()
        more.changed |= mask_of(member for member in order if past[member] != self.past[member])
        return more

    def _add(self, ones: int, other: int) -> None:
        """Members that come before another one, as bits. Raises Circle."""
        past = self.past
        earlier = union(past[one] for one in bits(ones))
        gained = ones | earlier
        if gained >> other & 1:
            raise Circle
        for one in bits(ones & ~earlier):  # the rest comes before one of these
            self.after[one].append(other)
        todo = [other]
        while todo:
            member = todo.pop()
            if gained & ~past[member]:
                past[member] |= gained
                self.changed |= 1 << member
                todo += self.after[member]
                self.budget.steps -= len(self.after[member])

    def conclude(self) -> None:
        """Add the pairs that follow, until nothing new does. Raises Circle."""
        while self.changed:
            # Taken before the pass: what changes in it is looked at in the next one.
            changed, self.changed, looked = self.changed, 0, 0
            for number, look in enumerate(self.visible.looks):
                if self.rests[number] & changed:
                    looked += 1
                    self._conclude_from(number, look)
            self.budget.spend(looked)

    def _conclude_from(self, number: int, look: Look) -> None:
        past, writers = self.past, self.masks.get(look.key, 0)
        seen = look.seen(past)
        self.rests[number] = (
            1 << look.reader | (seen if look.closed else 0) | (writers if look.comes_first else 0)
        )
        for other in list(_later(look, writers, past)) if look.comes_first else ():
            self._add(1 << look.reader, other)
        others = writers & seen
        if look.writer == NO_WRITER:
            if others:
                raise Circle
        elif unknown := others & ~(1 << look.writer) & ~past[look.writer]:
            self._add(unknown, look.writer)

    def undecided(self) -> Iterator[tuple[int, int]]:
        """The pairs of writers of a key of which either may come first."""
        past = self.past
        for key, writers in self.visible.writers.items():
            for one in writers:
                for other in bits(self.masks[key] & ~past[one] & ~((2 << one) - 1)):
                    if not past[other] >> one & 1:
                        yield one, other

    def order(self) -> list[int]:
        """The members in an order that has the pairs."""
        self._pass()
        pairs = ((one, other) for one, others in self.after.items() for other in others)
        return sorted_by(self.visible.members, pairs)


def _later(look: Look, writers: int, past: Mapping[int, int]) -> Iterator[int]:
    """The writers of later versions that are not known to come after the reader."""
    for other in bits(writers & ~(1 << look.reader)):
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
        past[txn] = union(past[member] | 1 << member for member in before[txn])
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


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
