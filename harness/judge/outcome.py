"""The only place where an outcome is made, whatever verb asks for it: `run`, `check`, `audit`, `nightly`, `simulate`.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a promised check is invalid, whatever else is the case |
| inconclusive | 3 | something is missing without which a run shows nothing |
| unknown | 2 | a promised check was not judged: it is unknown, was skipped, or there is none |
| valid | 0 | every promised check was judged and is valid |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from checkers.replicas import kept
from checkers.replicas.convergence import NAME as CONVERGENCE
from checkers.verdict import Result, Verdict, merged
from harness.judge.case import Case
from harness.judge.causes import OF_CUTS
from harness.judge.checks import Checked
from harness.judge.evidence import Evidence
from harness.plan.plan import Plan
from harness.systems.cut_lines import unfinished
from harness.systems.promise import Promise

FORMAT = "qsync-verdict"
VERSION = 1
Outcome = Literal["valid", "anomaly", "unknown", "inconclusive"]

EXIT_CODES: dict[Outcome, int] = {"valid": 0, "anomaly": 1, "unknown": 2, "inconclusive": 3}

OF_READS = frozenset({"bank", "balances", "counter", "set-full", "transactional"})
"""Checks that have nothing to judge if clients only ask for dirty reads."""

HARDLY_ASKED = 10
"""Fewer reads of a class (at replicas, dirty) may all be lost to faults: that none was answered then says nothing."""
HARDLY_ASKED_SHARE = 1 / 10
"""And only where they are a smaller share of all operations: a run that is about such reads needs an answer."""
CONDITIONAL = frozenset(
    {
        *("quorum", "early-timeout", "overruled", "rollback-honesty", "replication"),
        *("acknowledged-early", "queue-order", "durability", "write-once"),
    }
)
"""Checks that a run keeps in which what they forbid could not happen: no write while no quorum was possible, no
timeout, no rollback, one node alone, no complete write, no clock to compare. Any other one that had nothing to judge is
unknown, whatever it says of itself."""


@dataclass(frozen=True)
class Weighed:
    """`decisive`: the promised verdicts that count. `missing`: why the run shows nothing, a sentence each."""

    outcome: Outcome
    decisive: Sequence[Verdict]
    missing: Sequence[str]


def outcome_of(
    results: Iterable[Result], missing: Sequence[str] = (), left_out: Sequence[str] = ()
) -> Outcome:
    """`results`: of the promised checks. `missing`: what keeps a run from being evidence. `left_out`: what a person
    asked not to be judged, in words."""
    result = merged(results)
    if result == "invalid":
        return "anomaly"
    if missing:
        return "inconclusive"
    return "valid" if result == "valid" and not left_out else "unknown"


def weighed(case: Case, checked: Checked, evidence: Evidence) -> Weighed:
    """Verdicts, and what the run shows beside them."""
    promised = checked.promised
    if evidence.is_damaged and evidence.stopped:
        excused = {CONVERGENCE}
    else:
        excused = without_reads(case.plan, case.promise, promised)
    excused |= _shown_by_fresh_reads(case.promise, promised)
    excused |= without_opportunity(promised, len(case.history.operations))
    judged = [replace(each, result=result_of(each)) for each in promised]
    decisive = [each for each in judged if each.result != "unknown" or each.checker not in excused]
    undecided = {each.checker for each in decisive if each.result == "unknown"}
    missing = [*evidence.missing]
    if undecided and all(checker.startswith(OF_CUTS) for checker in undecided):
        missing += unfinished(case.history)
    outcome = outcome_of((each.result for each in decisive), missing, checked.left_out)
    return Weighed(outcome, decisive, missing)


def _shown_by_fresh_reads(promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """`kept`, where not every member gave a final state, and fresh reads were asked what was kept in its stead."""
    is_shown = promise.has_fresh_reads
    return {
        each.checker
        for each in promised
        if is_shown and each.checker == kept.NAME and each.details.get("vacuous")
    }


def result_of(verdict: Verdict) -> Result:
    """Valid only if something was judged."""
    is_empty = verdict.details.get("vacuous") and verdict.checker not in CONDITIONAL
    return "unknown" if verdict.result == "valid" and is_empty else verdict.result


def without_opportunity(promised: Sequence[Verdict], operations: int) -> set[str]:
    """Checks of which the run did not exercise the promise: of a class of reads that clients hardly asked for, or of
    something that their checker says could not come about (`opportunities`)."""
    hardly = min(HARDLY_ASKED, max(1, operations * HARDLY_ASKED_SHARE))
    return {
        each.checker
        for each in promised
        if each.details.get("vacuous")
        and (each.details.get("asked", HARDLY_ASKED) < hardly or each.details.get("opportunities") == 0)
    }


def without_reads(plan: Plan, promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """Checks of what reads show, where no read is promised to be fresh, and there was none that they could judge.

    They leave no doubt if what lasted was judged instead, by what all nodes held in the end.
    """
    was_kept = any(each.checker == kept.NAME and not each.details.get("vacuous", True) for each in promised)
    if promise.has_fresh_reads or plan.promise is not None or not was_kept:
        return set()
    return {each.checker for each in promised if each.checker in OF_READS and each.details.get("vacuous")}
