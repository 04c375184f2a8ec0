"""Rollbacks, which must follow the isolation of an owner where the promise says so."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judge.case import Case
from harness.plan.plan import SECOND_NS


def rollbacks_of(case: Case) -> int | None:
    """The highest count of rollbacks that a node reported; a restart resets it. None: the store does not count them."""
    reports = case.system.reports
    counts = (reports.rollbacks(state.status) for state in case.history.states)
    return max((count for count in counts if count is not None), default=None)


def missing_rollbacks(case: Case, rollbacks: int | None) -> Iterator[str]:
    """A sentence if an owner was isolated for long, and yet nothing was rolled back."""
    plan = case.plan
    longest_ns = max(
        (
            fault.heal_asked_ns - fault.all_in_effect_ns
            for fault in case.history.faults
            if fault.name == "isolate-owner"
            and fault.took_effect
            and fault.heal_asked_ns
            and fault.all_in_effect_ns
        ),
        default=0,
    )
    waited = longest_ns > 2 * plan.expectations.rolls_back_after_s * SECOND_NS and plan.quorum_size > 1
    waited &= not plan.submits  # what is only submitted has no time-out, and may have filled the queue
    if case.promise.isolated_owner_rolls_back and waited and not rollbacks:
        nothing = "no node reported a rollback" if rollbacks is None else "nothing was ever rolled back"
        yield f"the owner was isolated, and yet {nothing}"
