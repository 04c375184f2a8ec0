"""Counters: a read that no sum explains, and the order that is met first.

A read shows the start, all additions that were over before it began, and some of those that may have been done by its
return. If no selection of these gives the number, there is no order. Sums are looked for from both ends: those of one
half of the selection meet those of the other (Horowitz and Sahni, 1974), which takes 2^11 sums for 22 additions.

If nothing is ever taken away, reads stand in the order of their numbers. Then a step from one number to the next is the
sum of a few of the additions that may stand between the two reads, and no part of it is larger. If no selection gives
the step, there is no order.

One order is tried: each read behind the selection that leads to it from the number before, of the additions that were
over first. It is a result only if it keeps real time. If it is met up to one return, and that return is impossible,
that is the result. Otherwise nothing is decided here: whether reads have selections that fit each other is a search.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any

from checkers.linearizable.search import Call, events

SUMS_MAX = 1 << 17
"""Of one half of a selection."""
WORK_MAX = 2_000_000
"""Sums in all, of each of the two; a history that needs more is left to the search."""


class _TooMuch(Exception):
    """The sums are too many."""


class _Sums:
    """Sums of selections. The halves of one selection are often those of the next: unanswered additions stay."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Any, ...], Any], dict[Any, int]] = {}
        self._left = WORK_MAX

    def selection(self, amounts: Sequence[Any], wanted: Any) -> list[int] | None:
        """Places of amounts that have this sum, None if there are none. Raises _TooMuch."""
        if wanted == 0:
            return []
        if not _may_give(amounts, wanted):
            return None
        places, most = list(range(len(amounts))), None
        if min(amounts) >= 0:  # then none of them is larger than the sum, nor is a part of them
            places, most = [place for place in places if 0 < amounts[place] <= wanted], wanted
        half = len(places) // 2
        first, second = (
            self._of([amounts[place] for place in part], most) for part in (places[:half], places[half:])
        )
        self._left -= min(len(first), len(second))
        for total, mask in first.items():
            # Two halves of one selection: together they go through all 2^n sums without listing them.
            other = second.get(wanted - total)
            if other is not None:
                both = mask | other << half
                return [place for at, place in enumerate(places) if both >> at & 1]
        return None

    def has(self, amounts: Sequence[Any], wanted: Any) -> bool:
        """Whether any selection has this sum. Raises _TooMuch."""
        return self.selection(amounts, wanted) is not None

    def _of(self, amounts: Sequence[Any], most: Any) -> dict[Any, int]:
        """Sum → the first selection that has it, as a mask. `most`: without the larger ones."""
        name = (tuple(amounts), most)
        sums = self._known.get(name)
        if sums is None:
            sums = {0: 0}
            for place, amount in enumerate(amounts):
                for total, mask in list(sums.items()):
                    # Without negative amounts a part is never above the whole, so larger sums lead nowhere.
                    if most is None or total + amount <= most:
                        sums.setdefault(total + amount, mask | 1 << place)
                self._left -= len(sums)
                if len(sums) > SUMS_MAX or self._left < 0:
                    raise _TooMuch
            # A cache of sums alone: clearing it costs time.
            if len(self._known) > 64:
                self._known.clear()
            self._known[name] = sums
        return sums


def _may_give(amounts: Sequence[Any], wanted: Any) -> bool:
    """Whether the number is between the smallest sum of a selection and the largest."""
    low = sum(amount for amount in amounts if amount < 0)
    return bool(low <= wanted <= sum(amount for amount in amounts if amount > 0))


def decide(calls: Sequence[Call], start: Any) -> tuple[list[int] | None, int | None]:
    """(an order, None), (None, a read that fits into none), or (None, None): undecided."""
    if (order := _met(calls, start)) is not None:
        return order, None
    reads = sorted(_reads(calls), key=lambda read: _returned(calls[read]))
    first = bisect_left(
        reads, True, key=lambda read: _met(_until(calls, _returned(calls[read]) + 1), start) is None
    )
    if first < len(reads):
        returned = _returned(calls[reads[first]])
        has_order = _met(_until(calls, returned), start) is not None
        if has_order and _is_refuted(_until(calls, returned + 1), start):
            return None, reads[first]
    with suppress(_TooMuch):
        return None, _impossible(calls, start, _Sums().has)
    return None, None


def _until(calls: Sequence[Call], moment: float) -> list[Call]:
    """The calls as they were known before a moment."""
    begun = [call for call in calls if call.invoke < moment]
    return [call if _returned(call) < moment else replace(call, complete=None) for call in begun]


def _is_refuted(calls: Sequence[Call], start: Any) -> bool:
    """Whether the calls surely have no order, although they have one without the last return."""
    if _impossible(calls, start, _may_give) is not None:
        return True
    with suppress(_TooMuch):
        return _is_torn(calls, start)
    return False


def _amount(call: Call) -> Any:
    return call.action.values[0]


def _amounts(calls: Sequence[Call], places: Iterable[int]) -> list[Any]:
    return [_amount(calls[place]) for place in places]


def _impossible(
    calls: Sequence[Call], start: Any, may_give: Callable[[Sequence[Any], Any], bool]
) -> int | None:
    """The first read to return a number that no selection of additions may give."""
    total = start
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
            if not may_give(_amounts(calls, [*unanswered, *beside]), _amount(call) - before):
                return place
    return None


def _met(calls: Sequence[Call], start: Any) -> list[int] | None:
    """The order described above; None if it does not keep real time, or a selection does not fit the ones before it."""
    try:
        order = _in_line(calls, start)
    except _TooMuch:
        return None
    latest = -1
    for place in order or ():
        if _returned(calls[place]) < latest:
            return None
        latest = max(latest, calls[place].invoke)
    return order


def _in_line(calls: Sequence[Call], start: Any) -> list[int] | None:
    """The same before real time is looked at."""
    sums, state = _Sums(), start
    order: list[int] = []
    adds, reads = _adds(calls), _line(calls)
    asked, waiting = 0, list[int]()
    for read, returned in zip(reads, _deadlines(calls, reads), strict=True):
        begun = calls[read].invoke
        while asked < len(adds) and calls[adds[asked]].invoke < returned:
            waiting.append(adds[asked])
            asked += 1
        over = [add for add in waiting if _returned(calls[add]) < begun]
        others = [add for add in waiting if _returned(calls[add]) >= begun]
        others.sort(key=lambda add: (_returned(calls[add]), add))
        state += sum(_amounts(calls, over))
        chosen = sums.selection(_amounts(calls, others), _amount(calls[read]) - state)
        if chosen is None:
            return None
        done = {*over, *(others[each] for each in chosen)}
        state = _amount(calls[read])
        order += [*(add for add in waiting if add in done), read]
        waiting = [add for add in waiting if add not in done]
    return order + [add for add in (*waiting, *adds[asked:]) if calls[add].complete is not None]


def _is_torn(calls: Sequence[Call], start: Any) -> bool:
    """Whether the additions that may stand between two reads never lead from the number of one to that of the next.

    Only if nothing is taken away. The neighbours of the last read to return are looked at first. Raises _TooMuch.
    """
    if not _only_grows(calls):
        return False
    adds, reads = _adds(calls), _line(calls)
    # Of the read before; nothing is over before the start.
    state, begun, before = start, float("-inf"), float("-inf")
    asked, between = 0, list[int]()
    steps: list[tuple[list[Any], Any]] = []
    for read, returned in zip(reads, _deadlines(calls, reads), strict=True):
        if returned < begun:
            return True
        while asked < len(adds) and calls[adds[asked]].invoke <= returned:
            between.append(adds[asked])
            asked += 1
        between = [add for add in between if _returned(calls[add]) >= begun]
        latest = max(begun, calls[read].invoke)
        sure = {add for add in between if before < calls[add].invoke and _returned(calls[add]) < latest}
        rest = _amount(calls[read]) - state - sum(_amounts(calls, sure))
        steps.append((_amounts(calls, (add for add in between if add not in sure)), rest))
        state, begun, before = _amount(calls[read]), latest, returned
    last = max(range(len(reads)), key=lambda place: _returned(calls[reads[place]]), default=0)
    sums = _Sums()
    return any(
        not sums.has(*steps[place]) for place in sorted(range(len(steps)), key=lambda at: abs(at - last))
    )


def _adds(calls: Sequence[Call]) -> list[int]:
    adds = (place for place, call in enumerate(calls) if call.action.word == "add")
    return sorted(adds, key=lambda add: calls[add].invoke)


def _reads(calls: Sequence[Call]) -> list[int]:
    return [
        place for place, call in enumerate(calls) if call.action.word != "add" and call.complete is not None
    ]


def _only_grows(calls: Sequence[Call]) -> bool:
    return all(call.action.word != "add" or _amount(call) >= 0 for call in calls)


def _line(calls: Sequence[Call]) -> list[int]:
    """The reads in the order in which they must stand if nothing is taken away; else by their returns."""
    if _only_grows(calls):
        return sorted(_reads(calls), key=lambda read: (_amount(calls[read]), calls[read].invoke))
    return sorted(_reads(calls), key=lambda read: _returned(calls[read]))


def _deadlines(calls: Sequence[Call], reads: Sequence[int]) -> list[float]:
    """By read: until when it took place, because it and those behind it in the line were over then."""
    return list(accumulate((_returned(calls[read]) for read in reversed(reads)), min))[::-1]


def _returned(call: Call) -> float:
    return float("inf") if call.complete is None else call.complete
