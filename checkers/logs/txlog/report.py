"""The rules of the TxLog by check, and the verdict of each check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

Name = Literal[
    "order",
    "once",
    "kept",
    "acquired",
    "executed",
    "state",
    "counters",
    "sessions",
    "policy",
    "vote",
    "drained",
]
CHECKS: Mapping[Name, str] = {
    "order": "synchronised queues agree, and are a prefix of all transactions sorted by (ts, id)",
    "once": "no transaction is in a synchronised queue twice",
    "kept": "no accepted transaction is lost",
    "acquired": "a round adds what an origin has made, and every poster has acquired",
    "executed": "every master executes its synchronised queue in order, and goes back only to a backup",
    "state": "the same transactions in the same order make the same state",
    "counters": "counters never fall, timestamps are above them, and no round adds past a counter",
    "sessions": "what is submitted after a transaction was executed sorts behind it",
    "policy": "masters split, wait and restore as their strategy says",
    "vote": "a recovery counts the digests of all masters, and comes to what its rule says",
    "drained": "masters agree in time, unless a fault keeps them from it",
}
PREFIX = "txlog-"
PRICES_MAX = 1_000
"""Documented breaches that a verdict lists, by their first records: a picture shows them by phase."""

_OF_CHECKS: Mapping[Name, Sequence[str]] = {
    "order": ("diverged", "out-of-order", "not-a-prefix", "skipped", "entries-removed", "not-behind"),
    "once": ("twice",),
    "kept": ("unrecorded", "lost", "dropped-at-recovery"),
    "acquired": ("never-made", "not-acquired", "poster-elsewhere", "poster-lacked"),
    "executed": (
        *("executed-out-of-turn", "executed-another", "executed-entry-removed"),
        *("executed-without-restore", "restored-another", "backup-differs", "restored-too-much"),
        *("restored-without-split", "answered-unexecuted", "undone-answer"),
    ),
    "state": ("state-differs",),
    "counters": (
        *("counter-fell", "counter-not-raised", "stamped-too-low", "stamped-too-high"),
        *("bound-too-high", "above-the-bound", "master-not-counted"),
    ),
    "sessions": ("submitted-later-sorts-before",),
    "policy": (
        *("split-without-cause", "strategy-changed", "split-without-backup", "acted-without-strategy"),
        *("executed-too-early", "executed-in-recovery"),
    ),
    "vote": ("voted-without-digest", "partial-vote", "wrong-winner", "two-winners", "wrong-branch"),
    "drained": ("never-drained", "stalled"),
}
RULES: Mapping[str, Name] = {rule: name for name, rules in _OF_CHECKS.items() for rule in rules}
"""Rule → the check that it belongs to."""

Place = tuple[str, int]
"""A master, and the place of a record in its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A broken rule, with the records and the events of the history that show it."""

    rule: str
    summary: str
    records: Sequence[Place] = ()
    events: Sequence[int] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """More facts than the records, for the verifier: JSON values."""
    price: str = ""
    """Why it is no violation: the strategy's documented price. "": it is one."""
    how: str = ""
    """As `Witness.how`."""
    end_ns: int | None = None
    """When it showed, if no record says so."""

    def witness(self) -> Witness:
        nodes = {master for master, _ in self.records}
        return Witness(
            rule=self.rule,
            summary=self.summary,
            events=tuple(sorted(self.events)),
            node=next(iter(nodes)) if len(nodes) == 1 else None,
            explanation=tuple(f"record {place} of {master}" for master, place in self.records),
            how=self.how,
            end_ns=self.end_ns,
        )

    def proof(self) -> dict[str, Any]:
        return {"rule": self.rule, "records": [list(record) for record in self.records], **self.facts}


@dataclass(slots=True)
class Report:
    """Results of the rules of some checks. `compared`: by check, the figures of its comparison."""

    breaches: list[Breach] = field(default_factory=list)
    compared: dict[Name, Counter[str]] = field(default_factory=dict)
    lacks: dict[Name, str] = field(default_factory=dict)
    """Why a check cannot be valid."""
    nothing: dict[Name, str] = field(default_factory=dict)
    """Why a check had nothing to compare."""
    impossible: set[Name] = field(default_factory=set)
    """The checks of `nothing` for which the run gave no opportunity to break a rule."""
    proofs: dict[Name, Mapping[str, Any]] = field(default_factory=dict)
    """For the verifier: what a check compared to find that all holds."""

    def count(self, name: Name, **numbers: int) -> None:
        self.compared.setdefault(name, Counter()).update(numbers)

    def add(self, other: Report) -> None:
        self.breaches += other.breaches
        for name, numbers in other.compared.items():
            self.compared.setdefault(name, Counter()).update(numbers)
        self.lacks.update(other.lacks)
        self.nothing.update(other.nothing)
        self.impossible |= other.impossible
        self.proofs.update(other.proofs)


def verdict(name: Name, report: Report, missing: str) -> Verdict:
    """The verdict of one check. `missing`: why logs are absent or damaged; "" if all are whole."""
    ours = [breach for breach in report.breaches if RULES[breach.rule] == name]
    wrong = [breach for breach in ours if not breach.price]
    priced = [breach for breach in ours if breach.price]
    numbers = report.compared.get(name, Counter())
    documented = _priced(priced)
    nothing = report.nothing.get(name, "")
    lacks = missing or report.lacks.get(name, "") or nothing
    details: dict[str, Any] = {
        "compared": dict(numbers),
        "violations": len(wrong),
        "findings": [*_findings(priced)],
        "documented": documented[:PRICES_MAX],
        "documented_left_out": max(0, len(documented) - PRICES_MAX),
        "proofs": [breach.proof() for breach in wrong[:WITNESSES_MAX]],
    }
    result: Result = "valid"
    summary = _compared(numbers)
    if wrong:
        result = "invalid"
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        summary = f"{wrong[0].summary}{more}"
    elif lacks:
        result, summary = "unknown", f"not judged: {lacks}"
    elif name in report.proofs:
        details["proofs"] = [dict(report.proofs[name])]
    if nothing:
        details["vacuous"] = True
    if name in report.impossible and not missing:
        details["opportunities"] = 0
    return Verdict(
        checker=f"{PREFIX}{name}",
        result=result,
        summary=summary,
        model=CHECKS[name],
        witnesses=tuple(breach.witness() for breach in wrong[:WITNESSES_MAX]),
        details=details,
    )


def _priced(priced: Sequence[Breach]) -> list[dict[str, Any]]:
    """Each rule and first record once: where the strategy had its price."""
    distinct = dict.fromkeys((breach.rule, tuple(breach.records[:1])) for breach in priced)
    return [{"rule": rule, "records": [list(record) for record in first]} for rule, first in distinct]


def _compared(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in numbers.items() if count)


def _findings(priced: Sequence[Breach]) -> Iterable[str]:
    """A sentence for each rule and price."""
    kinds: dict[tuple[str, str], list[Breach]] = {}
    for breach in priced:
        kinds.setdefault((breach.rule, breach.price), []).append(breach)
    for (_, price), breaches in kinds.items():
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        yield f"{price}: {breaches[0].summary}{more}"
