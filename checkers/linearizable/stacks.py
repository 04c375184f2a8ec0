"""Stacks and priority queues on which every element is put in once: polynomial, without a search.

An element is *surely inside* from the return of its push to the call of its pop. Between two events at which no element
surely is, the object may be empty: whatever is inside there may go in later, or be out already. Moments stand between
events: moment k lies behind event k.

**Stacks.** An element whose pop was called before its push returned may go in and out at one moment, whatever else is
inside. Of the others, those whose sure times overlap make a stretch. In all of a stretch something is inside, so one
element is at the bottom from its first event to its last. Any element will do that was called before the first event,
and may come out after the last: exchanged for another one, all others keep their order. Without it the rest falls into
shorter stretches. If no element of a stretch will do, there is no order. This takes n log n for each level of nesting.

**Priority queues.** The greatest elements first: each comes out at its first moment at which no greater one surely is
inside, which is best for all smaller ones, and goes in as late as it may. With moments joined where they are taken,
that is n log n.

Abdulla, Atig et al. (*Efficient Linearizability Monitoring*, PLDI 2025) and Lee & Mathur (arXiv 2410.04581) have such
algorithms; these two are our own, and stand beside the search in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LATER = 1 << 60
"""The event at which an element comes out that never did."""


@dataclass(frozen=True, slots=True)
class Element:
    """The events between which an element went in and came out, and the calls; LATER: not yet."""

    value: Any
    put_begun: int
    put_over: int
    took_begun: int
    took_over: int
    put_by: int
    took_by: int | None

    @property
    def may_pass(self) -> bool:
        """Whether it may go in and out at one moment."""
        return self.put_over > self.took_begun


Empty = tuple[int, int, int]  # called, returned, call
Keyed = tuple[int, int, int, list[int]]  # moment, the order at one moment, calls


def last_in_first_out(elements: Sequence[Element], empties: Sequence[Empty]) -> list[int] | None:
    """The calls in an order of a stack that began empty, None if there is none."""
    steps: list[Keyed] = []
    staying = sorted((each for each in elements if not each.may_pass), key=lambda each: each.put_over)
    stretches = _stretches(staying)
    for number, stretch in enumerate(stretches):
        nested = _nested(stretch)
        if nested is None:
            return None
        steps += ((moment, 2 * number, at, [call]) for at, (moment, call) in enumerate(nested))
    for each in elements:
        if each.may_pass:
            moment = max(each.put_begun, each.took_begun)
            steps.append((moment, 2 * len(stretches), each.put_by, _calls(each)))
    begins = [stretch[0].put_over for stretch in stretches]
    ends = [max(each.took_begun for each in stretch) for stretch in stretches]
    gaps = list(zip([-1, *ends], [*begins, LATER], strict=True))
    at = 0
    for begun, over, call in sorted(empties):
        while gaps[at][1] <= begun:
            at += 1
        moment = max(gaps[at][0], begun)
        if moment >= min(gaps[at][1], over):
            return None
        steps.append((moment, 2 * at - 1, call, [call]))
    return [call for *_, calls in sorted(steps) for call in calls]


def _stretches(elements: Sequence[Element]) -> list[list[Element]]:
    """Elements by the first event from which they surely are inside, those together whose sure times overlap."""
    stretches: list[list[Element]] = []
    end = -1
    for each in elements:
        if each.put_over > end:
            stretches.append([])
        stretches[-1].append(each)
        end = max(end, each.took_begun)
    return stretches


def _nested(stretch: list[Element]) -> list[tuple[int, int]] | None:
    """The calls of a stretch, each with its moment; None if none of its elements can be at the bottom."""
    steps: list[tuple[int, int]] = []
    todo: list[list[Element] | list[tuple[int, int]]] = [stretch]
    while todo:
        part = todo.pop()
        if isinstance(part[0], tuple):
            steps += part
            continue
        inside: list[Element] = part
        begin, end = inside[0].put_over, max(each.took_begun for each in inside)
        # Strictly: it goes in at moment begin - 1 and comes out at moment `end`, which lie behind these events.
        below = [each for each in inside if each.put_begun < begin and each.took_over > end]
        if not below:
            return None
        names = {each.put_by for each in below}
        above = [each for each in inside if each.put_by not in names]
        steps += ((begin - 1, each.put_by) for each in below)
        if pops := [(end, each.took_by) for each in reversed(below) if each.took_by is not None]:
            todo.append(pops)
        todo += reversed(_stretches(above))
    return steps


def greatest_first(elements: Sequence[Element], empties: Sequence[Empty], events: int) -> list[int] | None:
    """The calls in an order of a priority queue that began empty, None if there is none. `events`: their number."""
    free = list(range(events + 2))  # by moment, the first one from there on at which nothing is surely inside

    def first_free(moment: int) -> int:
        while free[moment] != moment:
            free[moment] = free[free[moment]]
            moment = free[moment]
        return moment

    steps: list[Keyed] = []
    for rank, each in enumerate(sorted(elements, key=lambda each: each.value, reverse=True)):
        out = first_free(min(max(each.put_begun, each.took_begun), events + 1))
        # Moment k lies behind event k, so it has to be below the event of the return.
        if out >= each.took_over:
            return None
        if each.put_over > out:
            steps.append((out, 0, rank, _calls(each)))
            continue
        steps.append((each.put_over - 1, 2, rank, [each.put_by]))
        if each.took_by is not None:
            steps.append((out, 0, rank, [each.took_by]))
        moment = first_free(each.put_over)
        while moment < out:
            free[moment] = moment + 1
            moment = first_free(moment + 1)
    for begun, over, call in empties:
        moment = first_free(begun)
        if moment >= over:
            return None
        steps.append((moment, 1, call, [call]))
    return [call for *_, calls in sorted(steps) for call in calls]


def _calls(element: Element) -> list[int]:
    return [element.put_by] if element.took_by is None else [element.put_by, element.took_by]
