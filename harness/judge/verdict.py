"""From a run to its verdict: promise → checks → evidence → outcome → the content of verdict.json."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from checkers.history.history import History
from harness.judge.case import Case
from harness.judge.causes import TermOf
from harness.judge.checks import Checked, checked
from harness.judge.evidence import Evidence, evidence_of
from harness.judge.evidence.versions import versions_json
from harness.judge.outcome import Weighed, weighed
from harness.judge.outcomes import EXIT_CODES, FORMAT, VERSION
from harness.judge.words import repeat_line, sentence


def judge(case: Case) -> dict[str, Any]:
    """The content of verdict.json, for all verbs. Raises WrongUse as `checked` and `Case.promise`."""
    checks = checked(case)
    evidence = evidence_of(case, checks.verdicts)
    return _document(case, checks, evidence, weighed(case, checks, evidence))


def _document(case: Case, checks: Checked, evidence: Evidence, outcome: Weighed) -> dict[str, Any]:
    plan, promise = case.plan, case.promise
    shown = {**evidence.facts, "missing": [*outcome.missing]}
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome.outcome,
        "exit_code": EXIT_CODES[outcome.outcome],
        "sentence": sentence(
            outcome.outcome, outcome.decisive, shown, checks.left_out, _terms_of(case.history)
        ),
        "promise": {
            "configuration": promise.configuration,
            "why": promise.why,
            **{verdict.checker: model for model, verdict in checks.judged if model},
        },
        "violations": [verdict.checker for verdict in checks.promised if verdict.result == "invalid"],
        "findings": [
            *checks.findings(),
            *({"checker": name, "summary": text} for name, text in evidence.findings),
            *({"checker": "settled", "summary": text} for text in checks.findings_of_settling),
        ],
        "documented": dict(promise.documented),
        "evidence": shown,
        "versions": versions_json(case.history),
        "checks": [verdict.to_json() for verdict in checks.verdicts],
        "settled": checks.settled,
        "repeat": {
            "command": repeat_line(plan, case.plan_file),
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


def _terms_of(history: History) -> TermOf:
    """The last reported term of a node at a time, from the states that the monitor recorded."""
    reports: dict[str, list[tuple[int, int]]] = {}
    for state in history.states:
        if isinstance(term := state.status.get("term"), int):
            reports.setdefault(state.node, []).append((state.time_ns, term))

    def term_of(node: str, time_ns: int) -> int | None:
        of_node = reports.get(node, [])
        place = bisect_right(of_node, time_ns, key=lambda report: report[0])
        return of_node[place - 1][1] if place else None

    return term_of
