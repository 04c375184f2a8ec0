"""Judges what the masters of a run left: `check(Given(…))` has a verdict for each check of `report.CHECKS`."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.logs.txlog.report import CHECKS, Name, Report, verdict
from checkers.verdict import Verdict
from tests.checkers.logs.txlog.plain import counters, drained, executed, kept, order, policy, sessions, vote
from tests.checkers.logs.txlog.plain.given import Given

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
    found = Report()
    for part in PARTS:
        found.add(part(given))
    return {name: verdict(name, found, given.missing) for name in CHECKS}
