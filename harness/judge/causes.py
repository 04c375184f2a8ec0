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
| LOGS | the logs of nodes contradict each other, or the answers to clients |
| CLIENTS | a client observed what the promise forbids |
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
"""(node, time in ns) → the term that the node last reported."""


def no_term(node: str, time_ns: int) -> None:
    """For systems without terms."""


SETTLED = "-settled"
"""Ends the name of a check that was judged once more, with what the logs know (`harness.judge.audit`)."""
NEVER_NS = 1 << 62
CRASH = "crash"
ENDS_WITH_AN_ANSWER = ("acknowledged-early",)
"""Invariants of nodes that an answer breaks. The witness begins with the invocation, so its end is the moment."""
SHOWN_CHARACTERS = 220
"""A consequence that is longer is cut to about this length in the headline."""
OF_CUTS = "cuts-"


class Near(IntEnum):
    """How near a witness is to the cause."""

    NODE = 0
    LOGS = 1
    CLIENTS = 2
    END = 3


@dataclass(frozen=True, slots=True)
class CheckRank:
    """Some rules of a check, the nearest first; without `rules` all further ones of that check."""

    near: Near
    check: str
    rules: tuple[str, ...] = ()


def _rows(near: Near, *checks: str | tuple[str, ...]) -> Iterator[CheckRank]:
    for check in checks:
        yield CheckRank(near, check) if isinstance(check, str) else CheckRank(near, check[0], check[1:])


TABLE: tuple[CheckRank, ...] = (
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
        "offsets",
        "log-cycles",
        *("etcd-kv", "etcd-watch"),
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
"""Checks of logs without times: the times of their witnesses are estimates."""
ERROR_NS = 50_000_000
"""Estimates that are no farther apart prove no order."""
_WHOLE = {row.check: place for place, row in enumerate(TABLE) if not row.rules}
_SOME = {
    (row.check, rule): (place, nr) for place, row in enumerate(TABLE) for nr, rule in enumerate(row.rules)
}


def place_of(check: str, rule: str) -> tuple[Near, int, int] | None:
    """(near, row of `TABLE`, place in the row); None if the table has neither the rule nor its check."""
    check = check.removesuffix(SETTLED)
    row, nr = _SOME.get((check, rule), (_WHOLE.get(check), 0))
    return None if row is None else (TABLE[row].near, row, nr)


@dataclass(frozen=True, slots=True)
class RankedWitness:
    """A witness with its rank. `number`: its place within its check; `also`: checks with an equal witness."""

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
        """The moment of the witness: its beginning if one node broke its own invariant, else its end."""
        begins = self.near == Near.NODE and self.checker not in ENDS_WITH_AN_ANSWER
        names = ("start_ns", "end_ns") if begins else ("end_ns", "start_ns")
        times = (self.witness.get(name) for name in names)
        return next((moment for moment in times if isinstance(moment, int) and 0 <= moment < NEVER_NS), None)

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
        """The key of the order. `first_ns`: check → when an invariant of a node was first broken."""
        near, row, nr = self.place
        first = first_ns[self.checker] if near == Near.NODE else 0
        return (near, first, row, nr, self._time_ns, self.checker, self.number)


def ranked(verdict: Json, *, once: bool = True) -> list[RankedWitness]:
    """All witnesses of a verdict.json, nearest to the cause first. `once`: equal ones of several checks only once."""
    violated = verdict.get("violations")
    checks = [entry for entry in _listed(verdict.get("checks")) if isinstance(entry, Mapping)]
    witnesses = [
        RankedWitness(check, witness, number, violated is None or check.get("checker") in _listed(violated))
        for check in checks
        for number, witness in enumerate(_listed(check.get("witnesses")))
        if isinstance(witness, Mapping)
    ]
    first_ns: dict[str, int] = {}
    for entry in witnesses:
        if entry.near == Near.NODE:
            first_ns[entry.checker] = min(entry._time_ns, first_ns.get(entry.checker, NEVER_NS))
    witnesses.sort(key=lambda entry: entry.distance(first_ns))
    seen: Counter[tuple[str, str]] = Counter()
    order: list[tuple[bool, bool, int, RankedWitness]] = []
    for place, entry in enumerate(_once(witnesses) if once else witnesses):
        kind = (entry.checker, entry.rule)
        order.append((not entry.is_violation, seen[kind] > 0, place, entry))
        seen[kind] += 1
    return [entry for *_, entry in sorted(order, key=lambda entry: entry[:3])]


def leading(verdict: Json) -> RankedWitness | None:
    return next(iter(ranked(verdict)), None)


def _once(witnesses: Sequence[RankedWitness]) -> Iterator[RankedWitness]:
    """Equal witnesses (same words, same events) only once, under the nearest check."""
    first: dict[tuple[object, ...], int] = {}
    kept: list[RankedWitness] = []
    for witness in witnesses:
        words = (
            witness.is_violation,
            witness.summary,
            tuple(map(str, _listed(witness.witness.get("events")))),
        )
        place = first.setdefault(words, len(kept))
        if place == len(kept):
            kept.append(witness)
        elif witness.checker not in kept[place].checkers:
            kept[place] = replace(kept[place], also=(*kept[place].also, witness.checker))
    yield from kept


def consequences(ranking: Sequence[RankedWitness]) -> list[RankedWitness]:
    """The consequences of the leading witness: a crash, and the worst of the other witnesses.

    A consequence is a violation of a different check that is not nearer to the cause. The worst is that of a client,
    then of the end, then of the logs. A witness that is surely later goes before all others.
    """
    if not ranking:
        return []
    lead = ranking[0]
    others = [
        other
        for other in ranking
        if other.checker not in lead.checkers and other.is_violation and other.near >= lead.near
    ]
    crash = [other for other in others if other.checker == CRASH and _is_later(lead, other)][:1]
    rest = [other for other in others if other.checker != CRASH]
    order = (Near.CLIENTS, Near.END, Near.LOGS, Near.NODE)
    worst = min(rest, key=lambda other: (not _is_later(lead, other), order.index(other.near)), default=None)
    return crash if worst is None else [*crash, worst]


FINAL_ONLY = frozenset({"runaway-term", "deposed", "idle-promote", "split-without-cause"})
"""Rules that explain why a cluster did not settle, and nothing that a client saw."""


def own_causes(verdict: Json) -> list[RankedWitness]:
    """The leading witness, all crashes, and the first witness of each further rule that no earlier cause explains.

    A cause explains every breach except a crash, one of another check that surely ended before the cause began at a
    node or in a log, and one of a kind that it cannot explain: a wrong cut explains wrong cuts alone, and a cluster
    that does not settle explains no lost write. Findings are causes only if nothing is violated.
    """
    causes: list[RankedWitness] = []
    ranking = ranked(verdict)
    for witness in [witness for witness in ranking if witness.is_violation] or ranking:
        kinds = {(cause.checker, cause.rule) for cause in causes if cause.checker != CRASH}
        if (witness.checker, witness.rule) not in kinds and not any(
            _explains(cause, witness) for cause in causes
        ):
            causes.append(witness)
    return causes


def _explains(cause: RankedWitness, other: RankedWitness) -> bool:
    if other.checker == CRASH:
        return False
    start_ns, end_ns = cause.witness.get("start_ns"), other.witness.get("end_ns")
    is_judged = cause.near in (Near.NODE, Near.LOGS) and cause.checker != other.checker
    is_known = is_judged and not {cause.checker, other.checker} & ABOUT_RIGHT
    if is_known and isinstance(start_ns, int) and isinstance(end_ns, int) and end_ns < start_ns:
        return False
    if cause.checker.startswith(OF_CUTS):
        return other.checker.startswith(OF_CUTS)
    if cause.near == Near.END or cause.rule in FINAL_ONLY:
        return other.near == Near.END or other.rule in FINAL_ONLY
    return True


def _is_later(lead: RankedWitness, other: RankedWitness) -> bool:
    if lead.time_ns is None or other.time_ns is None:
        return False
    return other.time_ns - lead.time_ns > (ERROR_NS if lead.is_estimate or other.is_estimate else 0)


def headline(verdict: Json, term_of: TermOf = no_term, *, has_times: bool = True) -> str:
    """The anomaly in sentences: the moment, the term and the node of the leading witness, then its consequences.

    `has_times` False: the times of the record are places in a file, which give an order and no moments.
    """
    ranking = [witness for witness in ranked(verdict) if witness.is_violation] or ranked(verdict)
    if not ranking:
        return "A promise is broken, and no witness was recorded."
    lead, followed = ranking[0], consequences(ranking)
    text = f"{_at(lead, term_of) if has_times else ''}{_on(lead)}."
    text = f"{text[:1].upper()}{text[1:]}"
    text += "".join(f" {_followed(lead, then, has_times)}" for then in followed)
    named = {*lead.checkers, *(checker for then in followed for checker in then.checkers)}
    others = dict.fromkeys(witness.checker for witness in ranking if witness.checker not in named)
    return f"{text} Violated as well: {', '.join(others)}." if others else text


def _at(lead: RankedWitness, term_of: TermOf) -> str:
    """`At 12.300 s, in term 3, `; empty if the moment is not known."""
    if lead.time_ns is None:
        return ""
    at = f"At {'about ' if lead.is_estimate else ''}{seconds(lead.time_ns)}"
    term = term_of(lead.node, lead.time_ns) if lead.node else None
    return f"{at} " if term is None else f"{at}, in term {term}, "


def _on(lead: RankedWitness) -> str:
    """The summary; with the node, if the summary does not name it."""
    named = not lead.node or re.search(rf"\b{re.escape(lead.node)}\b", lead.summary)
    return lead.summary if named else f"{lead.summary} (at {lead.node})"


def _followed(lead: RankedWitness, then: RankedWitness, has_times: bool) -> str:
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
