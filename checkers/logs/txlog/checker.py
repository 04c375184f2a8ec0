"""Judges what the masters of a run left: `check(Given(…))` has a verdict for each check of `report.CHECKS`."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.logs.txlog import counters, drained, executed, kept, order, policy, sessions, vote
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.report import CHECKS, Name, Report, verdict
from checkers.verdict import Verdict

PARTS = (
    order.judge,
    kept.judge,
    executed.judge,
    counters.judge,
    sessions.judge,
    policy.judge,
    vote.judge,
    drained.judge,
)


def check(given: Given) -> Mapping[Name, Verdict]:
    """Every check over all logs and the history."""
    report = Report()
    for part in PARTS:
        report.add(part(given))
    return {name: verdict(name, report, given.missing) for name in CHECKS}
