"""Verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkers import kept
from checkers.convergence import NAME as CONVERGENCE
from checkers.history.history import History
from checkers.verdict import Verdict
from checkers.wal import NAME as AUDIT
from checkers.wal import LogRules, NodeLog
from harness.check import Check, RunCheck, run_here
from harness.judge.asked_faults import absent_of_a_group, missing_by_name
from harness.judge.audit import audit
from harness.judge.detected import could_not_join, may_only_be_detected, refusals
from harness.judge.effects import without_effect
from harness.judge.evidence import (
    attempts,
    evidence_of,
    left_out_in_words,
    orphans_in_words,
    stopped_for_good,
    was_interrupted,
)
from harness.judge.versions import NAME as UPGRADE
from harness.judge.versions import incompatible, versions_json
from harness.judge.words import Outcome, repeat_line, sentence
from harness.plan import Plan
from harness.systems import system_of
from harness.systems.promises import Promise
from harness.workloads import WORKLOADS
from harness.workloads.checks import of_submitted
from harness.workloads.workload import ShowsCells, Workload

FORMAT = "qsync-verdict"
VERSION = 1
NOT_PROMISED = "not promised here, and not kept: "
"""How a finding begins that would be a violation elsewhere."""
OF_READS = frozenset({"bank", "balances", "counter", "set-full", "transactional"})
"""Checks that have nothing to judge where nobody reads anything but dirty."""
EXIT_CODES: dict[Outcome, int] = {"valid": 0, "anomaly": 1, "unknown": 2, "not-evidence": 3}


def judge(
    plan: Plan,
    promise: Promise,
    history: History,
    *,
    interrupted: bool = False,
    failure: str | None = None,
    plan_file: Path | None = None,
    logs: Sequence[NodeLog] = (),
    rules: LogRules | None = None,
    run_check: RunCheck = run_here,
    asks_by_name: bool = True,
) -> dict[str, Any]:
    """The content of verdict.json. `plan_file` is where the plan is kept, for the line that repeats the run.

    `logs` are those of the nodes and `rules` how to read them (None: nobody knows, so they are not looked at).
    `run_check` says how a check comes to its verdict: here, or by somebody who has spread the work.
    `asks_by_name`: somebody wrote down the names of the faults, and each must be felt (`harness.judge.asked_faults`).
    """
    workload = WORKLOADS[plan.workload]
    checks = checks_of(plan, promise)
    judged = [(check.model, run_check(check, history)) for check in checks]
    audited = None if rules is None or not logs else audit(logs, rules, history, checks)
    if audited is not None:
        judged.append((promise.logs, audited.logs))
    verdicts = [verdict for _, verdict in judged]
    promised = [verdict for model, verdict in judged if model]
    was_ended = interrupted or was_interrupted(history)
    is_damaged = may_only_be_detected(history)
    stopped = () if promise.final_state and not is_damaged else stopped_for_good(history)
    evidence = evidence_of(
        plan, workload, history, was_ended, failure, promise=promise, may_differ=bool(stopped)
    )
    if asks_by_name and history.faults and failure is None and not was_ended:
        evidence["missing"] += missing_by_name(plan, history, evidence["left_out"])
    excused = {CONVERGENCE} if is_damaged and stopped else _without_reads(plan, promise, promised)
    decisive = [each for each in promised if each.result != "unknown" or each.checker not in excused]
    outcome = _outcome(decisive, evidence["missing"])
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome,
        "exit_code": EXIT_CODES[outcome],
        "sentence": sentence(outcome, promised, evidence),
        "promise": {
            "configuration": promise.configuration,
            "why": promise.why,
            **{check.name: check.model for check in checks if check.model},
            **({AUDIT: promise.logs} if audited is not None and promise.logs else {}),
        },
        "violations": [verdict.checker for verdict in promised if verdict.result == "invalid"],
        "findings": [
            *_findings(judged),
            *({"checker": "convergence", "summary": text} for text in stopped),
            *({"checker": UPGRADE, "summary": text} for text in incompatible(history)),
            *({"checker": "faults", "summary": text} for text in left_out_in_words(evidence)),
            *({"checker": "faults", "summary": text} for text in without_effect(attempts(history))),
            *({"checker": "orphans", "summary": text} for text in orphans_in_words(evidence)),
            *({"checker": "faults", "summary": text} for text in absent_of_a_group(plan, history)),
            *({"checker": "detected", "summary": text} for text in refusals(history)),
            *({"checker": "members", "summary": text} for text in could_not_join(history)),
            *(
                {"checker": "settled", "summary": text}
                for text in (audited.findings if audited is not None else ())
            ),
        ],
        "documented": dict(promise.documented),
        "evidence": evidence,
        "versions": versions_json(history),
        "checks": [verdict.to_json() for verdict in verdicts],
        "settled": None if audited is None else audited.settled_json(),
        "repeat": {
            "command": repeat_line(plan, plan_file),
            "repeats": "outcome" if plan.cluster == "sim" else "schedule",
        },
        "run": {
            "system": plan.system,
            "cluster": plan.cluster,
            "workload": plan.workload,
            "seed": plan.seed,
            "bugs": list(plan.bugs),
        },
    }


def _without_reads(plan: Plan, promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """Checks of what reads show, where no read is promised to be fresh, and there was none that they could judge.

    They leave no doubt if what lasted was judged instead, by what all nodes held in the end.
    """
    was_kept = any(each.checker == kept.NAME and not each.details.get("vacuous", True) for each in promised)
    if promise.has_fresh_reads or plan.promise is not None or not was_kept:
        return set()
    return {each.checker for each in promised if each.checker in OF_READS and each.details.get("vacuous")}


def checks_of(plan: Plan, promise: Promise) -> tuple[Check, ...]:
    """All that a run of this plan is judged by: its workload's checks, its system's, and its commit wait mode's."""
    submitted = (of_submitted(promise, plan.promise),) if plan.submits else ()
    workload = WORKLOADS[plan.workload]
    of_system = (_of_cells(check, workload) for check in system_of(plan.system).checks(plan))
    return (*workload.checks(promise, plan.promise), *submitted, *of_system)


def _of_cells(check: Check, workload: Workload) -> Check:
    """A system's own check, which knows no workload, is shown dumps as the operations name things."""
    if not isinstance(workload, ShowsCells):
        return check
    return replace(check, run=lambda history: check.run(workload.as_written(history)))


def _findings(judged: Sequence[tuple[str, Verdict]]) -> Iterator[dict[str, str]]:
    """What checkers found worth telling, and what would be a violation if anything had been promised."""
    for model, verdict in judged:
        for finding in verdict.details.get("findings", ()):
            yield {"checker": verdict.checker, "summary": finding}
        if verdict.result == "invalid" and not model:
            yield {
                "checker": verdict.checker,
                "summary": f"{NOT_PROMISED}{verdict.summary}",
            }


def _outcome(verdicts: Sequence[Verdict], missing: Sequence[str]) -> Outcome:
    results = {verdict.result for verdict in verdicts}
    if "invalid" in results:
        return "anomaly"
    if missing:
        return "not-evidence"
    return "unknown" if "unknown" in results else "valid"


def _allowed(verdict: Verdict, unpromised: Sequence[Verdict]) -> tuple[str, ...]:
    """What would be a violation if anything had been promised."""
    if verdict.result != "invalid" or not any(verdict is other for other in unpromised):
        return ()
    return (f"{NOT_PROMISED}{verdict.summary}",)
