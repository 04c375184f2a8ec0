"""The checks of a run, judged: of client operations, of the files of nodes, and by the audit of their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checkers.check import Check
from checkers.history.declared import undeclared
from checkers.history.history import History
from checkers.history.values import many
from checkers.verdict import Verdict
from harness.doing import doing
from harness.errors import WrongUse
from harness.judge.audit import audit
from harness.judge.case import Case
from harness.plan.promise import LOGS

NOT_PROMISED = "not promised here, and not kept: "
"""How a finding begins that would be a violation elsewhere."""


@dataclass(frozen=True)
class Checked:
    """`judged`: the verdicts, each with the model that it is judged against ("": nothing is promised).

    `left_out`: the parts that the user excluded, in words. `settled`: the part of verdict.json on settled operations;
    None without an audit. `findings_of_settling`: sentences.
    """

    judged: Sequence[tuple[str, Verdict]]
    left_out: Sequence[str] = ()
    settled: Mapping[str, Any] | None = None
    findings_of_settling: Sequence[str] = ()

    @property
    def verdicts(self) -> list[Verdict]:
        return [verdict for _, verdict in self.judged]

    @property
    def promised(self) -> list[Verdict]:
        return [verdict for model, verdict in self.judged if model]

    def findings(self) -> Iterator[dict[str, str]]:
        """Findings of checkers, and invalid verdicts on models that are not promised."""
        for model, verdict in self.judged:
            for finding in verdict.details.get("findings", ()):
                yield {"checker": verdict.checker, "summary": finding}
            if verdict.result == "invalid" and not model:
                yield {"checker": verdict.checker, "summary": f"{NOT_PROMISED}{verdict.summary}"}


def checked(case: Case) -> Checked:
    """Run the checks and the audit. Raises WrongUse for a key that the run lacks or that no check judges."""
    left_out = () if case.key is None else _left_out_by(case.key, case.checks, case.history)
    judged = [(check.model, _verdict(check, case)) for check in (*case.checks, *case.checks_of_nodes)]
    if case.log_rules is None:
        return Checked(judged, left_out)
    audited = audit(case.logs, case.log_rules, case.history, case.checks, case.left.effects)
    violated = [verdict.checker for _, verdict in judged if verdict.result == "invalid"]
    judged += audited.judged(case.promise.model(LOGS), case.promise.answers, violated)
    return Checked(judged, left_out, audited.settled_json(), audited.findings)


def _verdict(check: Check, case: Case) -> Verdict:
    """The verdict under the name of the check, because a promised check without a verdict of its name is not judged."""
    doing(f"the check {check.name}")
    history = case.history
    is_selected = case.key is not None and check.is_per_key
    # Per-key checks alone see the selected key: all others need the whole history.
    verdict = case.run_check(check, history.only({str(case.key)}) if is_selected else history)
    # Only a valid one is taken back: without the undeclared operations it may have judged too little.
    if verdict.result == "valid" and not check.is_of_nodes and (names := undeclared(history)):
        why = f"the workload does not declare what these operations do: {', '.join(names)}"
        verdict = replace(verdict, result="unknown", summary=why)
    return verdict if verdict.checker == check.name else replace(verdict, checker=check.name)


def _left_out_by(key: str, checks: Sequence[Check], history: History) -> tuple[str, ...]:
    """The part that `--key` leaves out, in words."""
    names = [check.name for check in checks if check.is_per_key]
    keys = dict.fromkeys(str(operation.key) for operation in history.operations if operation.key is not None)
    if not names:
        raise WrongUse("--key: no check of this workload judges keys one by one; leave it out")
    if key not in keys:
        known = ", ".join(list(keys)[:8]) + (", …" if len(keys) > 8 else "")
        raise WrongUse(f"--key {key!r} is not in this run: it has {known or 'no keys'}")
    others = len(keys) - 1
    skipped = f"{', '.join(names)} judged the key {key} alone, and skipped {many(others, 'other key')}"
    return (skipped,) if others else ()
