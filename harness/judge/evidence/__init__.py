"""The evidence of a run: its facts, and what keeps it from being conclusive. A file for each kind of evidence.

A run must show load that succeeded, of every kind and also under faults (`load`); faults that took effect and healed
(`faults`), those that the user named (`named_faults`); an upgrade to its end (`versions`); nodes at rest,
and final reads that had to be fresh (`end`). A workload may need more (`Workload.missing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.replicas.convergence import NAME as CONVERGENCE
from checkers.verdict import Verdict
from harness.judge.case import Case
from harness.judge.evidence.cuts import cuts_of
from harness.judge.evidence.damage import could_not_join, may_only_be_detected, refusals
from harness.judge.evidence.end import end_of, stopped_for_good
from harness.judge.evidence.faults import faults_of
from harness.judge.evidence.load import load_of
from harness.judge.evidence.named_faults import named_faults_of
from harness.judge.evidence.rare_turns import rare_turns_of
from harness.judge.evidence.rollbacks import missing_rollbacks, rollbacks_of
from harness.judge.evidence.versions import NAME as UPGRADE
from harness.judge.evidence.versions import incompatible, missing_steps
from harness.plan.promise import FINAL_STATE


@dataclass(frozen=True)
class Evidence:
    """`facts`: the content of `evidence` in verdict.json; `missing`: why the run is inconclusive, a sentence each.

    `findings`: (name, sentence) of each. `stopped`: a sentence for each node that stopped for good, where a node may.
    `is_damaged`: a node went on with files that were damaged beyond what a store must survive.
    """

    facts: dict[str, Any]
    missing: Sequence[str]
    findings: Sequence[tuple[str, str]]
    stopped: Sequence[str]
    is_damaged: bool


def evidence_of(case: Case, verdicts: Sequence[Verdict]) -> Evidence:
    """`verdicts`: of the checks, for the number of cuts that were judged."""
    plan, history = case.plan, case.history
    is_damaged = may_only_be_detected(history)
    stopped = () if case.promise.model(FINAL_STATE) and not is_damaged else stopped_for_good(case)
    may_differ = bool(stopped)
    load = load_of(case)
    faults = faults_of(case, may_differ=may_differ)
    named = named_faults_of(case, faults.facts["skipped_faults"])
    rollbacks = rollbacks_of(case)
    end = end_of(case, may_differ=may_differ)
    cuts = cuts_of(case, verdicts)
    return Evidence(
        facts={
            **load.facts,
            "rollbacks": rollbacks,
            **faults.facts,
            **named.facts,
            **end.facts,
            "rare_turns": rare_turns_of(plan, history),
            **({"cuts": cuts} if cuts else {}),
        },
        missing=[
            *end.missing,
            *load.missing,
            *missing_steps(plan, history),
            *faults.missing,
            *load.missing_under_faults,
            *missing_rollbacks(case, rollbacks),
            *end.missing_rest,
            *named.missing,
        ],
        findings=list(
            _named(
                (CONVERGENCE, (*stopped, *end.waited_in_vain)),
                (UPGRADE, incompatible(history)),
                ("faults", faults.findings),
                ("orphans", end.orphans),
                ("faults", named.findings),
                ("detected", refusals(history)),
                ("members", could_not_join(history)),
            )
        ),
        stopped=stopped,
        is_damaged=is_damaged,
    )


def _named(*findings: tuple[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, texts in findings for text in texts)
