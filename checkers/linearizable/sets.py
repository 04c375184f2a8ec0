"""Sets are decided in polynomial time, without a search: elements are added, again maybe, and a read shows all.

Reads must form a chain: each shows what the one before it shows, and more. An element was first added right before the
first read of the chain that shows it, or behind all reads. Of several additions of an element the one that was asked
first is its first: it may stand wherever another may. The others only come no sooner. So there is one order of groups,
and the answer is yes exactly if no call of a later group had returned before one began that must stand in an earlier
group. An addition without an answer is skipped, unless it is the first of its element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.linearizable.search import Call

EVER = float("inf")
Slots = list[tuple[int, int, int]]  # group, event of the invocation, call


def ordered(calls: Sequence[Call], first: frozenset[Any], until: float = EVER) -> list[int] | None:
    """An order of a set's calls as they were known at event `until`; None if there is none. It began with `first`."""
    groups = _groups(calls, first, until)
    if groups is None:
        return None
    fixed, free = groups
    slots = fixed + free
    by_return = sorted((_returned(calls[place], until), slot) for slot, _, place in slots)
    placed: Slots = []
    latest = at = 0
    # No call may stand in an earlier group than one that was over before it began: `latest` is the last of those.
    for slot, begun, place in sorted(slots, key=lambda each: each[1]):
        while at < len(by_return) and by_return[at][0] < begun:
            latest = max(latest, by_return[at][1])
            at += 1
        placed.append((max(slot, latest), begun, place))
    placed.sort()
    at_slot = {place: slot for slot, _, place in placed}
    if any(at_slot[place] > slot for slot, _, place in fixed):
        return None
    return [place for _, _, place in placed]


def _groups(calls: Sequence[Call], first: frozenset[Any], until: float) -> tuple[Slots, Slots] | None:
    """The calls that have one group, and those that may stand in theirs or a later one. None: reads contradict."""
    adds: dict[Any, list[int]] = {}
    reads: list[tuple[int, int]] = []
    for place, call in enumerate(calls):
        if call.invoke > until:
            continue
        if call.action.word == "add":
            adds.setdefault(call.action.values[0], []).append(place)
        elif call.complete is not None and call.complete <= until:
            shown: Any = call.action.values[0]
            reads.append((len(shown), place))
    fixed: Slots = []
    free: Slots = []

    def again(value: Any, group: int, skip: int | None = None) -> None:
        for place in adds.pop(value):
            if place != skip and _returned(calls[place], until) < EVER:
                free.append((2 * group, calls[place].invoke, place))

    for value in first & adds.keys():
        again(value, 0)
    group, before = 0, first
    # By size: reads that form a chain stand in this order, and neighbours show whether they do.
    for _, place in sorted(reads):
        shown = calls[place].action.values[0]
        if shown != before:
            new = shown - before
            if len(new) + len(before) != len(shown) or not new <= adds.keys():
                return None
            group, before = group + 1, shown
            for value in new:
                earliest = min(adds[value], key=lambda add: calls[add].invoke)
                fixed.append((2 * group, calls[earliest].invoke, earliest))
                again(value, group, skip=earliest)
        fixed.append((2 * group + 1, calls[place].invoke, place))
    for value in [*adds]:
        again(value, group + 1)
    return fixed, free


def _returned(call: Call, until: float) -> float:
    return EVER if call.complete is None or call.complete > until else call.complete
