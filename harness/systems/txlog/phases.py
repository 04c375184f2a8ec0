"""The verdict of the logs' checks for each phase of a split: the rules that are broken, and the price of the strategy.

A breach belongs to the phase in which its first record was written. A verdict keeps the first breaches of each check
alone, so a phase without one is said to be free of violations only if none was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.logs.txlog.report import PREFIX

BEFORE, APART, FROZEN, AFTER = "before the split", "in the split", "in the recovery", "after it"
PHASES = (BEFORE, APART, FROZEN, AFTER)
PhaseOf = Callable[[str, int], str]
"""Master and place of a record → its phase; "" outside of the stretch."""


@dataclass(frozen=True, slots=True)
class Breached:
    rule: str
    check: str
    is_price: bool
    master: str
    place: int


@dataclass(frozen=True, slots=True)
class Judged:
    checks: Sequence[str]
    """The verdicts over the logs; none if nothing judged them."""
    breaches: Sequence[Breached]
    unknown: Sequence[str]
    """Checks that came to no verdict."""
    is_whole: bool
    """The verdict names the records of every violation."""


def judged(verdict: Mapping[str, Any]) -> Judged:
    found: list[Breached] = []
    names: list[str] = []
    unknown: list[str] = []
    is_whole = True
    for check in verdict.get("checks", ()):
        name, details = str(check.get("checker", "")), check.get("details") or {}
        if not name.startswith(PREFIX):
            continue
        names.append(name)
        if check.get("result") == "unknown":
            unknown.append(name)
        wrong = details.get("proofs") or () if check.get("result") == "invalid" else ()
        placed = [*_breached(name, wrong, is_price=False)]
        is_whole &= len(placed) == int(details.get("violations") or 0)
        found += [*placed, *_breached(name, details.get("documented") or (), is_price=True)]
    return Judged(names, found, unknown, is_whole)


def _breached(check: str, proofs: Sequence[Any], *, is_price: bool) -> list[Breached]:
    return [
        Breached(str(proof.get("rule", "")), check, is_price, *proof["records"][0])
        for proof in proofs
        if proof.get("records")
    ]


def phases_told(judged: Judged, phases: Collection[str], phase_of: PhaseOf) -> list[str]:
    """A sentence for each of these phases."""
    if judged.unknown:
        return [f"No verdict by phase: {', '.join(judged.unknown)} came to none."]
    found = [phase for phase in PHASES if phase in phases and judged.checks]
    return [f"Verdict {phase}: {_told(judged, phase, phase_of)}." for phase in found]


def _told(judged: Judged, phase: str, phase_of: PhaseOf) -> str:
    here = [each for each in judged.breaches if phase_of(each.master, each.place) == phase]
    wrong, priced = ([each for each in here if each.is_price is price] for price in (False, True))
    none = "no violation" if judged.is_whole else "none of the violations that are listed"
    said = f"violation of {_rules(wrong)}" if wrong else none
    return f"{said}; the documented price of the strategy: {_rules(priced)}" if priced else said


def _rules(breaches: Sequence[Breached]) -> str:
    return ", ".join(dict.fromkeys(f"{each.rule} ({each.check})" for each in breaches))
