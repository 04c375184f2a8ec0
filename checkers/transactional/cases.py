"""Looks for the choices of reads by trying them, for the models whose search knows no choices itself.

Each case is judged as a history of distinct values. A case that fails is made smaller: the choices are left open that
it fails without. No later case has all the others. So a read that can show one write only costs one try for each other
one, and what does not matter costs nothing (lazy clause generation, as in solvers of satisfiability modulo theories).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from checkers.limits import given
from checkers.transactional.candidates import Choice

STEPS = 150_000
"""Micro-operations of all cases that are judged; some 4 s."""
ASSIGNED_MAX = 100_000
"""Choices that are made and taken back to find a case."""
Result = Literal["proved", "refuted", "open"]
Case = Mapping[int, int]
Judge = Callable[[Case], tuple[Result, Any]]


def limit_of(part: int) -> int:
    """How many micro-operations may be judged, if this search has one part in so many of the budget."""
    return (given().steps or STEPS) // part


class _Spent(Exception):
    """The budget does not suffice."""


def choose(choices: Sequence[Choice], likely: Case, judge: Judge, tries: int) -> tuple[Result, Case, Any]:
    """(the result, the case that is proved, its proof). `likely`: what reads most likely show; it is tried first."""
    search = _Cases(choices, likely, judge, tries)
    try:
        return search.solved()
    except _Spent:
        return "open", {}, None


class _Cases:
    def __init__(self, choices: Sequence[Choice], likely: Case, judge: Judge, tries: int) -> None:
        self.versions = {
            choice.micro: sorted(
                choice.versions,
                key=lambda version: version != likely.get(choice.micro, likely.get(choice.repeats)),
            )
            for choice in choices
        }
        self.judge = judge
        self.tries = tries
        self.failed: list[Case] = []
        self.failed_of: dict[int, list[Case]] = {micro: [] for micro in self.versions}

    def solved(self) -> tuple[Result, Case, Any]:
        while (case := self._next()) is not None:
            result, proof = self._judged(case)
            # A case that is open ends the search: "refuted" needs all of them.
            if result != "refuted":
                return result, case, proof
            self._note(self._least(case))
        return "refuted", {}, None

    def _judged(self, case: Case) -> tuple[Result, Any]:
        self.tries -= 1
        if self.tries < 0:
            raise _Spent
        return self.judge(case)

    def _note(self, case: Case) -> None:
        self.failed.append(case)
        for micro in case:
            self.failed_of[micro].append(case)

    def _least(self, case: Case) -> Case:
        """A part of a case that fails, which fails too; none of it can be left out."""
        left = dict(case)
        size = max(1, len(left) // 2)
        while left:
            place, smaller = 0, False
            while place < len(left):
                gone = set(list(left)[place : place + size])
                rest = {micro: version for micro, version in left.items() if micro not in gone}
                if self._judged(rest)[0] == "refuted":
                    left, smaller = rest, True
                else:
                    place += size
            if size == 1 and not smaller:
                break
            size = max(1, size // 2)
        return left

    def _next(self) -> Case | None:
        """A case that has no failed one in it; None if each one has."""
        if any(not case for case in self.failed):
            return None
        order = sorted(self.versions, key=lambda micro: (-len(self.failed_of[micro]), micro))
        case: dict[int, int] = {}
        tried = [0] * (len(order) + 1)
        place, made = 0, 0
        while place < len(order):
            micro = order[place]
            versions = self.versions[micro]
            while tried[place] < len(versions):
                case[micro] = versions[tried[place]]
                tried[place] += 1
                made += 1
                if not any(failed.items() <= case.items() for failed in self.failed_of[micro]):
                    break
            else:
                case.pop(micro, None)
                tried[place] = 0
                place -= 1
                if place < 0:
                    return None
                case.pop(order[place], None)
                continue
            if made > ASSIGNED_MAX:
                raise _Spent
            place += 1
        return case
