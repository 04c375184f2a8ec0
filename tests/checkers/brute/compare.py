"""A checker against its definition: how often they agree, and the smallest history on which they do not.

A `Row` is one checker with the definition that it is held to. `definition` says whether a history is allowed, or None
where the definition does not say; `checker` gives the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history import History
from checkers.verdict import Verdict
from tests.checkers.brute.histories import Line, history_of, smaller

AGREE_VALID = "agree valid"
AGREE_INVALID = "agree invalid"
MISSED = "VALID, not allowed"
FALSE_ALARM = "INVALID, allowed"
UNKNOWN = "unknown"
RAISED = "exceptions"
NOTHING = "nothing to judge"
OUTCOMES = (AGREE_VALID, AGREE_INVALID, NOTHING, MISSED, FALSE_ALARM, UNKNOWN, RAISED)
WRONG = (MISSED, FALSE_ALARM, UNKNOWN, RAISED)
"""What must not come: on so small a history a checker has no reason not to know."""


@dataclass(frozen=True, slots=True)
class Row:
    """`draw` gives the lines of the history of a seed."""

    name: str
    draw: Callable[[int], list[Line]]
    definition: Callable[[History], bool | None]
    checker: Callable[[History], Verdict]

    def outcome(self, lines: Sequence[Line]) -> str:
        history = history_of(lines)
        return outcome(self.definition(history), self.checker, history)


@dataclass(slots=True)
class Comparison:
    """How often each outcome came, and the seeds of those that must not come."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[int]] = field(default_factory=dict)

    @property
    def histories(self) -> int:
        return self.outcomes.total()


def outcome(allowed: bool | None, checker: Callable[[History], Verdict], history: History) -> str:
    """Which of OUTCOMES."""
    try:
        verdict = checker(history)
    except Exception:  # whatever it is: that is what the table counts
        return RAISED
    if allowed is None or (allowed and _has_nothing_to_judge(verdict)):
        return NOTHING
    if verdict.result == "unknown":
        return UNKNOWN
    if verdict.result == "valid":
        return AGREE_VALID if allowed else MISSED
    return FALSE_ALARM if allowed else AGREE_INVALID


def _has_nothing_to_judge(verdict: Verdict) -> bool:
    return verdict.result != "invalid" and bool(verdict.details.get("vacuous"))


def compared(row: Row, seeds: Iterable[int]) -> Comparison:
    """All these seeds."""
    comparison = Comparison(row.name)
    for seed in seeds:
        came = row.outcome(row.draw(seed))
        comparison.outcomes[came] += 1
        if came in WRONG:
            comparison.wrong.setdefault(came, []).append(seed)
    return comparison


def smallest(row: Row, lines: Sequence[Line]) -> list[Line]:
    """A history with the same outcome, from which nothing can be left out."""
    came = row.outcome(lines)
    least = list(lines)
    while True:
        for fewer in smaller(least):
            if row.outcome(fewer) == came:
                least = fewer
                break
        else:
            return least


def why(row: Row, lines: Sequence[Line]) -> str:
    """What the checker says: the rules that it found broken, its words, or its error."""
    try:
        verdict: Any = row.checker(history_of(lines))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    rules = sorted({witness.rule for witness in verdict.witnesses})
    return ", ".join(rules) if rules else f"{verdict.result}: {verdict.summary}"
