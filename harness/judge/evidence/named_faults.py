"""Faults that a run was asked for, and whether each took effect at least once.

A user who names a fault wants to know how the store behaves under it. A run in which the fault never took effect (there
was no time, another fault was always in its way, or it had no observable effect) does not show that. For a name that
stands for several faults one that took effect is enough; the missing ones are reported. "all" and "default" ask for no
fault in particular, and a run hardly ever has time for all of them: the faults without time are reported beside those
that took effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from checkers.history.faults import FaultSpan
from checkers.history.history import History
from checkers.history.values import often
from harness.errors import WrongUse
from harness.faults.abilities import ALL_ABILITIES
from harness.faults.held import SCENIC
from harness.faults.rollout import UPGRADE
from harness.judge.case import Case
from harness.judge.evidence.faults import was_directed
from harness.judge.evidence.versions import was_refused
from harness.plan.plan import Plan
from harness.plan.schedule import named_by, names_for
from harness.systems import system_of


@dataclass(frozen=True, slots=True)
class NamedFaults:
    """`missing`: a sentence for each fault that was asked for by name and never took effect."""

    facts: Mapping[str, Any]
    missing: Sequence[str]
    findings: Sequence[str]


def named_faults_of(case: Case, skipped: Sequence[Mapping[str, Any]]) -> NamedFaults:
    """`skipped`: faults that never began, and why."""
    plan, history = case.plan, case.history
    never = never_in_effect(plan, history)
    must_take_effect = case.names_faults and history.faults and case.is_whole
    return NamedFaults(
        {"observed": [name for name in _asked(plan) if name not in never], "not_observed": never},
        list(_missing_by_name(plan, history, skipped)) if must_take_effect else (),
        list(absent_of_a_group(plan, history)),
    )


def never_in_effect(plan: Plan, history: History) -> list[str]:
    """The faults that the plan asks for, also by "all" or "default", and that never took effect."""
    in_effect = _in_effect(history)
    return [name for name in _asked(plan) if name not in in_effect]


def _missing_by_name(plan: Plan, history: History, skipped: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each fault that was asked for by name and never took effect.

    Steps of versions that a node refused, and an upgrade that did not come to all, have sentences of their own
    (`harness.judge.evidence.versions`).
    """
    absent = set(never_in_effect(plan, history)) - {UPGRADE}
    absent -= {fault.name for fault in history.faults if was_refused(fault)}
    for word, names in _by_name(plan):
        possible = [name for name in names if name in _asked(plan)]
        if possible and absent.issuperset(possible):
            yield f"the fault {word} was asked for and never took effect: {_why(plan, history, possible, skipped)}"


def absent_of_a_group(plan: Plan, history: History) -> Iterator[str]:
    """A sentence for each name that stands for several faults, of which some took effect and some did not."""
    absent, asked = never_in_effect(plan, history), _asked(plan)
    for word, names in _by_name(plan):
        never = [name for name in names if name in absent]
        if never and len(never) < sum(name in asked for name in names):
            yield f"of {word}, which was asked for, these never took effect: {', '.join(never)}"


def _by_name(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each name in the plan, and the faults that it stands for. A plan that is drawn out names every fault itself."""
    if plan.drawn is not None:
        yield from ((name, (name,)) for name in _asked(plan))
        return
    yield from named_by(plan)


def _asked(plan: Plan) -> tuple[str, ...]:
    if plan.drawn is not None:
        return tuple(dict.fromkeys(fault.name for fault in plan.drawn.faults if not fault.is_directed))
    for able in (system_of(plan.system).abilities, ALL_ABILITIES):
        with suppress(WrongUse):  # a plan of another version, judged again from its record
            return names_for(plan, able)
    return ()


def _in_effect(history: History) -> set[str]:
    """Names of faults; those that are steered to a moment go by the names of their scenes."""
    return {name for fault in history.faults if fault.took_effect for name in _names(fault)}


def _names(fault: FaultSpan) -> tuple[str, ...]:
    return (*SCENIC, fault.name) if was_directed(fault) else (fault.name,)


def _why(plan: Plan, history: History, names: Sequence[str], skipped: Sequence[Mapping[str, Any]]) -> str:
    begun = sum(not {*_names(fault)}.isdisjoint(names) for fault in history.faults)
    if begun:
        return f"it began {often(begun)}"
    reasons = [str(skip["why"]) for skip in skipped if skip["name"] in names]
    if reasons:
        last = ", the last time" if len(reasons) > 1 else ""
        return f"it was skipped {often(len(reasons))}{last} because {reasons[-1]}"
    return f"there was no room for it in {plan.time_limit_s:g} s; a longer --time-limit has more"
