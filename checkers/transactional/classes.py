"""The classes of cycles as automata.

A class is an edge to begin with and an automaton for the way back (see `anomalies` for what the classes mean,
`graph_kernels` for how they are walked):

- plain classes begin with an edge that their cycles must have, and come back to its source
- with -process they begin with "the same client did this first", and come back to its source
- with -realtime they begin at a transaction, and come to one which had ended before that began; one such step is
  enough, see `shortest_back_in_time`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy

from checkers.transactional.graph import PROCESS, RW, RW_PREDICATE, WR, WW
from checkers.transactional.graph_kernels import Automaton

Step = Mapping[int, int]
"""One state of an automaton: the next state by kind of edge."""

_D = (WW, WR)


def automaton_of(states: Sequence[Step], accepting: Sequence[int]) -> Automaton:
    """The automaton with these states, of which the first is that in which a path begins."""
    table = numpy.full((len(states), 5), -1, numpy.int8)
    for state, after in enumerate(states):
        for kind, target in after.items():
            table[state, kind] = target
    marks = numpy.zeros(len(states), numpy.int8)
    marks[list(accepting)] = 1
    return Automaton(table, marks)


@dataclass(frozen=True, slots=True)
class CycleClass:
    """`starts`: the kinds of edge that a cycle begins with (none: the caller knows); `least` its smallest size."""

    name: str
    starts: tuple[int, ...]
    automaton: Automaton
    least: int


@cache
def plain_classes(*, predicates: bool) -> tuple[CycleClass, ...]:
    """Worst first; those by predicate only if asked for."""
    by_predicate = _by_predicate(_closing((RW, RW_PREDICATE))) if predicates else ()
    return (*_closing((RW,)), *by_predicate)


@cache
def classes_in_time(also: tuple[int, ...] = (), *, predicates: bool) -> tuple[CycleClass, ...]:
    """For cycles that begin with a step in time, itself neither ww, wr nor rw; `also`: kinds of more such steps."""
    by_predicate = _by_predicate(_path((RW, RW_PREDICATE), also)) if predicates else ()
    return (*_path((RW,), also), *by_predicate)


BY_PREDICATE = {
    "G-single": "G-single-predicate",
    "G-nonadjacent": "G-nonadjacent-predicate",
    "G2-item": "G2",
}
"""The name of a class if only a predicate's rw closes the cycle."""


def _by_predicate(classes: Iterator[CycleClass]) -> Iterator[CycleClass]:
    return (
        replace(cycle_class, name=BY_PREDICATE[cycle_class.name])
        for cycle_class in classes
        if cycle_class.name in BY_PREDICATE
    )


def _to(state: int, *kinds: int) -> dict[int, int]:
    return dict.fromkeys(kinds, state)


def _closing(item: tuple[int, ...]) -> Iterator[CycleClass]:
    """`item`: the kinds of rw; the cycle begins with the last of them."""
    apart = [
        _to(1, *_D),  # 0: after the first rw
        _to(1, *_D) | _to(2, *item),  # 1: after something else, one rw so far
        _to(3, *_D),  # 2: after another rw
        _to(3, *_D) | _to(2, *item),  # 3: after something else, two rw or more
    ]
    together = [
        _to(1, *_D) | _to(2, *item),  # 0: after rw
        _to(1, *_D) | _to(3, *item),  # 1: after something else
        _to(2, *_D, *item),  # 2: there were two rw in a row
        _to(1, *_D) | _to(2, *item),  # 3: after rw, and with the first edge that makes two in a row
    ]
    last = item[-1:]
    yield CycleClass("G0", (WW,), automaton_of([_to(0, WW)], (0,)), 2)
    yield CycleClass("G1c", (WR,), automaton_of([_to(0, *_D)], (0,)), 2)
    yield CycleClass("G-single", last, automaton_of([_to(0, *_D)], (0,)), 2)
    yield CycleClass("G-nonadjacent", last, automaton_of(apart, (3,)), 4)
    yield CycleClass("G2-item", last, automaton_of(together, (2, 3)), 2)


def _path(item: tuple[int, ...], also: Sequence[int]) -> Iterator[CycleClass]:
    d = (*_D, *also)
    apart = [
        _to(0, *d) | _to(1, *item),  # 0: no rw so far
        _to(2, *d),  # 1: after the first rw
        _to(2, *d) | _to(3, *item),  # 2: after something else, one rw so far
        _to(4, *d),  # 3: after another rw
        _to(4, *d) | _to(3, *item),  # 4: after something else, two rw or more
    ]
    together = [_to(0, *d) | _to(1, *item), _to(0, *d) | _to(2, *item), _to(2, *d, *item)]
    dirty = [_to(0, WW, *also) | _to(1, WR), _to(1, *d)]
    yield CycleClass("G0", (), automaton_of([_to(0, WW, *also)], (0,)), 2)
    yield CycleClass("G1c", (), automaton_of(dirty, (1,)), 2)
    yield CycleClass("G-single", (), automaton_of([_to(0, *d) | _to(1, *item), _to(1, *d)], (1,)), 2)
    yield CycleClass("G-nonadjacent", (), automaton_of(apart, (3, 4)), 4)
    yield CycleClass("G2-item", (), automaton_of(together, (2,)), 3)


EVERYTHING = automaton_of([_to(0, WW, WR, RW, RW_PREDICATE, PROCESS)], (0,))
"""The automaton with a single state only chooses kinds of edges."""
