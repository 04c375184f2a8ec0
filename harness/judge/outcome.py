"""The outcome of a run (`outcomes`) from its verdicts and its evidence: what counts, and what is excused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkers.replicas import kept
from checkers.replicas.convergence import NAME as CONVERGENCE
from checkers.verdict import Result, Verdict
from harness.judge.case import Case
from harness.judge.causes import OF_CUTS
from harness.judge.checks import Checked
from harness.judge.evidence import Evidence
from harness.judge.outcomes import Outcome, outcome_of
from harness.plan.plan import Plan
from harness.plan.promise import Promise
from harness.systems.cut_lines import unfinished

OF_READS = frozenset({"bank", "balances", "counter", "set-full", "transactional"})
"""Checks that have nothing to judge if all reads are dirty."""

HARDLY_ASKED = 10
"""Fewer reads of a class (at replicas, dirty) may all be lost to faults: that none succeeded is inconclusive."""
HARDLY_ASKED_SHARE = 1 / 10
"""A larger share of all operations is never hardly asked: a run about such reads needs an answer."""
CONDITIONAL = frozenset(
    {
        *("quorum", "early-timeout", "overruled", "rollback-honesty", "replication"),
        *("acknowledged-early", "queue-order", "durability", "write-once"),
    }
)
"""Checks that are valid in a run in which a breach was impossible: no write without a possible quorum, no timeout, no
rollback, a single node, no complete write, no clock to compare. All other checks that had nothing to judge are
unknown."""


@dataclass(frozen=True)
class Weighed:
    """`decisive`: the promised verdicts that count. `missing`: why the run is inconclusive, a sentence each."""

    outcome: Outcome
    decisive: Sequence[Verdict]
    missing: Sequence[str]


def weighed(case: Case, checked: Checked, evidence: Evidence) -> Weighed:
    """The outcome of a run by the verdicts of its checks and its evidence."""
    promised = checked.promised
    if evidence.is_damaged and evidence.stopped:
        # A node that stops at its damaged disk never becomes equal; its reads still count.
        excused = {CONVERGENCE}
    else:
        excused = without_reads(case.plan, case.promise, promised)
    excused |= _shown_by_fresh_reads(case.promise, promised)
    excused |= without_opportunity(promised, len(case.history.operations))
    judged = [replace(verdict, result=result_of(verdict)) for verdict in promised]
    # An excuse takes an unknown away, and never an anomaly.
    decisive = [
        verdict for verdict in judged if verdict.result != "unknown" or verdict.checker not in excused
    ]
    undecided = {verdict.checker for verdict in decisive if verdict.result == "unknown"}
    missing = [*evidence.missing]
    # Only if nothing but cuts is open: an unfinished cut explains no other check.
    if undecided and all(checker.startswith(OF_CUTS) for checker in undecided):
        missing += unfinished(case.history)
    outcome = outcome_of((verdict.result for verdict in decisive), missing, checked.left_out)
    return Weighed(outcome, decisive, missing)


def _shown_by_fresh_reads(promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """The check `kept`, if final states are missing and the promise has fresh reads, which show the same."""
    if not promise.has_fresh_reads:
        return set()
    return {
        verdict.checker
        for verdict in promised
        if verdict.checker == kept.NAME and verdict.details.get("vacuous")
    }


def result_of(verdict: Verdict) -> Result:
    """Valid only if something was judged."""
    is_empty = verdict.details.get("vacuous") and verdict.checker not in CONDITIONAL
    return "unknown" if verdict.result == "valid" and is_empty else verdict.result


def without_opportunity(promised: Sequence[Verdict], operations: int) -> set[str]:
    """Checks that the run gave no opportunity: of a class of reads that clients hardly asked for, or with 0
    `opportunities` by the details of their verdict."""
    hardly = min(HARDLY_ASKED, max(1, operations * HARDLY_ASKED_SHARE))
    return {
        verdict.checker
        for verdict in promised
        if verdict.details.get("vacuous")
        and (verdict.details.get("asked", HARDLY_ASKED) < hardly or verdict.details.get("opportunities") == 0)
    }


def without_reads(plan: Plan, promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """Checks of reads (`OF_READS`) that had no read to judge, where no read is promised to be fresh.

    They are excused only if the check `kept` judged the final states of all nodes instead.
    """
    was_kept = any(
        verdict.checker == kept.NAME and not verdict.details.get("vacuous", True) for verdict in promised
    )
    if promise.has_fresh_reads or plan.promise is not None or not was_kept:
        return set()
    return {
        verdict.checker
        for verdict in promised
        if verdict.checker in OF_READS and verdict.details.get("vacuous")
    }
