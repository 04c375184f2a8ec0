"""Verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checkers.history.history import History
from checkers.verdict import Verdict, run_safely
from harness.judge.evidence import evidence_of, was_interrupted
from harness.judge.words import Outcome, repeat_line, sentence
from harness.plan import Plan
from harness.systems.promises import Promise
from harness.workloads import WORKLOADS

FORMAT = "qsync-verdict"
VERSION = 1
EXIT_CODES: dict[Outcome, int] = {"valid": 0, "anomaly": 1, "unknown": 2, "not-evidence": 3}


def judge(
    plan: Plan,
    promise: Promise,
    history: History,
    *,
    interrupted: bool = False,
    failure: str | None = None,
    plan_file: Path | None = None,
) -> dict[str, Any]:
    """The content of verdict.json. `plan_file` is where the plan is kept, for the line that repeats the run."""
    workload = WORKLOADS[plan.workload]
    checks = workload.checks(promise, plan.promise)
    verdicts = [run_safely(check.run, history, name=check.name) for check in checks]
    evidence = evidence_of(plan, workload, history, interrupted or was_interrupted(history), failure)
    promised = [verdict for check, verdict in zip(checks, verdicts, strict=True) if check.model]
    unpromised = [verdict for check, verdict in zip(checks, verdicts, strict=True) if not check.model]
    outcome = _outcome(promised, evidence["missing"])
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
        },
        "violations": [verdict.checker for verdict in promised if verdict.result == "invalid"],
        "findings": [
            {"checker": verdict.checker, "summary": finding}
            for verdict in verdicts
            for finding in (*verdict.details.get("findings", ()), *_allowed(verdict, unpromised))
        ],
        "evidence": evidence,
        "checks": [verdict.to_json() for verdict in verdicts],
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
    return (f"not promised here, and not kept: {verdict.summary}",)
