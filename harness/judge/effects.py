"""Whether the faults of a run took effect: judged by kind, and by the reason where an attempt took none.

A run of a minute attempts some kinds once; a run of an hour attempts each a hundred times, and some of these attempts
come to nothing. Decision 23 says why these shares (`ALLOWED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from checkers.history.faults import CUTS, FaultSpan

REFUSED: Final = "refused"
HIDDEN: Final = "beside another fault"
UNUSED: Final = "nothing was sent on its links"
UNEXPLAINED: Final = "unexplained"
ALLOWED: Final[Mapping[str, float]] = {
    REFUSED: 1 / 2,  # the store said no: a fact of the run, and the other half was carried out
    "nothing to damage": 1 / 2,  # the log of that node was too short at that moment
    UNEXPLAINED: 1 / 10,  # the fault did not do what it is for: hardly ever, and never in a short run
}
"""Reason → the share of the attempts of a kind that may take no effect for it.

Two kinds of attempts are not counted: one beside another fault, which may have kept it from taking effect, and one on
links over which no node had ever sent anything, such as those between two replicas of a fixed primary.
"""
_REASONS: Final[Mapping[str, Callable[[FaultSpan], bool]]] = {
    REFUSED: lambda fault: fault.does == "failover" and bool(_detail(fault)),
    "nothing to damage": lambda fault: fault.does == "damage" and _counted(fault, "disks_damaged") == 0,
    UNUSED: lambda fault: _counted(fault, "links_used") == 0 or _lacks_used_shapes(fault),
}
"""Of a fault that took no effect: whether its evidence says this reason."""
_OUTRUN: Final = ("was promoted first", "The term is outdated", "Interfering elections started")
"""Words of Tarantool, and of the reference node, for a promotion that lost a race against an election."""
ENOUGH_KINDS: Final = 3
"""If so many other kinds took effect, promotions that lost a race are a fact of the run, however many they are."""
_DETAIL_MAX: Final = 120


@dataclass(slots=True)
class Attempts:
    """All faults of a kind that ended. `failed`: those that took no effect, by reason."""

    name: str
    is_cut: bool = False
    took_effect: int = 0
    failed: dict[str, list[FaultSpan]] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """Those that say something of the kind."""
        return self.took_effect + sum(len(each) for reason, each in self.failed.items() if reason in ALLOWED)

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
        """Each that was refused came too late: an election was quicker, so the leader did change."""
        refused = self.failed.get(REFUSED, ())
        return bool(refused) and all(any(word in _detail(fault) for word in _OUTRUN) for fault in refused)

    def in_words(self, reason: str) -> str:
        faults = self.failed[reason]
        counted = self.counted + (0 if reason in ALLOWED else len(faults))
        said = next((detail for detail in map(_detail, reversed(faults)) if detail), "")
        told = ": ".join(word for word in (reason if reason != UNEXPLAINED else "", said) if word)
        why = f" ({told})" if told else ""
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


def attempts_of(faults: Iterable[FaultSpan], is_hidden: Callable[[FaultSpan], bool]) -> tuple[Attempts, ...]:
    """By kind, in the order of their first attempt. `is_hidden`: another fault may be why it took no effect."""
    kinds: dict[str, Attempts] = {}
    for fault in faults:
        kind = kinds.setdefault(fault.name, Attempts(fault.name, fault.does in CUTS))
        if fault.took_effect:
            kind.took_effect += 1
        else:
            reason = HIDDEN if is_hidden(fault) else _reason(fault)
            kind.failed.setdefault(reason, []).append(fault)
    return tuple(kinds.values())


def missing_effects(kinds: Sequence[Attempts]) -> Iterator[str]:
    """A sentence for each kind of which too many attempts took no effect."""
    for kind in kinds:
        yield from map(kind.in_words, _too_many(kind, kinds))
    cuts = [kind for kind in kinds if kind.is_cut]
    if any(UNUSED in kind.failed for kind in cuts) and not any(kind.took_effect for kind in cuts):
        yield (
            "no partition took effect, because nothing was sent on the links that they cut: either the nodes do not "
            "replicate, or they do not use the addresses that the harness gave them"
        )


def without_effect(kinds: Sequence[Attempts]) -> Iterator[str]:
    """A sentence for each kind of which some attempts took no effect, as few as are allowed."""
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
    shapes, affected, unused = (
        _counted(fault, name) for name in ("shapes", "shapes_affected", "shapes_unused")
    )
    return bool(unused) and shapes == (affected or 0) + (unused or 0)


def _counted(fault: FaultSpan, name: str) -> int | None:
    counters = fault.evidence.get("counters")
    return counters.get(name) if isinstance(counters, Mapping) else None
