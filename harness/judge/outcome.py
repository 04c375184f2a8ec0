"""Verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkers.by_model import only_key
from checkers.check import Check, RunCheck, run_here
from checkers.history.declared import undeclared
from checkers.history.history import History
from checkers.logs.wal import LogRules, NodeLog
from checkers.logs.wal.effects import Effect
from checkers.replicas import kept
from checkers.replicas.convergence import NAME as CONVERGENCE
from checkers.verdict import Result, Verdict
from harness.doing import doing
from harness.errors import WrongUse
from harness.judge.asked_faults import absent_of_a_group, missing_by_name
from harness.judge.audit import audit
from harness.judge.causes import OF_CUTS, TermOf
from harness.judge.cuts import cuts_of
from harness.judge.detected import could_not_join, may_only_be_detected, refusals
from harness.judge.effects import without_effect
from harness.judge.evidence import (
    attempts,
    evidence_of,
    orphans_in_words,
    quiet_in_words,
    skipped_in_words,
    stopped_for_good,
    was_interrupted,
)
from harness.judge.versions import NAME as UPGRADE
from harness.judge.versions import incompatible, versions_json
from harness.judge.weighed import EXIT_CODES, FORMAT, VERSION, outcome_of
from harness.judge.words import repeat_line, sentence
from harness.plan.plan import Plan
from harness.systems import system_of
from harness.systems.cut_lines import unfinished
from harness.systems.promise import FINAL_STATE, LOGS, Promise
from harness.workloads import WORKLOADS
from harness.workloads.checks import of_submitted
from harness.workloads.workload import ShowsCells, Workload

NOT_PROMISED = "not promised here, and not kept: "
"""How a finding begins that would be a violation elsewhere."""
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
    effects: Sequence[Effect] = (),
    run_check: RunCheck = run_here,
    asks_by_name: bool = True,
    key: str | None = None,
    of_nodes: Sequence[Check] = (),
) -> dict[str, Any]:
    """The content of verdict.json. `plan_file` is where the plan is kept, for the line that repeats the run.

    `logs` are those of the nodes and `rules` how to read them (None: the system leaves none, so none are promised);
    `effects` is what their disks and links did, where that was recorded.
    `run_check` runs a check: in this process, or spread over workers.
    `asks_by_name`: the user wrote down the names of the faults, and each must take effect
    (`harness.judge.asked_faults`).
    `of_nodes` are the system's checks of what its nodes left, beside those of `checks_of`.
    `key`: the only one that checks of single keys judge. The other keys are skipped, so the run cannot be valid.
    Raises WrongUse if there is no such key, or no such check.
    """
    workload = WORKLOADS[plan.workload]
    checks = checks_of(plan, promise)
    left_out = () if key is None else _left_out_by(key, checks, history)
    judged = [(check.model, _judged(check, history, run_check, key)) for check in (*checks, *of_nodes)]
    audited = None if rules is None else audit(logs, rules, history, checks, effects)
    if audited is not None:
        violated = [each.checker for _, each in judged if each.result == "invalid"]
        judged += audited.judged(promise.model(LOGS), promise.answers, violated)
    verdicts = [verdict for _, verdict in judged]
    promised = [verdict for model, verdict in judged if model]
    was_ended = interrupted or was_interrupted(history)
    is_damaged = may_only_be_detected(history)
    stopped = () if promise.model(FINAL_STATE) and not is_damaged else stopped_for_good(plan, history)
    evidence = evidence_of(
        plan, workload, history, was_ended, failure, promise=promise, may_differ=bool(stopped)
    )
    if asks_by_name and history.faults and failure is None and not was_ended:
        evidence["missing"] += missing_by_name(plan, history, evidence["skipped_faults"])
    if cuts := cuts_of(plan, verdicts):
        evidence["cuts"] = cuts
    excused = {CONVERGENCE} if is_damaged and stopped else _without_reads(plan, promise, promised)
    excused |= _shown_by_fresh_reads(promise, promised) | without_opportunity(
        promised, len(history.operations)
    )
    weighed = [replace(each, result=_result(each)) for each in promised]
    decisive = [each for each in weighed if each.result != "unknown" or each.checker not in excused]
    undecided = {each.checker for each in decisive if each.result == "unknown"}
    if undecided and all(checker.startswith(OF_CUTS) for checker in undecided):
        evidence["missing"] += unfinished(history)
    outcome = outcome_of((each.result for each in decisive), evidence["missing"], left_out)
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome,
        "exit_code": EXIT_CODES[outcome],
        "sentence": sentence(outcome, decisive, evidence, left_out, _terms_of(history)),
        "promise": {
            "configuration": promise.configuration,
            "why": promise.why,
            **{verdict.checker: model for model, verdict in judged if model},
        },
        "violations": [verdict.checker for verdict in promised if verdict.result == "invalid"],
        "findings": [
            *_findings(judged),
            *({"checker": CONVERGENCE, "summary": text} for text in (*stopped, *quiet_in_words(history))),
            *({"checker": UPGRADE, "summary": text} for text in incompatible(history)),
            *({"checker": "faults", "summary": text} for text in skipped_in_words(evidence)),
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


def _terms_of(history: History) -> TermOf:
    """The terms by the nodes' reports to the monitor."""
    told: dict[str, list[tuple[int, int]]] = {}
    for state in history.states:
        if isinstance(term := state.status.get("term"), int):
            told.setdefault(state.node, []).append((state.time_ns, term))

    def term_of(node: str, time_ns: int) -> int | None:
        reports = told.get(node, [])
        place = bisect_right(reports, time_ns, key=lambda report: report[0])
        return reports[place - 1][1] if place else None

    return term_of


def _shown_by_fresh_reads(promise: Promise, promised: Sequence[Verdict]) -> set[str]:
    """`kept`, where not every member gave a final state, and fresh reads were asked what was kept in its stead."""
    is_shown = promise.has_fresh_reads
    return {
        each.checker
        for each in promised
        if is_shown and each.checker == kept.NAME and each.details.get("vacuous")
    }


def _result(verdict: Verdict) -> Result:
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


def _judged(check: Check, history: History, run_check: RunCheck, key: str | None) -> Verdict:
    """By the check's own name: a verdict under another one would leave a promised check without any."""
    doing(f"the check {check.name}")
    is_selected = key is not None and check.is_per_key
    verdict = run_check(check, only_key(history, key) if is_selected and key is not None else history)
    if verdict.result == "valid" and not check.is_of_nodes and (names := undeclared(history)):
        why = f"the workload does not declare what these operations do: {', '.join(names)}"
        verdict = replace(verdict, result="unknown", summary=why)
    return verdict if verdict.checker == check.name else replace(verdict, checker=check.name)


def _left_out_by(key: str, checks: Sequence[Check], history: History) -> tuple[str, ...]:
    """The part that `--key` leaves out, in words."""
    names = [check.name for check in checks if check.is_per_key]
    keys = dict.fromkeys(str(each.key) for each in history.operations if each.key is not None)
    if not names:
        raise WrongUse("--key: no check of this workload judges keys one by one; leave it out")
    if key not in keys:
        known = ", ".join(list(keys)[:8]) + (", …" if len(keys) > 8 else "")
        raise WrongUse(f"--key {key!r} is not in this run: it has {known or 'no keys'}")
    others = len(keys) - 1
    told = f"{', '.join(names)} judged the key {key} alone, and skipped {others} other keys"
    return (told,) if others else ()


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
    of_workload = (_as_asked(check, plan.promise) for check in workload.checks(promise, plan.promise))
    return (*of_workload, *submitted, *of_system)


def _as_asked(check: Check, stricter: str | None) -> Check:
    """The check, with its name as the model if the plan promises it and the store promises nothing."""
    return replace(check, model=stricter) if stricter == check.name and not check.model else check


def _of_cells(check: Check, workload: Workload) -> Check:
    """A system's own check, which knows no workload, is shown dumps as the operations name things."""
    if not isinstance(workload, ShowsCells):
        return check
    return replace(check, run=lambda history: check.run(workload.as_written(history)))


def _findings(judged: Sequence[tuple[str, Verdict]]) -> Iterator[dict[str, str]]:
    """Findings of checkers, and invalid verdicts on models that are not promised."""
    for model, verdict in judged:
        for finding in verdict.details.get("findings", ()):
            yield {"checker": verdict.checker, "summary": finding}
        if verdict.result == "invalid" and not model:
            yield {
                "checker": verdict.checker,
                "summary": f"{NOT_PROMISED}{verdict.summary}",
            }
