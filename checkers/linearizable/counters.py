"""Counters: a read that no sum explains, and the order that is met first.

A read shows the start, all additions that were over before it began, and some of those that may have been done by its
return. If no selection of these gives the number, there is no order. Sums are looked for from both ends: those of one
half of the selection meet those of the other (Horowitz and Sahni, 1974), which takes 2^11 sums for 22 additions.

If each read has a selection, one order is tried: reads by their returns, each behind the selection that uses the
additions that were over first. It is a result only if it keeps real time. Otherwise nothing is decided here: whether
reads have selections that fit each other is a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from checkers.linearizable.search import Call, events

SUMS_MAX = 1 << 17
"""Of one half of a selection."""
WORK_MAX = 2_000_000
"""Sums in all; a history that needs more is left to the search."""


class _TooMuch(Exception):
    """The sums are too many."""


class _Sums:
    """Sums of selections. The halves of one selection are often those of the next: unanswered additions stay."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], dict[Any, int]] = {}
        self._left = WORK_MAX

    def selection(self, amounts: Sequence[Any], wanted: Any) -> list[int] | None:
        """Places of amounts that have this sum, None if there are none. Raises _TooMuch."""
        low = sum(amount for amount in amounts if amount < 0)
        high = sum(amount for amount in amounts if amount > 0)
        if wanted == 0:
            return []
        if not low <= wanted <= high:
            return None
        half = len(amounts) // 2
        first, second = self._of(amounts[:half]), self._of(amounts[half:])
        self._left -= min(len(first), len(second))
        for total, mask in first.items():
            other = second.get(wanted - total)
            if other is not None:
                both = mask | other << half
                return [place for place in range(len(amounts)) if both >> place & 1]
        return None

    def _of(self, amounts: Sequence[Any]) -> dict[Any, int]:
        """Sum → the first selection that has it, as a mask."""
        name = tuple(amounts)
        sums = self._known.get(name)
        if sums is None:
            sums = {0: 0}
            for place, amount in enumerate(amounts):
                for total, mask in list(sums.items()):
                    sums.setdefault(total + amount, mask | 1 << place)
                self._left -= len(sums)
                if len(sums) > SUMS_MAX or self._left < 0:
                    raise _TooMuch
            if len(self._known) > 64:
                self._known.clear()
            self._known[name] = sums
        return sums


def decide(calls: Sequence[Call], start: Any) -> tuple[list[int] | None, int | None]:
    """(an order, None), (None, a read that fits into none), or (None, None): undecided."""
    try:
        failing = _impossible(calls, start)
        return (None, failing) if failing is not None else (_met(calls, start), None)
    except _TooMuch:
        return None, None


def _amount(call: Call) -> Any:
    return call.action.values[0]


def _amounts(calls: Sequence[Call], places: Iterable[int]) -> list[Any]:
    return [_amount(calls[place]) for place in places]


def _impossible(calls: Sequence[Call], start: Any) -> int | None:
    """The first read to return a number that no selection of additions explains."""
    sums, total = _Sums(), start
    unanswered: list[int] = []
    running: dict[int, None] = {}
    reading: dict[int, tuple[Any, list[int]]] = {}
    """Read → the sum when it began, and the additions that ran then or began later."""
    for _, place, returns in events(calls):
        call = calls[place]
        if call.action.word == "add" and not returns:
            if call.complete is None:
                unanswered.append(place)
            else:
                running[place] = None
                for _, beside in reading.values():
                    beside.append(place)
        elif call.action.word == "add":
            del running[place]
            total += _amount(call)
        elif not returns:
            reading[place] = (total, [*running])
        else:
            before, beside = reading.pop(place)
            if sums.selection(_amounts(calls, [*unanswered, *beside]), _amount(call) - before) is None:
                return place
    return None


def _met(calls: Sequence[Call], start: Any) -> list[int] | None:
    """The order described above; None if it does not keep real time, or a selection does not fit the ones before it."""
    sums, state = _Sums(), start
    order: list[int] = []
    waiting: dict[int, None] = {}
    for _, place, returns in events(calls):
        call = calls[place]
        if call.action.word == "add" and not returns:
            waiting[place] = None
        elif call.action.word != "add" and returns:
            over = {add: None for add in waiting if _returned(calls[add]) < call.invoke}
            state += sum(_amounts(calls, over))
            others = sorted(waiting.keys() - over.keys(), key=lambda add: (_returned(calls[add]), add))
            chosen = sums.selection(_amounts(calls, others), _amount(call) - state)
            if chosen is None:
                return None
            adds = [*over, *(others[each] for each in chosen)]
            state = _amount(call)
            order += [*sorted(adds, key=lambda add: calls[add].invoke), place]
            waiting = {add: None for add in waiting if add not in {*adds}}
    order += sorted(
        (add for add in waiting if calls[add].complete is not None), key=lambda add: calls[add].invoke
    )
    latest = -1
    for place in order:
        if _returned(calls[place]) < latest:
            return None
        latest = max(latest, calls[place].invoke)
    return order


def _returned(call: Call) -> float:
    return float("inf") if call.complete is None else call.complete
