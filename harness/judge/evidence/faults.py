"""Whether the faults of a run took effect, and healed. Effects are judged by kind, and by the reason where an attempt
took none.

A run of a minute attempts some kinds once; a run of an hour attempts each a hundred times, and some of these attempts
come to nothing. Decision 23 says why these shares (`ALLOWED`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from checkers.history.faults import CUTS, FaultSpan
from checkers.history.history import History
from checkers.history.spans import NEVER, Spans, of_faults
from checkers.history.values import often
from harness.faults.fault import is_directed
from harness.faults.node_options import Decisive
from harness.faults.overlap import hinders_no_owner
from harness.judge.case import Case
from harness.judge.evidence.versions import was_refused
from harness.plan.plan import Plan

REFUSED: Final = "refused"
HIDDEN: Final = "beside another fault"
UNUSED: Final = "nothing was sent on its links"
UNFILLED: Final = "its links carried less than it lets through"
UNEXPLAINED: Final = "unexplained"
ALLOWED: Final[Mapping[str, float]] = {
    REFUSED: 1 / 2,  # the store said no: a fact of the run, and the other half was carried out
    "nothing to damage": 1 / 2,  # the log of that node was too short at that moment
    UNEXPLAINED: 1 / 10,  # the fault did not do what it is for: hardly ever, and never in a short run
}
"""Reason → the share of the attempts of a kind that may take no effect for this reason.

Not counted are attempts beside another fault, which may have hidden the effect; attempts on links that carried no
message, such as those between two replicas of a fixed primary; and limits that no message had to wait for.
"""
_LIMITED: Final = (("bytes_delayed", "bytes_queued"), ("packets_held", "packets_queued"))
"""Counters of a limit, of relays and of containers: what passed through it, and what of that had to wait."""
_REASONS: Final[Mapping[str, Callable[[FaultSpan], bool]]] = {
    REFUSED: lambda fault: fault.does == "failover" and bool(_detail(fault)),
    "nothing to damage": lambda fault: fault.does == "damage" and fault.counters.get("disks_damaged") == 0,
    UNUSED: lambda fault: fault.counters.get("links_used") == 0 or _lacks_used_shapes(fault),
    UNFILLED: lambda fault: (
        fault.does == "bandwidth"
        and any(fault.counters.get(passed) and fault.counters.get(waited) == 0 for passed, waited in _LIMITED)
    ),
}
"""Reason → whether the evidence of a fault that took no effect gives it."""
_OUTRUN: Final = ("was promoted first", "The term is outdated", "Interfering elections started")
"""Words of Tarantool, and of the reference node, for a promotion that lost a race against an election."""
ENOUGH_KINDS: Final = 3
"""If so many other kinds took effect, any number of promotions may lose a race."""
_DETAIL_MAX: Final = 120
MANY_SKIPPED: Final = 1 / 4
"""If a larger share of the faults of a schedule was skipped, that is reported."""


@dataclass(frozen=True, slots=True)
class Faults:
    """`missing`: why the run is inconclusive, a sentence for each fault, or kind, without effect or healing."""

    facts: Mapping[str, Any]
    missing: Sequence[str]
    findings: Sequence[str]


def faults_of(case: Case, *, may_differ: bool) -> Faults:
    """`may_differ`: nodes stopped for good, which the promise allows."""
    faults = case.history.faults
    every = of_faults(faults)
    kinds = attempts(faults, every)
    skipped = skipped_faults(case.history)
    return Faults(
        {
            "faults": [
                {
                    "id": fault.id,
                    "name": fault.name,
                    "took_effect": fault.took_effect,
                    "healed": fault.healed,
                    "ended": fault.end_index is not None,
                }
                for fault in faults
            ],
            "attempts": [kind.to_json() for kind in kinds],
            "skipped_faults": skipped,
            "kinds_in_effect": sorted({fault.name for fault in faults if fault.took_effect}),
        },
        [*_unhealed(case, every, may_differ), *_missing_effects(kinds)]
        if faults
        else ["faults were asked for, but there was no time for one"] * _asks_for_faults(case.plan),
        [*_skipped_in_words(faults, skipped), *_without_effect(kinds)],
    )


def _unhealed(case: Case, every: Spans[FaultSpan], may_differ: bool) -> Iterator[str]:
    """A sentence for each fault that did not end, or that could heal and was not observed to."""
    history = case.history
    decisive = case.plan.expectations.decisive
    for fault in history.faults:
        if _is_steered(fault, every) or was_refused(fault):
            continue
        if fault.end_index is None:
            yield f"fault {fault.id} ({fault.name}) never ended"
        elif (may_differ and _is_of_stopped(case, fault)) or fault.healed:
            continue
        elif not fault.took_effect and any(_beside(fault, every)):
            continue  # it took none, maybe because of another: there was nothing to heal
        elif not _was_hidden(fault, history.faults, decisive):
            yield f"fault {fault.id} ({fault.name}) was not seen to heal"


def skipped_faults(history: History) -> list[dict[str, Any]]:
    """The faults of the schedule that never began: id, name, why."""
    lines = (*history.told("harness", "skipped-fault"), *history.told("harness", "left-out"))
    skipped: list[dict[str, Any]] = []
    for event in lines:
        match event.value:
            case {"fault": {"name": str(name)} as fault, "why": str(why)}:
                skipped.append({"id": fault.get("id"), "name": name, "why": why})
    return skipped


def _skipped_in_words(faults: Sequence[FaultSpan], skipped: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence if more than `MANY_SKIPPED` of the faults were skipped, or all faults of a name."""
    absent = Counter(skip["name"] for skip in skipped)
    begun = Counter(fault.name for fault in faults)
    many = absent.total() > MANY_SKIPPED * (absent.total() + begun.total())
    never = [name for name in sorted(absent) if not begun[name]]
    if many or never:
        most, times = Counter(skip["why"] for skip in skipped).most_common(1)[0]
        verb = "was" if absent.total() == 1 else "were"
        text = f"{absent.total()} of {absent.total() + begun.total()} faults of the schedule {verb} skipped"
        nothing = f"; nothing happened of: {', '.join(never)}" if never else ""
        yield f"{text} ({often(times)} because {most}){nothing}"


def _asks_for_faults(plan: Plan) -> bool:
    if plan.drawn is not None:
        return bool(plan.drawn.faults)
    return any(name != "none" for name in plan.faults)


def was_directed(fault: FaultSpan) -> bool:
    """Whether the fault was a step of a directed schedule."""
    return is_directed(fault.does, fault.asked.get("on"))


def _is_steered(fault: FaultSpan, others: Spans[FaultSpan]) -> bool:
    """Whether the fault is directed or beside a directed one: such faults need not take effect."""
    return any(map(was_directed, (fault, *_beside(fault, others))))


def _beside(fault: FaultSpan, others: Spans[FaultSpan]) -> Iterator[FaultSpan]:
    """The other faults that were active at the same time, which may have hidden the effect of this one."""
    at_once = others.touching(fault.start_ns, fault.end_ns or fault.start_ns)
    return (other for other in at_once if other is not fault)


def _was_hidden(fault: FaultSpan, others: Sequence[FaultSpan], decisive: Decisive) -> bool:
    """Whether the healing could not be tested, because another fault was active meanwhile."""
    return fault.healed is None and any(
        other is not fault and _hides(other, fault, decisive) for other in others
    )


def _hides(other: FaultSpan, fault: FaultSpan, decisive: Decisive) -> bool:
    """Whether `other` was active while `fault` healed. A removed node never returns; an added one is not up yet."""
    since_ns = fault.start_ns if fault.heal_asked_ns is None else fault.heal_asked_ns
    targets: Sequence[Sequence[str]] = fault.links or tuple((node,) for node in fault.nodes)
    are_absent = other.does in ("remove", "add") and all({*target} & {*other.nodes} for target in targets)
    if hinders_no_owner(other.does, other.asked.get("options", {}), decisive) and not are_absent:
        return False
    until_ns = NEVER if other.does == "remove" and are_absent else other.end_ns or NEVER
    return other.start_ns <= (fault.end_ns or NEVER) and until_ns >= since_ns


def _is_of_stopped(case: Case, fault: FaultSpan) -> bool:
    """Whether the fault cut a link between nodes of which one has stopped following the other, so it need not heal."""
    links = {frozenset(link) for link in fault.links} if fault.does in CUTS else set()
    return any(
        frozenset((state.node, peer)) in links
        for state in case.history.states
        for peer in case.system.reports.stopped(state.status)
    )


@dataclass(slots=True)
class Attempts:
    """The faults of one kind that ended. `failed`: reason → the faults that took no effect."""

    name: str
    is_cut: bool = False
    took_effect: int = 0
    failed: dict[str, list[FaultSpan]] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """The number of attempts that count: those with an effect, and those without for a reason in `ALLOWED`."""
        return self.took_effect + sum(
            len(faults) for reason, faults in self.failed.items() if reason in ALLOWED
        )

    @property
    def too_many(self) -> tuple[str, ...]:
        """The reasons for which more attempts took no effect than are allowed."""
        return tuple(
            reason
            for reason, share in ALLOWED.items()
            if len(self.failed.get(reason, ())) > share * self.counted
        )

    @property
    def lost_races(self) -> bool:
        """Whether all refused promotions lost a race against an election, so that the leader changed all the same."""
        refused = self.failed.get(REFUSED, ())
        return bool(refused) and all(any(word in _detail(fault) for word in _OUTRUN) for fault in refused)

    def in_words(self, reason: str) -> str:
        faults = self.failed[reason]
        counted = self.counted + (0 if reason in ALLOWED else len(faults))
        last_detail = next((detail for detail in map(_detail, reversed(faults)) if detail), "")
        cause = ": ".join(word for word in (reason if reason != UNEXPLAINED else "", last_detail) if word)
        why = f" ({cause})" if cause else ""
        if counted == 1:
            return f"fault {faults[0].id} ({self.name}) took no effect{why}"
        numbers = ", ".join(str(fault.id) for fault in faults[:5]) + (", …" if len(faults) > 5 else "")
        which = f"fault{'s' if len(faults) > 1 else ''} {numbers}"
        return f"{self.name} took effect in {self.took_effect} of {counted} attempts; {which} did not{why}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "took_effect": self.took_effect,
            "without_effect": {reason: len(faults) for reason, faults in self.failed.items()},
        }


def attempts(faults: Iterable[FaultSpan], every: Spans[FaultSpan]) -> tuple[Attempts, ...]:
    """The faults that have to take effect, by kind, in the order of their first attempt."""
    kinds: dict[str, Attempts] = {}
    for fault in faults:
        # A fault without an end has no evidence: `_unhealed` names it.
        if fault.end_index is None or _is_steered(fault, every) or was_refused(fault):
            continue
        kind = kinds.setdefault(fault.name, Attempts(fault.name, fault.does in CUTS))
        if fault.took_effect:
            kind.took_effect += 1
        else:
            reason = HIDDEN if any(_beside(fault, every)) else _reason(fault)
            kind.failed.setdefault(reason, []).append(fault)
    return tuple(kinds.values())


def _missing_effects(kinds: Sequence[Attempts]) -> Iterator[str]:
    """A sentence for each kind of which too many attempts took no effect."""
    for kind in kinds:
        yield from map(kind.in_words, _too_many(kind, kinds))
    cuts = [kind for kind in kinds if kind.is_cut]
    if any(UNUSED in kind.failed for kind in cuts) and not any(kind.took_effect for kind in cuts):
        yield (
            "no partition took effect, because nothing was sent on the links that they cut: either the nodes do not "
            "replicate, or they do not use the addresses that the harness gave them"
        )


def _without_effect(kinds: Sequence[Attempts]) -> Iterator[str]:
    """A sentence for each kind of which some attempts, not too many, took no effect."""
    for kind in kinds:
        for reason in kind.failed:
            if reason != HIDDEN and reason not in _too_many(kind, kinds):
                yield kind.in_words(reason)


def _too_many(kind: Attempts, kinds: Sequence[Attempts]) -> tuple[str, ...]:
    """The reasons for which too many attempts of the kind took no effect, in a run with these kinds."""
    others = sum(other is not kind and other.took_effect > 0 for other in kinds)
    is_excused = kind.lost_races and others >= ENOUGH_KINDS
    return tuple(reason for reason in kind.too_many if not (is_excused and reason == REFUSED))


def _reason(fault: FaultSpan) -> str:
    return next((reason for reason, holds in _REASONS.items() if holds(fault)), UNEXPLAINED)


def _detail(fault: FaultSpan) -> str:
    return str(fault.evidence.get("detail") or "")[:_DETAIL_MAX]


def _lacks_used_shapes(fault: FaultSpan) -> bool:
    """A changing partition needs two shapes with an effect; here each shape without one cut unused links alone."""
    counted = fault.counters
    unused = counted.get("shapes_unused", 0)
    return unused > 0 and counted.get("shapes") == counted.get("shapes_affected", 0) + unused
