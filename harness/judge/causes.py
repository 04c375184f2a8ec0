"""Which witness is nearest to the cause: one order of witnesses for the sentence, the page and the fingerprints.

An anomaly shows in several checks: a node breaks an invariant, logs contradict each other, a client reads an old value,
and in the end the nodes do not agree. A reader wants the first of these first. The order is

1. violations before findings
2. the first witness of each rule before further ones of the same rule
3. how near the rule is to the cause (`Near`)
4. the check of node invariants that was broken first; elsewhere the row of `TABLE`
5. the place of the rule in its row, and then the earliest
6. the number of the witness within its check

| Near | what a witness of it says |
|---|---|
| NODE | one node did what it must not do: it crashed, or left the state that its own log says |
| LOGS | the logs of nodes contradict each other, or what clients were told |
| CLIENTS | a client saw what it must not see |
| END | at the end the cluster had not settled: no leader, different data, transactions that still wait |

A check that is not in `TABLE` (an external system may bring one) counts as CLIENTS, behind all rows of it.

The module reads the JSON of a verdict and never raises for one of odd shape: a page must open all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

Json = Mapping[str, Any]
TermOf = Callable[[str, int], int | None]
"""Of a node at a time (ns): the term that it last reported."""


def no_term(node: str, time_ns: int) -> None:
    """For systems without terms."""


SETTLED = "-settled"
"""Ends the name of a check that was judged once more, with what the logs know (`harness.judge.audit`)."""
NEVER_NS = 1 << 62
CRASH = "crash"
ENDS_WITH_AN_ANSWER = ("acknowledged-early",)
"""Invariants of nodes that an answer breaks: the witness begins with the question."""
SHOWN_CHARACTERS = 220
"""How much of a consequence the headline repeats."""


OF_CUTS = "cuts-"


class Near(IntEnum):
    """How near a witness is to the cause."""

    NODE = 0
    LOGS = 1
    CLIENTS = 2
    END = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Some rules of a check, the nearest first; without `rules` all further ones of that check."""

    near: Near
    check: str
    rules: tuple[str, ...] = ()


def _rows(near: Near, *checks: str | tuple[str, ...]) -> Iterator[Row]:
    for each in checks:
        yield Row(near, each) if isinstance(each, str) else Row(near, each[0], each[1:])


TABLE: tuple[Row, ...] = (
    *_rows(
        Near.NODE,
        "crash",
        ("node-state", "took-of-past-owner", "took-contradiction"),
        "node-state",
        (
            "acknowledged-early",
            *("term-lost", "rows-lost", "term-not-durable", "vote-not-durable"),
            *("answered-before-quorum", "answered-before-confirm", "claimed-before-durable"),
            *("shown-before-confirm", "read-behind"),
        ),
        "acknowledged-early",
        ("leadership", "two-leaders", "unfenced", "runaway-term", "deposed", "idle-promote"),
        "txlog-vote",
        ("txlog-kept", "dropped-at-recovery"),
        ("txlog-order", "entries-removed"),
        "txlog-counters",
        "txlog-acquired",
        (
            "txlog-executed",
            *("restored-without-split", "restored-too-much", "restored-another", "backup-differs"),
            *("executed-without-restore", "executed-another", "executed-out-of-turn", "answered-unexecuted"),
        ),
        (
            "txlog-policy",
            *("strategy-changed", "split-without-backup", "acted-without-strategy"),
            *("executed-too-early", "executed-in-recovery"),
        ),
    ),
    *_rows(
        Near.LOGS,
        "stored-start",
        "cuts-form",
        ("cuts-finish", "finished-without-record", "finished-on-some"),
        "cuts-messages",
        "cuts-marker",
        "cuts-transactions",
        "cuts-quorum",
        "cuts-closure",
        "cuts-acknowledged",
        "cuts-external-causality",
        "cuts-state",
        "cuts-restored",
        (
            "audit",
            *("two-votes-in-a-term", "term-not-increasing", "two-owners-of-a-term"),
            *("promoted-without-votes", "confirm-not-increasing", "confirmed-without-quorum"),
            *("snapshot-forgets", "snapshot-differs", "confirmed-and-rolled-back", "confirmed-and-void"),
            *("kept-and-void", "same-lsn-other-content", "decision-without-entry"),
            *("claimed-but-missing", "confirmed-order"),
        ),
        "quorum",
        "audit",  # what clients were told, against the logs
        "replication",
        ("leadership", "stopped"),
        "txlog-once",
        ("txlog-order", "skipped", "diverged", "out-of-order", "not-a-prefix"),
        "txlog-order",
        "txlog-executed",
        "txlog-state",
        "txlog-kept",
    ),
    *_rows(
        Near.CLIENTS,
        "early-timeout",
        "overruled",
        "txlog-sessions",
        "queue-order",
        "write-once",
        "rollback-honesty",
        "linearizable",
        ("transactional", "lost-update", "incompatible-order"),
        ("snapshots", "lost-update", "incompatible-order"),
        "transactional",
        "snapshots",
        "prefix",
        *("coherence", "read-your-writes", "monotonic-reads", "monotonic-writes", "writes-follow-reads"),
        "staleness",
        "dirty",
        "written",
        *("bank", "balances", "set-full", "counter", "queues", "unique-ids", "long-fork", "causal-reverse"),
        *("monotonic", "restored-total", "durability", "kept"),
    ),
    *_rows(
        Near.END,
        "convergence",
        ("txlog-policy", "split-without-cause"),
        "txlog-policy",
        "txlog-drained",
        "cuts-finish",
        ("leadership", "no-leader", "not-converged"),
        "leadership",
        "upgrade",
        "availability",
    ),
)
ABOUT_RIGHT = frozenset(row.check for row in TABLE if row.check.startswith("txlog-"))
"""Checks of logs without times: those of their witnesses are estimates."""
ERROR_NS = 50_000_000
"""Estimates that are no farther apart prove no order."""
_WHOLE = {row.check: place for place, row in enumerate(TABLE) if not row.rules}
_SOME = {
    (row.check, rule): (place, nr) for place, row in enumerate(TABLE) for nr, rule in enumerate(row.rules)
}


def place_of(check: str, rule: str) -> tuple[Near, int, int] | None:
    """How near, the row, and the place in the row; None if the table has neither the rule nor its check."""
    check = check.removesuffix(SETTLED)
    row, nr = _SOME.get((check, rule), (_WHOLE.get(check), 0))
    return None if row is None else (TABLE[row].near, row, nr)


@dataclass(frozen=True, slots=True)
class Sighted:
    """A witness with its place. `number` is its place among those of its check; `also`: checks that say the same."""

    check: Json
    witness: Json
    number: int
    is_violation: bool
    also: tuple[str, ...] = ()

    @property
    def checker(self) -> str:
        return str(self.check.get("checker"))

    @property
    def rule(self) -> str:
        return str(self.witness.get("rule"))

    @property
    def node(self) -> str:
        return str(self.witness.get("node") or "")

    @property
    def summary(self) -> str:
        return str(self.witness.get("summary") or self.rule).rstrip(".")

    @property
    def near(self) -> Near:
        return self.place[0]

    @property
    def place(self) -> tuple[Near, int, int]:
        return place_of(self.checker, self.rule) or (Near.CLIENTS, len(TABLE), 0)

    @property
    def time_ns(self) -> int | None:
        """When it showed: what a node alone did when it began, all else with the last of what proves it."""
        begins = self.near == Near.NODE and self.checker not in ENDS_WITH_AN_ANSWER
        names = ("start_ns", "end_ns") if begins else ("end_ns", "start_ns")
        times = (self.witness.get(name) for name in names)
        return next((each for each in times if isinstance(each, int) and each >= 0), None)

    @property
    def is_estimate(self) -> bool:
        return self.checker in ABOUT_RIGHT

    @property
    def checkers(self) -> tuple[str, ...]:
        return (self.checker, *self.also)

    @property
    def _time_ns(self) -> int:
        return NEVER_NS if self.time_ns is None else self.time_ns

    def distance(self, first_ns: Mapping[str, int]) -> tuple[object, ...]:
        """`first_ns`: by check when it first broke an invariant of a node."""
        near, row, nr = self.place
        first = first_ns[self.checker] if near == Near.NODE else 0
        return (near, first, row, nr, self._time_ns, self.checker, self.number)


def ranked(verdict: Json, *, once: bool = True) -> list[Sighted]:
    """All witnesses of a verdict.json, nearest to the cause first; `once`: those that checks share are there once."""
    violated = verdict.get("violations")
    checks = [each for each in _listed(verdict.get("checks")) if isinstance(each, Mapping)]
    found = [
        Sighted(check, witness, number, violated is None or check.get("checker") in _listed(violated))
        for check in checks
        for number, witness in enumerate(_listed(check.get("witnesses")))
        if isinstance(witness, Mapping)
    ]
    first_ns: dict[str, int] = {}
    for each in found:
        if each.near == Near.NODE:
            first_ns[each.checker] = min(each._time_ns, first_ns.get(each.checker, NEVER_NS))
    found.sort(key=lambda each: each.distance(first_ns))
    seen: Counter[tuple[str, str]] = Counter()
    order: list[tuple[bool, bool, int, Sighted]] = []
    for place, each in enumerate(_once(found) if once else found):
        kind = (each.checker, each.rule)
        order.append((not each.is_violation, seen[kind] > 0, place, each))
        seen[kind] += 1
    return [each for *_, each in sorted(order, key=lambda entry: entry[:3])]


def leading(verdict: Json) -> Sighted | None:
    return next(iter(ranked(verdict)), None)


def _once(found: Sequence[Sighted]) -> Iterator[Sighted]:
    """Each event once, under its nearest check: two checks may prove the same by the same words and lines."""
    first: dict[tuple[object, ...], int] = {}
    kept: list[Sighted] = []
    for each in found:
        told = (each.is_violation, each.summary, tuple(map(str, _listed(each.witness.get("events")))))
        place = first.setdefault(told, len(kept))
        if place == len(kept):
            kept.append(each)
        elif each.checker not in kept[place].checkers:
            kept[place] = replace(kept[place], also=(*kept[place].also, each.checker))
    yield from kept


def consequences(ranking: Sequence[Sighted]) -> list[Sighted]:
    """What followed from the leading witness: a crash, and the worst of the rest.

    A consequence is of a different check that is not nearer to the cause. What a client saw says most, then what did
    not settle, then what the logs say. One that is surely later comes first: only such a one can have followed.
    """
    if not ranking:
        return []
    lead = ranking[0]
    others = [
        each
        for each in ranking
        if each.checker not in lead.checkers and each.is_violation and each.near >= lead.near
    ]
    crash = [each for each in others if each.checker == CRASH and _is_later(lead, each)][:1]
    rest = [each for each in others if each.checker != CRASH]
    order = (Near.CLIENTS, Near.END, Near.LOGS, Near.NODE)
    worst = min(rest, key=lambda each: (not _is_later(lead, each), order.index(each.near)), default=None)
    return crash if worst is None else [*crash, worst]


FINAL_ONLY = frozenset({"runaway-term", "deposed", "idle-promote", "split-without-cause"})
"""Rules that explain why a cluster did not settle, and nothing that a client saw."""


def own_causes(verdict: Json) -> list[Sighted]:
    """The leading witness, all crashes, and the first one of each further rule that follows from none of these.

    A breach follows from the leading one unless it is a crash, was over before a node or its log went wrong, or is of a
    kind that the leading one cannot explain: a wrong cut explains wrong cuts alone, and what keeps a cluster from
    settling explains no lost write. Findings are causes only where nothing is violated.
    """
    causes: list[Sighted] = []
    ranking = ranked(verdict)
    for each in [each for each in ranking if each.is_violation] or ranking:
        kinds = {(cause.checker, cause.rule) for cause in causes if cause.checker != CRASH}
        if (each.checker, each.rule) not in kinds and not any(_explains(cause, each) for cause in causes):
            causes.append(each)
    return causes


def _explains(cause: Sighted, other: Sighted) -> bool:
    if other.checker == CRASH:
        return False
    start_ns, end_ns = cause.witness.get("start_ns"), other.witness.get("end_ns")
    is_judged = cause.near in (Near.NODE, Near.LOGS) and cause.checker != other.checker
    if is_judged and isinstance(start_ns, int) and isinstance(end_ns, int) and end_ns < start_ns:
        return bool({cause.checker, other.checker} & ABOUT_RIGHT)
    if cause.checker.startswith(OF_CUTS):
        return other.checker.startswith(OF_CUTS)
    if cause.near == Near.END or cause.rule in FINAL_ONLY:
        return other.near == Near.END or other.rule in FINAL_ONLY
    return True


def _is_later(lead: Sighted, other: Sighted) -> bool:
    if lead.time_ns is None or other.time_ns is None:
        return False
    return other.time_ns - lead.time_ns > (ERROR_NS if lead.is_estimate or other.is_estimate else 0)


def headline(verdict: Json, term_of: TermOf = no_term, *, has_times: bool = True) -> str:
    """The anomaly in sentences: the moment, the term and the node of the leading witness, and what followed from it.

    `has_times` False: the times of the record are places in a file. They tell what is later, and are no moments.
    """
    ranking = [each for each in ranked(verdict) if each.is_violation] or ranked(verdict)
    if not ranking:
        return "A promise is broken, and no witness was recorded."
    lead, followed = ranking[0], consequences(ranking)
    text = f"{_at(lead, term_of) if has_times else ''}{_on(lead)}."
    text = f"{text[:1].upper()}{text[1:]}"
    text += "".join(f" {_followed(lead, then, has_times)}" for then in followed)
    told = {*lead.checkers, *(checker for then in followed for checker in then.checkers)}
    others = dict.fromkeys(each.checker for each in ranking if each.checker not in told)
    return f"{text} Violated as well: {', '.join(others)}." if others else text


def _at(lead: Sighted, term_of: TermOf) -> str:
    """`At 12.300 s, in term 3, `; empty if the moment is not known."""
    if lead.time_ns is None:
        return ""
    at = f"At {'about ' if lead.is_estimate else ''}{seconds(lead.time_ns)}"
    term = term_of(lead.node, lead.time_ns) if lead.node else None
    return f"{at} " if term is None else f"{at}, in term {term}, "


def _on(lead: Sighted) -> str:
    """The summary, with the node if that does not name it."""
    named = not lead.node or re.search(rf"\b{re.escape(lead.node)}\b", lead.summary)
    return lead.summary if named else f"{lead.summary} (at {lead.node})"


def _followed(lead: Sighted, then: Sighted, has_times: bool) -> str:
    text = then.summary
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + " …"
    text += "" if text.endswith("…") else "."
    if not _is_later(lead, then) or then.time_ns is None:
        return f"Also: {text}"
    if then.near == Near.END or not has_times:
        return f"Since then: {text}"
    return f"Since then, at {seconds(then.time_ns)}: {text}"


def seconds(time_ns: int) -> str:
    """`12.300 s`; with more digits for a moment in the first tenth of a second."""
    return f"{time_ns / 1e9:.{3 if time_ns >= 100_000_000 else 4}f} s"


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
