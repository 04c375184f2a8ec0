"""The verdict of the logs' checks for each phase of a split: the rules that are broken, and the price of the strategy.

A breach belongs to the phase in which its first record was written. A verdict keeps the first breaches of each check
alone, so a phase without one is said to be free of violations, or of a price, only if none was left out.
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
class Breach:
    """A broken rule. `is_price`: the strategy documents it. `master` and `place`: its first record."""

    rule: str
    check: str
    is_price: bool
    master: str
    place: int


@dataclass(frozen=True, slots=True)
class LogChecks:
    """The checks over the logs in a verdict, and the breaches that it lists."""

    checks: Sequence[str]
    """The names of the checks over the logs; empty if none ran."""
    breaches: Sequence[Breach]
    unknown: Sequence[str]
    """Checks that came to no verdict."""
    is_whole: bool
    """The verdict names the records of every violation."""
    has_all_prices: bool
    """The verdict lists every documented breach; one without records is of no phase."""


def log_checks(verdict: Mapping[str, Any]) -> LogChecks:
    """The checks over the logs in a verdict.json. `violations` counts all; `proofs` lists the first of them.

    `documented` lists the prices, and `documented_left_out` counts those that are not listed.
    """
    breaches: list[Breach] = []
    names: list[str] = []
    unknown: list[str] = []
    is_whole = has_all_prices = True
    for check in verdict.get("checks", ()):
        name, details = str(check.get("checker", "")), check.get("details") or {}
        if not name.startswith(PREFIX):
            continue
        names.append(name)
        if check.get("result") == "unknown":
            unknown.append(name)
        wrong = details.get("proofs") or () if check.get("result") == "invalid" else ()
        placed = _breached(name, wrong, is_price=False)
        is_whole &= len(placed) == int(details.get("violations") or 0)
        has_all_prices &= not details.get("documented_left_out")
        breaches += [*placed, *_breached(name, details.get("documented") or (), is_price=True)]
    return LogChecks(names, breaches, unknown, is_whole, has_all_prices)


def _breached(check: str, proofs: Sequence[Any], *, is_price: bool) -> list[Breach]:
    return [
        Breach(str(proof.get("rule", "")), check, is_price, *proof["records"][0])
        for proof in proofs
        if proof.get("records")
    ]


def phase_sentences(checks: LogChecks, phases: Collection[str], phase_of: PhaseOf) -> list[str]:
    """A sentence for each of these phases."""
    if checks.unknown:
        return [f"No verdict by phase: {', '.join(checks.unknown)} came to none."]
    named = [phase for phase in PHASES if phase in phases and checks.checks]
    return [f"Verdict {phase}: {_verdict(checks, phase, phase_of)}." for phase in named]


def _verdict(checks: LogChecks, phase: str, phase_of: PhaseOf) -> str:
    here = [breach for breach in checks.breaches if phase_of(breach.master, breach.place) == phase]
    wrong, priced = ([breach for breach in here if breach.is_price is price] for price in (False, True))
    none = "no violation" if checks.is_whole else "none of the violations that are listed"
    verdict = f"violation of {_rules(wrong)}" if wrong else none
    if priced:
        known = "" if checks.has_all_prices else ", as far as it is listed"
        return f"{verdict}; the documented price of the strategy{known}: {_rules(priced)}"
    return verdict if checks.has_all_prices else f"{verdict}; none of the documented prices that are listed"


def _rules(breaches: Sequence[Breach]) -> str:
    return ", ".join(dict.fromkeys(f"{breach.rule} ({breach.check})" for breach in breaches))
